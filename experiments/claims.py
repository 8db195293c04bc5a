"""The paper's claims as tables of our numbers, in Markdown or as cells of text; no verdicts."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from experiments import claim_data
from experiments.errors import StudyError
from experiments.medians import Results, load_results
from experiments.store import Store

__all__ = ["CLAIMS", "READING", "Claim", "cells", "claim_tables", "claims_markdown", "claims_named"]


@dataclass(frozen=True)
class Claim:
    """Number, title and table of a claim; the table's docstring says how it is computed."""

    number: str
    title: str
    table: Callable[[Results], pd.DataFrame]

    @property
    def how(self) -> str:
        """Return how the table is computed, one paragraph each item."""
        return inspect.getdoc(self.table) or ""


CLAIMS = (
    Claim("1a", "ADAM's best and worst learning rate, no hot start", claim_data.adam_by_task),
    Claim(
        "1b",
        "Each learning rate of ADAM against the best one, no hot start",
        claim_data.adam_by_rate,
    ),
    Claim(
        "2",
        "Tuning-free methods used directly, linear regression at the largest M",
        claim_data.untuned,
    ),
    Claim(
        "3a",
        "Leaving the plateau: Hot DoG with and without hot start, r = 0.001",
        claim_data.plateau,
    ),
    Claim(
        "3b",
        "What the hot start is worth at the end, every method",
        claim_data.hot_start_worth,
    ),
    Claim("3c", "Table 3b in short", claim_data.hot_start_in_short),
    Claim("3d", "Two starts of the chains, near and far", claim_data.starts),
    Claim(
        "4",
        "The hot-start test: gradient norms settle, the test passes (iterations)",
        claim_data.gate_timing,
    ),
    Claim("5", "Hot DoG with hot start at different r", claim_data.robustness),
    Claim("6a", "Hot DoG (r = 0.001, hot start) over tuned ADAM", claim_data.against_adam),
    Claim(
        "6b",
        "Other tuning-free methods over Hot DoG (r = 0.001, hot start)",
        claim_data.against_others,
    ),
    Claim("6c", "Table 6b in short", claim_data.others_in_short),
)

READING = (
    "Errors are average squared z-scores at the last iteration. A number with two others in "
    "brackets is a median over trials with its quartiles. Ratios are taken trial by trial; those "
    "of two medians, which the paper's figures show, are marked so. A failed run has an infinite "
    "error (∞); – stands for what is undefined."
)
"""How to read the tables."""


def claim_tables(results: Results) -> dict[str, pd.DataFrame]:
    """Compute every table, by the number of its claim."""
    return {claim.number: claim.table(results) for claim in CLAIMS}


def claims_named(numbers: Sequence[str] | None) -> list[Claim]:
    """Find tables; a number without its letter stands for all that begin with it."""
    for number in numbers or ():
        if not any(claim.number.startswith(number) for claim in CLAIMS):
            known = ", ".join(claim.number for claim in CLAIMS)
            raise StudyError(f"--claim {number}: unknown. The tables are {known}.")
    wanted = tuple(numbers or ("",))
    return [claim for claim in CLAIMS if claim.number.startswith(wanted)]


def claims_markdown(store: Store, numbers: Sequence[str] | None = None) -> str:
    """Render every table, or some, with a line or two about how each is computed."""
    results = load_results(store)
    parts = [f"_{READING}_\n"]
    for claim in claims_named(numbers):
        parts.append(f"### Claim {claim.number}. {claim.title}\n\n{claim.how}\n")
        parts.append(_markdown(claim.table(results)) + "\n")
    return "\n".join(parts)


def _markdown(table: pd.DataFrame) -> str:
    if table.empty:
        return "No results."
    header, rows = cells(table)
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in lines)


def cells(table: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Return header and rows as text; quartiles go into the cell of their median."""
    names = [n for n in table.columns if not n.endswith(("_q25", "_q75"))]
    rows = []
    for record in table.to_dict("records"):
        row = []
        for name in names:
            text = _text(record[name])
            if f"{name}_q25" in record and text != "–":
                low, high = (_text(record[f"{name}_q{q}"]) for q in (25, 75))
                text = f"{text} ({low} to {high})"
            row.append(text)
        rows.append(row)
    return names, rows


def _text(value: Any) -> str:
    """Three significant digits; ∞ for what failed, – for what is undefined."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if np.isnan(value):
        return "–"
    if np.isinf(value):
        return "∞"
    if isinstance(value, int | np.integer) or 100 <= abs(value) < 1e5:
        return f"{value:,.0f}"
    return f"{value:.3g}"
