"""The coreset: M rows and their weights."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coremcmc.files import check_writable, replacing

__all__ = ["Coreset"]


@dataclass(frozen=True, eq=False)
class Coreset:
    """A small weighted subset of the rows.

    Attributes
    ----------
    indices
        Which M rows of the data.
    weights
        Their weights: ``weights_last`` or ``weights_average``, as the settings say.
    weights_last
        w_T, after the last iteration.
    weights_average
        The mean of the weights over the iterations after ``average_start``: the latter half of a
        run that went to its end.
    average_start
        See ``weights_average``.
    rows
        The rows themselves, as they were given.
    num_rows
        N, the number of rows that they stand for.
    """

    indices: np.ndarray
    weights: np.ndarray
    weights_last: np.ndarray
    weights_average: np.ndarray
    average_start: int
    rows: dict[str, np.ndarray]
    num_rows: int

    def __len__(self) -> int:
        return len(self.indices)

    def to_pandas(self, table: Any = None) -> Any:
        """Return a DataFrame: ``row`` (index in the data), ``weight``, and the rows themselves.

        A column of the rows that is itself called ``row`` or ``weight`` gets an underscore.

        Parameters
        ----------
        table
            The whole data as a DataFrame: its own columns are used in place of the model's.
        """
        import pandas

        own = {"row": self.indices, "weight": self.weights}
        if table is None:
            columns = pandas.DataFrame(_flat_columns(self.rows))
        else:
            table = table if hasattr(table, "iloc") else pandas.DataFrame(dict(table))
            if len(table) != self.num_rows:
                raise ValueError(
                    f"table has {len(table):,} rows, but the coreset was chosen from "
                    f"{self.num_rows:,}. Give the table that the fit was made from."
                )
            columns = table.iloc[self.indices].reset_index(drop=True)
        columns = columns.rename(columns={name: f"{name}_" for name in own if name in columns})
        return pandas.concat([pandas.DataFrame(own), columns], axis=1)

    def to_parquet(self, path: str | Path, table: Any = None) -> Path:
        """Write what :meth:`to_pandas` returns to a Parquet file, whole or not at all."""
        path = Path(path)
        check_writable(path, "path")
        frame = self.to_pandas(table)
        with replacing(path) as temporary:
            frame.to_parquet(temporary, index=False)
        return path

    def _repr_html_(self) -> str:
        from coremcmc.report.notebook import coreset_html

        return coreset_html(self)

    def __repr__(self) -> str:
        zeros = int((self.weights == 0).sum())
        return (
            f"Coreset({len(self):,} of {self.num_rows:,} rows, weights sum to "
            f"{self.weights.sum():,.6g}, {zeros} of them zero)"
        )


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
