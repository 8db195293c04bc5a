"""Data that fit in memory."""

import contextlib
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Int

from coremcmc.base import Model, PRNGKey, Rows
from coremcmc.data.permutation import distinct_indices

__all__ = ["MemoryData", "MemoryFeed"]

_ALIGNMENT = 64
_BLOCK_ROWS = 1 << 18
_FINGERPRINT_ROWS = 4096


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class MemoryFeed:
    """All rows on the device; subsamples are gathered there, in O(size)."""

    rows: Rows
    num_rows: int = field(metadata={"static": True})

    def subsample(self, rng_key: PRNGKey, iteration: Int[Array, ""], size: int) -> Rows:
        """``size`` distinct rows, fresh at every iteration."""
        return self.draw(rng_key, iteration, size)[1]

    def draw(
        self, rng_key: PRNGKey, iteration: Int[Array, ""], size: int
    ) -> tuple[Int[Array, " {size}"], Rows]:
        """Return the same rows with their indices."""
        # The barrier keeps the compiler from computing the indices anew for every element that
        # is gathered, which also took some versions for ever to compile.
        indices = jax.lax.optimization_barrier(distinct_indices(rng_key, size, self.num_rows))
        rows = jax.tree.map(lambda x: x.at[indices].get(mode="promise_in_bounds"), self.rows)
        return indices, rows


class MemoryData:
    """Arrays that share their first axis.

    Parameters
    ----------
    rows
        A mapping of names to arrays, or any other pytree of arrays. They keep their dtype. Do not
        change them during a run: where the device is the host, it may read them in place.
    other_columns
        Columns that the model does not read and a selection may, for stratification.
    """

    def __init__(self, rows: Rows, other_columns: Mapping[str, Any] | None = None):
        if isinstance(rows, Mapping):
            rows = {str(name): _no_list(column) for name, column in rows.items()}
        paths, structure = jax.tree_util.tree_flatten_with_path(rows)
        columns = [_as_column(f"data{jax.tree_util.keystr(path)}", x) for path, x in paths]
        self.rows = jax.tree_util.tree_unflatten(structure, columns)
        self._other_columns = dict(other_columns or {})
        self._num_rows = _common_length(self.rows)

    @property
    def num_rows(self) -> int:
        """Return N."""
        return self._num_rows

    def take(self, indices: np.ndarray) -> Rows:
        """Return the rows at these indices."""
        return jax.tree.map(lambda x: x[indices], self.rows)

    def column(self, name: str) -> np.ndarray:
        """Return one column whole."""
        known = {**(self.rows if isinstance(self.rows, Mapping) else {}), **self._other_columns}
        if name not in known:
            names = sorted(known) or "none has a name"
            raise ValueError(f"there is no column {name!r} in data; its columns: {names}.")
        column = np.asarray(known[name])
        if len(column) != self.num_rows:
            raise ValueError(
                f"column {name!r} has {len(column):,} entries, but data has {self.num_rows:,} rows."
            )
        return column

    def feed(self) -> MemoryFeed:
        """Put the rows on the device."""
        rows = jax.device_put(jax.tree.map(_aligned, self.rows))
        return MemoryFeed(rows, self.num_rows)

    def abstract_feed(self) -> MemoryFeed:
        """Return the shapes of the rows."""
        shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), self.rows)
        return MemoryFeed(shapes, self.num_rows)

    def blocks(self, size: int = _BLOCK_ROWS) -> Iterator[tuple[int, Rows]]:
        """Run through the rows once: (first index, rows) of consecutive blocks, tail included."""
        for start in range(0, self.num_rows, size):
            yield start, jax.tree.map(lambda x, s=start: x[s : s + size], self.rows)

    def check(self, model: Model) -> None:
        """Finite everywhere, and of the model's kind; in blocks, so that no copy is made."""
        names = list(self.rows) if isinstance(self.rows, Mapping) else []
        missing = [name for name in model.fields if name not in names]
        if missing:
            raise ValueError(
                f"data lacks the column(s) {missing} that {type(model).__name__} reads; "
                f"its columns: {names or 'none has a name'}."
            )
        for start, block in self.blocks():
            for path, column in jax.tree_util.tree_leaves_with_path(block):
                _check_finite(f"data{jax.tree_util.keystr(path)}", column, start)
            try:
                model.check_rows(block)
            except ValueError as error:
                if start == 0:
                    raise
                raise ValueError(f"{error} (rows counted from row {start:,})") from None

    def fingerprint(self) -> dict[str, Any]:
        """Shapes, dtypes and a digest of evenly spaced rows."""
        leaves = jax.tree_util.tree_leaves_with_path(self.rows)
        chosen = np.unique(np.linspace(0, self.num_rows - 1, _FINGERPRINT_ROWS).astype(np.int64))
        digest = hashlib.blake2b(digest_size=16)
        for _, column in leaves:
            digest.update(np.ascontiguousarray(column[chosen]).tobytes())
        shapes = {jax.tree_util.keystr(p): f"{x.dtype}{list(x.shape)}" for p, x in leaves}
        return {"shapes": shapes, "digest": digest.hexdigest()}


def _aligned(column: np.ndarray) -> np.ndarray:
    """Return the column where XLA can read it in place: contiguous, at a multiple of 64 bytes.

    NumPy's own copy is made on huge pages, which speeds up the gathering of random rows, and is
    the only copy that is made; JAX's would be a second.
    """
    if column.flags.c_contiguous and column.ctypes.data % _ALIGNMENT == 0:
        return column
    buffer = np.empty(column.nbytes + _ALIGNMENT, np.uint8)
    start = -buffer.ctypes.data % _ALIGNMENT
    copy = buffer[start : start + column.nbytes].view(column.dtype).reshape(column.shape)
    copy[...] = column
    return copy


def _no_list(column: Any) -> Any:
    """Turn a list of numbers into an array, before it is taken for a pytree."""
    return np.asarray(column) if isinstance(column, list) else column


def _as_column(name: str, column: Any) -> np.ndarray:
    """Return a column as numbers that the device knows, or say why it cannot be one."""
    if np.ma.is_masked(column):
        raise ValueError(f"{name} has masked entries. Drop or impute such rows before fitting.")
    array = np.asarray(column)
    if array.dtype == object:
        with contextlib.suppress(TypeError, ValueError):
            array = array.astype(np.float64)
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must hold numbers, but its dtype is {array.dtype}. Encode text or categories "
            "as numbers, and drop or impute missing values, first."
        )
    if array.ndim == 0:
        raise ValueError(f"{name} is a single number; it must have one entry per row.")
    if array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _common_length(rows: Rows) -> int:
    paths = jax.tree_util.tree_leaves_with_path(rows)
    lengths = {f"data{jax.tree_util.keystr(path)}": len(column) for path, column in paths}
    if not lengths:
        raise ValueError("data is empty: give at least one array of rows.")
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the arrays of data differ in their number of rows: {lengths}.")
    num_rows = next(iter(lengths.values()))
    if num_rows == 0:
        raise ValueError("data is empty: it has 0 rows.")
    return num_rows


def _check_finite(name: str, column: np.ndarray, start: int) -> None:
    if column.dtype.kind != "f":
        return
    finite = np.isfinite(column).reshape(len(column), -1).all(axis=1)
    if not finite.all():
        where = start + int(np.argmin(finite))
        raise ValueError(
            f"{name} has NaN or infinite values, the first at row {where:,}. "
            "Drop or impute such rows before fitting."
        )
