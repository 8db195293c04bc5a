"""A coreset as a table that other programs read: row index, weight, and the row itself."""

from pathlib import Path
from typing import Any

import numpy as np

from coremcmc.files import check_writable, replacing

__all__ = ["to_pandas", "to_parquet"]

_OWN = ("row", "weight")


def to_pandas(coreset: Any, table: Any = None) -> Any:
    """Return a DataFrame: row, weight, then the table's columns or the model's.

    A column of the rows that is itself called ``row`` or ``weight`` gets an underscore.
    """
    import pandas

    own = {"row": coreset.indices, "weight": coreset.weights}
    if table is None:
        columns = pandas.DataFrame(_flat_columns(coreset.rows))
    else:
        table = table if hasattr(table, "iloc") else pandas.DataFrame(dict(table))
        if len(table) != coreset.num_rows:
            raise ValueError(
                f"table has {len(table):,} rows, but the coreset was chosen from "
                f"{coreset.num_rows:,}. Give the table that the fit was made from."
            )
        columns = table.iloc[coreset.indices].reset_index(drop=True)
    columns = columns.rename(columns={name: f"{name}_" for name in _OWN if name in columns})
    return pandas.concat([pandas.DataFrame(own), columns], axis=1)


def to_parquet(coreset: Any, path: Path, table: Any = None) -> Path:
    """Write the DataFrame to a Parquet file, whole or not at all."""
    check_writable(path, "path")
    frame = to_pandas(coreset, table)
    with replacing(path) as temporary:
        frame.to_parquet(temporary, index=False)
    return path


def _flat_columns(rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Split matrices into a column each, ``x_0``, ``x_1``, …"""
    columns = {}
    for name, values in rows.items():
        if values.ndim == 1:
            columns[name] = values
            continue
        flat = values.reshape(len(values), -1)
        columns |= {f"{name}_{i}": flat[:, i] for i in range(flat.shape[1])}
    return columns
