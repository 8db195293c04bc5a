"""One page with every figure, what was run, and the numbers behind the claims."""

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from experiments.claims import CLAIMS, READING, cells, claim_tables
from experiments.errors import StudyError
from experiments.figures import Picture, pictures
from experiments.medians import JobResults, Results, load_results
from experiments.store import Store

__all__ = ["write_page"]

_STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1c; --paper: #ffffff; --faint: #666666;
  --line: #d8d8d8; --band: #f4f4f4; --link: #0060a0; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --paper: #16181b; --faint: #a0a0a0;
  --line: #3a3d42; --band: #202328; --link: #7ab8f0; } }
body { margin: 0 auto; max-width: 76rem; padding: 1.5rem; background: var(--paper);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.7rem; } h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); }
h3 { margin-top: 2.2rem; } a { color: var(--link); }
figure { margin: 2.5rem 0; } figcaption { max-width: 60rem; }
img { width: 100%; height: auto; background: #ffffff; border: 1px solid var(--line);
  border-radius: 6px; box-sizing: border-box; }
p, figcaption { max-width: 60rem; } .note { color: var(--faint); font-size: 0.9rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: 0.85rem; }
th, td { padding: 0.25rem 0.7rem; border-bottom: 1px solid var(--line); text-align: left;
  white-space: nowrap; font-variant-numeric: tabular-nums; }
tbody tr:nth-child(even) { background: var(--band); }
"""


def write_page(store: Store, figures_folder: Path, out_html: Path) -> Path:
    """Write a page that needs nothing beside it.

    Parameters
    ----------
    store
        The results.
    figures_folder
        Where :func:`experiments.figures.draw_figures` has drawn them.
    out_html
        The page.
    """
    results = load_results(store)
    parts = [_head(results), "<h2 id='figures'>Figures</h2>"]
    parts += [_figure(picture, figures_folder) for picture in pictures(results)]
    parts += ["<h2 id='claims'>Numbers behind the claims</h2>", f"<p>{escape(READING)}</p>"]
    tables = claim_tables(results)
    for claim in CLAIMS:
        parts.append(f"<h3>Claim {escape(claim.number)}. {escape(claim.title)}</h3>")
        parts += [f"<p class='note'>{escape(text)}</p>" for text in claim.how.split("\n\n")]
        table = tables[claim.number]
        parts.append("<p>No results.</p>" if table.empty else _table(*cells(table)))
    parts += ["<h2 id='jobs'>What was run</h2>", _jobs(results), "</body></html>\n"]
    try:
        out_html.parent.mkdir(parents=True, exist_ok=True)
        out_html.write_text("\n".join(parts), encoding="utf-8")
    except OSError as error:
        raise StudyError(f"--out {out_html}: cannot write there: {error}") from None
    return out_html


def _head(results: Results) -> str:
    scale = results.store.scale
    done, missing = len(results.jobs), len(results.missing())
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tuning-free Coreset MCMC: the study</title><style>{_STYLE}</style></head><body>
<h1>Tuning-free Coreset MCMC: the study</h1>
<p>Scale {escape(scale.name)}: {done} of {done + missing} jobs (a task and a coreset size M each)
have results. <a href="#figures">Figures</a>, <a href="#claims">numbers behind the claims</a>,
<a href="#jobs">what was run</a>.</p>"""


def _figure(picture: Picture, folder: Path) -> str:
    path = folder / f"{picture.name}.png"
    try:
        image = base64.b64encode(path.read_bytes()).decode("ascii")
    except OSError:
        raise StudyError(
            f"--figures {folder}: has no {path.name}. Draw the figures first: "
            "python -m experiments figures."
        ) from None
    name = picture.name.removeprefix("fig")
    return f"""<figure id="{escape(picture.name)}">
<img src="data:image/png;base64,{image}" alt="{escape(picture.title)}">
<figcaption><strong>Figure {escape(name)}. {escape(picture.title)}.</strong>
{escape(picture.caption)} <span class="note">{escape(picture.note)}</span></figcaption></figure>"""


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "\n".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div class='wide'>{table}</div>"


def _jobs(results: Results) -> str:
    header = ["task", "M", "data set", "rows", "iterations", "trials", "runs", "failed runs"]
    header += ["µs per iteration and run", "device"]
    rows = [_job(job) for job in results.jobs.values()]
    rows += [
        [job.task.title, f"{job.coreset_size:,}", "no results", *["–"] * (len(header) - 3)]
        for job in results.missing()
    ]
    return _table(header, rows)


def _job(job: JobResults) -> list[str]:
    facts = job.facts
    return [
        job.job.task.title,
        f"{job.job.coreset_size:,}",
        str(facts.get("dataset_origin") or facts.get("dataset") or "–"),
        _number(facts.get("num_rows")),
        f"{job.num_iterations:,}",
        f"{job.runs['trial'].nunique()}",
        f"{len(job.runs):,}",
        f"{int((job.runs['z2'] == float('inf')).sum())}",
        _number(facts.get("microseconds_per_iteration_and_run")),
        str(facts.get("device") or "–"),
    ]


def _number(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3g}" if isinstance(value, float) else "–"
