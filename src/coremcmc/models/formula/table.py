"""The table that a formula reads: where it comes from, its types, and what is missing in it."""

import os
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from coremcmc.data.tables import read_table, table_columns

__all__ = ["Table"]


class Table:
    """A table whose columns are known, and which is read when it is known which are needed.

    Parameters
    ----------
    source
        A pandas table (or what turns into one), a mapping of names to arrays, or a path for
        :func:`coremcmc.read_table`.
    """

    def __init__(self, source: Any):
        self._is_path = isinstance(source, (str, os.PathLike))
        self._source = source if self._is_path else _as_frame(source)
        if self._is_path:
            self.columns = table_columns(source)
        else:
            self.columns = [str(name) for name in self._source.columns]

    def take(self, names: tuple[str, ...], missing: str) -> tuple[Any, np.ndarray]:
        """Return these columns of the rows without missing values, and the rows' numbers.

        ``missing`` is ``"refuse"`` or ``"drop"``.
        """
        import pandas as pd

        found = read_table(self._source, columns=names) if self._is_path else self._source
        columns = {name: self._column(found, name) for name in names}
        num_rows = len(found)
        if num_rows == 0:
            raise ValueError("the table has no rows.")
        keep = _present(columns, num_rows, missing)
        rows = np.arange(num_rows) if keep is None else np.flatnonzero(keep)
        typed = {}
        for name, column in columns.items():
            column = column if keep is None else column[keep]
            typed[name] = _typed(name, column.reset_index(drop=True))
        return pd.DataFrame(typed, copy=False), rows

    def _column(self, frame: Any, name: str) -> Any:
        places = [i for i, found in enumerate(frame.columns) if str(found) == name]
        if len(places) > 1:
            raise ValueError(
                f"the table has more than one column of the name {name!r}. Rename one of them."
            )
        return frame.iloc[:, places[0]]


def _as_frame(source: Any) -> Any:
    import pandas as pd

    if isinstance(source, pd.DataFrame):
        return source
    if hasattr(source, "to_pandas"):  # polars, Arrow
        return source.to_pandas()
    if not isinstance(source, Mapping):
        raise ValueError(
            "table must be a pandas table, a mapping of names to arrays, or a path, not a "
            f"{type(source).__name__}."
        )
    columns = {str(name): np.asarray(column) for name, column in source.items()}
    for name, column in columns.items():
        if column.ndim != 1:
            raise ValueError(
                f"column {name!r} of the table has shape {column.shape}; it must have one value "
                "for each row. Give the columns of a matrix names of their own."
            )
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the columns of the table differ in their number of rows: {lengths}.")
    return pd.DataFrame(columns, copy=False)


def _present(columns: dict[str, Any], num_rows: int, missing: str) -> np.ndarray | None:
    """Return which rows lack nothing; None where all do."""
    absent = {name: column.isna().to_numpy() for name, column in columns.items()}
    counts = {name: int(mask.sum()) for name, mask in absent.items() if mask.any()}
    if not counts:
        return None
    for name, count in counts.items():
        if count == num_rows:
            raise ValueError(
                f"column {name!r} has no value at all: it is missing in every row. Take it out of "
                "the formula."
            )
    keep = ~np.any(list(absent.values()), axis=0)
    lost = num_rows - int(keep.sum())
    which = ", ".join(f"{name!r} ({count:,})" for name, count in counts.items())
    if missing == "refuse":
        raise ValueError(
            f"values are missing in {which}: {lost:,} of {num_rows:,} rows in all. Leave those "
            "rows out with missing='drop' (--drop-missing), or fill them beforehand."
        )
    if lost == num_rows:
        raise ValueError(
            f"no row is left: every one lacks a value in {which}. Take a column out of the formula."
        )
    warnings.warn(
        f"{lost:,} of {num_rows:,} rows were left out, because values are missing in {which}.",
        stacklevel=4,
    )
    return keep


def _typed(name: str, column: Any) -> Any:
    """A column in a type that formulaic knows: NumPy's, text, or categories."""
    import pandas as pd

    dtype = column.dtype
    is_object = dtype == np.dtype(object)
    if isinstance(dtype, pd.CategoricalDtype) or (isinstance(dtype, np.dtype) and not is_object):
        return column
    if is_object:
        kind = pd.api.types.infer_dtype(column, skipna=True)
        if kind in ("integer", "floating", "mixed-integer-float", "decimal"):
            return column.astype(np.float64)
        if kind == "boolean":
            return column.astype(bool)
        if kind in ("date", "datetime", "datetime64"):
            return pd.to_datetime(column)
        if kind != "string":
            what = " and ".join(sorted({type(value).__name__ for value in column})[:3])
            raise ValueError(
                f"column {name!r} mixes types: it holds {what}. Give it one type, numbers or text."
            )
        return column
    if pd.api.types.is_bool_dtype(dtype):
        return column.astype(bool)
    if pd.api.types.is_integer_dtype(dtype):
        return column.astype(np.int64)
    if pd.api.types.is_numeric_dtype(dtype):
        return column.astype(np.float64)
    if pd.api.types.is_datetime64_any_dtype(dtype):
        return pd.Series(pd.to_datetime(column))
    return column.astype(object)
