"""The coreset: how its weights are spread, and its heaviest rows with their data."""

from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from coremcmc.coreset import Coreset
from coremcmc.report.formatting import cell, count, number, percent
from coremcmc.report.svg import Chart, Figure

__all__ = [
    "RowTable",
    "check_coreset_table",
    "effective_rows",
    "heaviest_rows",
    "weight_facts",
    "weight_figures",
]

_BINS = 32
_MOST_COLUMNS = 30


def effective_rows(weights: np.ndarray) -> float:
    """(Σw)²/Σw², the number of equally heavy rows that the weights amount to."""
    squares = float(np.square(weights).sum())
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0


def _half(weights: np.ndarray) -> int:
    """Return how many of the heaviest rows carry half of the weight."""
    shares = np.cumsum(np.sort(weights)[::-1])
    return int(np.searchsorted(shares, 0.5 * shares[-1])) + 1


def weight_facts(coreset: Coreset) -> list[tuple[str, str, str]]:
    """Name, number and explanation of what the weights amount to."""
    weights = np.asarray(coreset.weights, dtype=float)
    size, total = len(weights), float(weights.sum())
    zeros = int((weights == 0).sum())
    facts = [
        ("Rows", count(size), f"of {coreset.num_rows:,}, {percent(size / coreset.num_rows)}"),
        (
            "Effective number of rows",
            count(effective_rows(weights)),
            f"{percent(effective_rows(weights) / size)} of M; (Σw)²/Σw²",
        ),
        ("Zero weights", count(zeros), "rows that drop out altogether"),
        ("Sum of weights", number(total, 6), f"{number(total / coreset.num_rows, 4)} × N"),
    ]
    if total > 0:
        share = float(weights.max()) / total
        facts.append(("Largest weight", number(weights.max(), 4), f"{percent(share)} of the sum"))
    return facts


def weight_figures(coreset: Coreset) -> list[Figure]:
    """Draw a histogram of the weights, and the share that the heaviest rows carry."""
    weights = np.asarray(coreset.weights, dtype=float)
    positive = weights[np.isfinite(weights) & (weights > 0)]
    if positive.size == 0:
        return []
    return [_histogram(positive, weights, coreset.num_rows), _shares(positive)]


def _histogram(positive: np.ndarray, weights: np.ndarray, num_rows: int) -> Figure:
    start = num_rows / len(weights)
    low, high = float(min(positive.min(), start)), float(max(positive.max(), start))
    # Weights next to nothing would take most of a logarithmic axis.
    low = max(low, float(np.quantile(positive, 0.02)) / 10, high * 1e-6)
    is_log = high > 4 * low
    if high <= 1.001 * low:
        low, high = 0.5 * low, 1.5 * high
    edges = np.geomspace(low, high, _BINS + 1) if is_log else np.linspace(low, high, _BINS + 1)
    counts, _ = np.histogram(np.maximum(positive, edges[0]), edges)
    label = f"Histogram of {len(positive):,} positive weights"
    chart = Chart(label, (edges[0], edges[-1]), (0.0, 1.08 * float(counts.max())), x_log=is_log)
    for left, right, height in zip(edges[:-1], edges[1:], counts, strict=True):
        if height:
            chart.bar((float(left), float(right)), (0.0, float(height)), "fill-bar")
    chart.vertical(start, "c2 dash")
    chart.frame("weight (log scale)" if is_log else "weight", "rows")
    place = float(chart.x.place(start))
    is_right = place > 0.6 * chart.size[0]
    text = f"N/M = {number(start, 4)}"
    chart.text((place + (-5 if is_right else 5), 33), text, "note", "end" if is_right else "start")
    zeros = int((weights == 0).sum())
    apart = f" {zeros:,} zero weights are not drawn." if zeros else ""
    if positive.min() < edges[0]:
        apart += f" The first bar holds all weights below {number(edges[1], 2)}."
    return Figure(
        "Weights",
        (chart.svg(),),
        "How many rows have which weight: the number of rows of the data that each stands for. "
        "Dashed, what all would have if they were equal. A few weights far to the right mean that "
        f"the posterior hangs on those rows.{apart}",
    )


def _shares(positive: np.ndarray) -> Figure:
    ranked = np.sort(positive)[::-1]
    shares = np.concatenate([[0.0], 100 * np.cumsum(ranked) / ranked.sum()])
    half, size = _half(positive), len(positive)
    chart = Chart("Share of the weight that the heaviest rows carry", (0, size), (0, 100))
    chart.line([0, size], [0, 100], "zero")
    at = np.unique(np.linspace(0, size, 121).astype(int))
    chart.line(at, shares[at], "c1 strong")
    reached = shares[half]
    chart.line([half, half], [0, reached], "c2 dash")
    chart.line([0, half], [reached, reached], "c2 dash")
    chart.dots([half], [reached], "point-c2")
    chart.frame("heaviest rows", "% of the weight")
    return Figure(
        "Who carries the weight",
        (chart.svg(),),
        f"Share of the total weight that the heaviest rows carry together: half of it lies on "
        f"{half:,} of {size:,} rows (dashed). The straight line is that of equal weights; a "
        "curve that leaps up at the left means that few rows decide.",
    )


@dataclass(frozen=True)
class RowTable:
    """Rows as text.

    Attributes
    ----------
    columns
        Names of the data's columns.
    rows
        Row number, weight, share of the sum, then a text for each column.
    num_left_out
        How many columns are not shown.
    """

    columns: list[str]
    rows: list[list[str]]
    num_left_out: int


def check_coreset_table(table: Any, coreset: Coreset) -> None:
    """Raise where a table is not one of the coreset's rows."""
    if not hasattr(table, "iloc") or not hasattr(table, "columns"):
        raise ValueError(
            "coreset_table must be a pandas DataFrame, such as fit.coreset.to_pandas(table); got "
            f"{type(table).__name__}."
        )
    if len(table) != len(coreset):
        raise ValueError(
            f"coreset_table must have a row for each of the coreset's {len(coreset):,}, in their "
            f"order; got {len(table):,}. fit.coreset.to_pandas(table) makes one from the whole "
            "table."
        )


def heaviest_rows(coreset: Coreset, table: Any = None, most: int = 12) -> RowTable:
    """Return the rows with the largest weights.

    Parameters
    ----------
    table
        A DataFrame with a row for each of the coreset's; the model's own columns if None. Its
        columns ``row`` and ``weight``, as ``Coreset.to_pandas`` makes them, are not repeated.
    """
    weights = np.asarray(coreset.weights, dtype=float)
    order = np.argsort(-weights, kind="stable")[:most]
    numbers = coreset.indices
    if table is None:
        columns, num_left_out = _model_columns(coreset.rows)
    else:
        check_coreset_table(table, coreset)
        names = list(table.columns)
        places = list(range(len(names)))
        if "row" in names:
            numbers = np.asarray(table.iloc[:, names.index("row")])
            places.remove(names.index("row"))
        if "weight" in names and _is_same(table.iloc[:, names.index("weight")], weights):
            places.remove(names.index("weight"))
        shown = places[:_MOST_COLUMNS]
        columns = [(str(names[i]), table.iloc[:, i].to_numpy()) for i in shown]
        num_left_out = len(places) - len(shown)
    total = float(weights.sum()) or 1.0
    rows = [
        [
            cell(numbers[i]),
            number(weights[i], 4),
            percent(weights[i] / total),
            *(cell(values[i]) for _, values in columns),
        ]
        for i in order
    ]
    return RowTable([name for name, _ in columns], rows, num_left_out)


def _is_same(column: Any, weights: np.ndarray) -> bool:
    try:
        return bool(np.allclose(np.asarray(column, dtype=float), weights))
    except (TypeError, ValueError):
        return False


def _model_columns(rows: dict[str, np.ndarray]) -> tuple[list[tuple[str, np.ndarray]], int]:
    """Split matrices into columns; vectors come first, for the response is one of them."""
    columns = []
    for name, values in sorted(rows.items(), key=lambda item: np.ndim(item[1]) > 1):
        values = np.asarray(values)
        if values.ndim == 1:
            columns.append((name, values))
            continue
        for place in islice(np.ndindex(*values.shape[1:]), _MOST_COLUMNS):
            columns.append((f"{name}[{','.join(map(str, place))}]", values[:, *place]))
    total = sum(int(np.prod(np.shape(values)[1:])) for values in rows.values())
    shown = columns[:_MOST_COLUMNS]
    return shown, total - len(shown)
