"""docs/reproduction.md: a text whose every number is computed from the stored results.

The text is ``reproduction.md.j2``; its expressions name a table of claims, a column and which of
its rows, so that each number can be looked up with ``python -m experiments claims``.
"""

import json
import re
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import pandas as pd

from experiments import theorem
from experiments.claims import claim_tables
from experiments.engine import NUM_CHAINS
from experiments.medians import JobResults, Results, load_results, quantiles
from experiments.reference_store import REFERENCES
from experiments.store import Store

__all__ = ["TEMPLATE", "number", "reproduction_page"]

TEMPLATE = Path(__file__).parent / "reproduction.md.j2"

_FILTERS = {
    "left": "left below",
    "hot": "hot start",
    "rate": "γ",
}
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

# What an independent implementation found on bikes with hot start, one seed: M = 100, M = 1,000.
_OTHERS = {
    ("hot_dog", 1e-3, "Hot DoG, r = 10⁻³"): (352, 0.58),
    ("adam", 10.0, "ADAM, γ = 10"): (314, 0.21),
    ("adam", 1.0, "ADAM, γ = 1"): (4_970, 0.24),
    ("dog", 1e-3, "DoG, r = 10⁻³"): (2_280, 0.18),
    ("dowg", 1e-3, "DoWG, r = 10⁻³"): (21_100, 11.0),
    ("prodigy", 1e-6, "Prodigy, d₀ = 10⁻⁶"): (546, 43.0),
}


def number(value: Any) -> str:
    """Write a number with two or three digits that count; whole ones as they are."""
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if np.isinf(value):
        return "∞"
    size = abs(value)
    if size and not 1e-3 <= size < 1e5:
        mantissa, power = f"{value:.1e}".split("e")
        return f"{mantissa.removesuffix('.0')}·10{str(int(power)).translate(_RAISED)}"
    if size >= 100 or float(value).is_integer():
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.995 else f"{value:#.2g}"


def _list(values: Iterable[Any]) -> str:
    """Write one after the other: "1, 2 and 3"."""
    *first, last = map(number, values)
    return f"{', '.join(first)} and {last}" if first else last


def _span(values: Iterable[Any]) -> str:
    """Write the lowest and the highest: "1 to 3"."""
    values = list(values)
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"


def reproduction_page(store: Store) -> str:
    """Write the page.

    Parameters
    ----------
    store
        The results of the paper's scale.
    """
    results = load_results(store)
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= {"n": number, "list": _list, "span": _span}
    page = environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        col=_columns(claim_tables(results)),
        jobs=[_job(job) for job in results.jobs.values()],
        runs=_runs(results),
        references=_references(),
        others=_against_others(results),
        errors=_errors(results),
        costs=_costs(results),
        runaway=_runaway(results),
        replayed=_replayed(results),
        theorem=theorem.stored(),
    )
    return _wrapped(page)


def _wrapped(page: str) -> str:
    """Break the lines of paragraphs and lists anew; tables, headings and code stay."""
    blocks = []
    for block in page.strip().split("\n\n"):
        if not block.startswith(("|", "#", "```")):
            items = re.split(r"\n(?=- )", block)
            options = {"width": 100, "break_long_words": False, "break_on_hyphens": False}
            indent = "  " if block.startswith("- ") else ""
            block = "\n".join(
                textwrap.fill(" ".join(item.split()), subsequent_indent=indent, **options)
                for item in items
            )
        blocks.append(block)
    return "\n\n".join(blocks) + "\n"


def _columns(tables: dict[str, pd.DataFrame]) -> Callable[..., list[Any]]:
    def column(table: str, name: str, **where: Any) -> list[Any]:
        """Values of a column of a table, of the rows that ``where`` asks for."""
        rows = tables[table]
        for key, wanted in where.items():
            values = rows[_FILTERS.get(key, key)]
            rows = rows[values.isin(wanted) if isinstance(wanted, list) else values == wanted]
        if rows.empty:
            raise KeyError(f"table {table} has no rows with {where}")
        return rows[name].tolist()

    return column


def _job(job: JobResults) -> dict[str, Any]:
    return {"name": job.job.name, "speed": job.facts["microseconds_per_iteration_and_run"]}


def _runs(results: Results) -> dict[str, Any]:
    """How much was run, and whether anything went wrong."""
    every = [*results.jobs.values(), *results.variants.values()]
    return {
        "per_job": sorted({len(job.runs) for job in every}),
        "configurations": sorted({len(job.runs) // job.runs["trial"].nunique() for job in every}),
        "trials": sorted({job.runs["trial"].nunique() for job in every}),
        "iterations": sorted({job.num_iterations for job in every}),
        "devices": sorted({job.facts["device"] for job in every}),
        "failures": int(sum((job.runs["failure"] != 0).sum() for job in every)),
        "forced": int(sum(job.runs["is_forced"].sum() for job in every)),
        "minutes": sum(job.facts["seconds"] for job in results.jobs.values()) / 60,
        "all_minutes": sum(job.facts["seconds"] for job in every) / 60,
        "flights": results.jobs["logistic", 100].facts["num_rows"],
    }


def _references() -> dict[str, float]:
    """How far our posteriors of the paper's files are from the authors', at most."""
    contents = [json.loads(path.read_text()) for path in sorted(REFERENCES.glob("*.json"))]
    found = [c["provenance"]["authors"] for c in contents if c["provenance"]["authors"]]
    return {
        part: max(differences[f"max_{part}_difference"] for differences in found)
        for part in ("mean", "sd")
    }


def _against_others(results: Results) -> dict[str, Any]:
    """Bikes with hot start: the other implementation's one seed, and our ten."""
    rows, inside = [], []
    for (method, value, name), theirs in _OTHERS.items():
        row = {"name": name}
        for size, their in zip((100, 1_000), theirs, strict=True):
            errors = results.jobs["poisson", size].final(method, value, True)
            row[size] = (their, quantiles(errors)[0], errors.min(), errors.max())
            inside.append(bool(errors.min() <= their <= errors.max()))
        rows.append(row)
    return {"rows": rows, "inside": sum(inside), "of": len(inside)}


def _errors(results: Results) -> dict[str, float]:
    """Bikes, M = 1,000: median errors of some methods, and the lowest of all."""
    job = results.jobs["poisson", 1_000]
    return {
        "hot_dog": quantiles(job.final("hot_dog", 1e-3, True))[0],
        "adam": quantiles(job.final("adam", job.tuned("adam", True), True))[0],
        "dog": quantiles(job.final("dog", 1e-3, True))[0],
        "lowest": job.finals()["z2"].min(),
    }


def _costs(results: Results) -> dict[str, list[float]]:
    """Evaluations as the authors count them over ours, by task: M more a gradient and chain."""
    found: dict[str, list[float]] = {}
    for (task, size), job in results.jobs.items():
        runs = job.runs[(job.runs["method"] == "hot_dog") & ~job.runs["hot_start"]]
        more = NUM_CHAINS * size * job.num_iterations
        found.setdefault(task, []).append(float(1 + more / runs["evaluations"].median()))
    return found


def _replayed(results: Results) -> dict[str, Any]:
    """How the stored beginnings of the jobs compare with a replay, where one is noted."""
    every = [*results.jobs.values(), *results.variants.values()]
    found = [job.facts["replayed"] for job in every if "replayed" in job.facts]
    return {
        "jobs": len(found),
        "of": len(every),
        "runs": sum(f["num_runs"] for f in found),
        "agree": sum(f["agree_throughout"] for f in found),
        "iterations": sorted({f["num_iterations"] for f in found}),
        "until": min(f["agree_until"] for f in found),
        "largest": max(f["largest_difference"] for f in found),
        "devices": sorted({f["device"].upper() for f in found}),
    }


def _runaway(results: Results) -> dict[str, Any]:
    """Logistic regression, M = 100: how the weights of Hot DoG add up, and what they come to."""
    job = results.jobs["logistic", 100]
    errors, still = job.final("hot_dog", 1e-3, True), job.final("adam", 1e-3, False)
    tuned = job.final("adam", job.tuned("adam", False), False)
    is_worse = errors > still
    return {
        "worse": int(is_worse.sum()),
        "trials": len(errors),
        "ratio": (errors / tuned)[is_worse].tolist(),
        "rest": (errors / tuned)[~is_worse].tolist(),
        "adam_worse": int((tuned > still).sum()),
    }
