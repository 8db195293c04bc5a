"""The heaviest rows of the coreset, with their data."""

from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from coremcmc.report.formatting import cell, number, percent

__all__ = ["RowTable", "check_coreset_table", "heaviest_rows"]

_MOST_COLUMNS = 30


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


def check_coreset_table(table: Any, coreset: Any) -> None:
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


def heaviest_rows(coreset: Any, table: Any = None, most: int = 12) -> RowTable:
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
