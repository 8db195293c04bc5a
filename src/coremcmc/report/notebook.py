"""How a fit and a coreset show themselves in a notebook.

Colours and fonts are the notebook's own, light or dark; there is no script, no id and no style
sheet that could touch what else is on the page.
"""

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from coremcmc.coreset import Coreset
from coremcmc.fitting.result import Fit
from coremcmc.report.coreset import effective_rows, heaviest_rows
from coremcmc.report.facts import facts_of
from coremcmc.report.formatting import count, decimals_for, duration, fixed, number, percent
from coremcmc.report.parameters import parameters_of
from coremcmc.report.verdict import headline_of, remarks_of

__all__ = ["coreset_html", "fit_html"]

_MOST_PARAMETERS = 10
_MOST_ROWS = 5
_MOST_COLUMNS = 8
# Readable on white and on black alike.
_TONES = {"good": "#2e9e6b", "usable": "#c08000", "poor": "#d9534f", "none": "#808080"}


def fit_html(fit: Fit) -> str:
    """Verdict, posterior table, and what was run behind a fold."""
    with np.errstate(all="ignore"):
        parameters, total = parameters_of(fit, _MOST_PARAMETERS)
        headline, remarks = headline_of(fit), remarks_of(fit, parameters)
    tone = _TONES.get(headline.verdict, _TONES["none"])
    badge = (
        f'<span style="border: 1px solid {tone}; border-left-width: 6px; border-radius: 3px; '
        f'padding: 1px 7px; font-weight: 600">{escape(headline.word)}</span>'
    )
    coreset = fit.coreset
    parts = [
        f"<p>{badge} &nbsp;<strong>Coreset fit</strong>: {count(len(coreset))} of "
        f"{count(coreset.num_rows)} rows, {count(fit.iteration)} iterations "
        f"({escape(fit.stopped)}), {duration(fit.seconds)}</p>"
    ]
    if headline.verdict != "good":
        parts.append(f"<p>{escape(headline.reason)} {escape(headline.to_do)}</p>")
    if parameters:
        header = ["", "mean", "sd", "5 %", "95 %", "ESS", "R-hat"]
        body = []
        for p in parameters:
            decimals = decimals_for(p.sd)
            own = [fixed(value, decimals) for value in (p.mean, p.sd, p.low, p.high)]
            rhat = f"{p.rhat:.3f}" if np.isfinite(p.rhat) else "–"
            body.append([p.name, *own, count(p.ess), rhat])
        parts.append(_table(header, body))
        if total > len(parameters):
            parts.append(f"<p>… and {count(total - len(parameters))} more parameters</p>")
    else:
        parts.append("<p>No draws yet.</p>")
    if remarks:
        items = "".join(f"<li>{escape(text)}</li>" for text in remarks)
        parts.append(_fold(f"Warnings ({len(remarks)})", f"<ul>{items}</ul>"))
    parts.append(_fold("What was run", _table((), facts_of(fit, None), is_text=True)))
    return _block(parts)


def coreset_html(coreset: Coreset) -> str:
    """Size, weights, and the heaviest rows behind a fold."""
    weights = np.asarray(coreset.weights, dtype=float)
    size = len(weights)
    zeros = int((weights == 0).sum())
    effective = effective_rows(weights)
    facts = [
        ("rows", f"{count(size)} of {count(coreset.num_rows)}, {percent(size / coreset.num_rows)}"),
        ("effective number of rows", f"{count(effective)}, {percent(effective / size)} of them"),
        ("sum of weights", number(weights.sum(), 6)),
        ("largest weight", number(weights.max(), 4)),
        ("zero weights", count(zeros)),
    ]
    heaviest = heaviest_rows(coreset, most=_MOST_ROWS)
    columns = heaviest.columns[:_MOST_COLUMNS]
    left_out = heaviest.num_left_out + len(heaviest.columns) - len(columns)
    header = ["row", "weight", "share", *columns]
    table = _table(header, [row[: len(header)] for row in heaviest.rows])
    if left_out:
        table += f"<p>… and {count(left_out)} more column{'s' if left_out > 1 else ''}</p>"
    parts = [
        "<p><strong>Coreset</strong></p>",
        _table((), facts, is_text=True),
        _fold("Heaviest rows", table),
    ]
    return _block(parts)


def _block(parts: Iterable[str]) -> str:
    return f'<div style="overflow-x: auto">{"".join(parts)}</div>'


def _fold(title: str, content: str) -> str:
    summary = f'<summary style="cursor: pointer">{escape(title)}</summary>'
    return f'<details style="margin-top: 4px">{summary}{content}</details>'


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], is_text: bool = False) -> str:
    align = "left" if is_text else "right"
    style = f'style="text-align: {align}; font-variant-numeric: tabular-nums"'
    first = 'scope="row" style="text-align: left"'
    head = "".join(f'<th scope="col" {style}>{escape(text)}</th>' for text in header)
    body = []
    for row in rows:
        cells = "".join(f"<td {style}>{escape(text)}</td>" for text in row[1:])
        body.append(f"<tr><th {first}>{escape(row[0])}</th>{cells}</tr>")
    top = f"<thead><tr>{head}</tr></thead>" if header else ""
    return f"<table>{top}<tbody>{''.join(body)}</tbody></table>"
