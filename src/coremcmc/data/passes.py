"""Full passes over the data: a sum over all rows, block by block.

Nothing larger than a block is ever held, whatever the function computes for each row.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from coremcmc.base import DataSource

__all__ = ["full_pass"]

BLOCK_ROWS = 1 << 14


def full_pass(
    data: DataSource,
    function: Callable[..., PyTree],
    arguments: PyTree,
    *,
    progress: Callable[[int], None] | None = None,
    block_rows: int = BLOCK_ROWS,
) -> PyTree:
    """Return Σ over blocks of ``function(arguments, rows, is_row)``.

    Parameters
    ----------
    data
        Where the rows come from. Every row counts once, the last partial block included.
    function
        Hashable, so that its compiled program is found again. ``rows`` has a fixed number of
        rows; those for which ``is_row`` is false are padding and must count for nothing.
    arguments
        Whatever the function depends on.
    progress
        Called with the number of rows done after each block.
    block_rows
        Rows of a block.

    Raises
    ------
    ValueError
        Where the sum is not finite; it names the first block at fault.
    """
    total: Any = None
    running: Any = None  # the device works on one block while the next is cut
    for start, rows, is_row in _padded_blocks(data, block_rows):
        begun = _of_block(function, arguments, rows, is_row)
        total, running = _plus(total, running), begun
        if progress is not None:
            progress(min(start + block_rows, data.num_rows))
    total = _plus(total, running)
    if not _is_finite(total):
        raise ValueError(_name_the_block(data, function, arguments, block_rows))
    return total


@functools.partial(jax.jit, static_argnums=0)
def _of_block(function: Callable, arguments: PyTree, rows: PyTree, is_row: Any) -> PyTree:
    return function(arguments, rows, is_row)


def _plus(total: PyTree, block: PyTree) -> PyTree:
    """Add on the host, where it needs no program."""
    if block is None:
        return total
    block = jax.tree.map(np.asarray, block)
    with np.errstate(invalid="ignore", over="ignore"):  # the caller looks at the sum
        return block if total is None else jax.tree.map(_sum, total, block)


def _sum(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.asarray(one + other)  # of two scalars NumPy would make a number


def _padded_blocks(data: DataSource, block_rows: int) -> Any:
    size = min(block_rows, data.num_rows)
    for start, rows in data.blocks(size):
        count = len(jax.tree.leaves(rows)[0])
        if count < size:  # the first row again, so that a padded row is like any other
            rows = jax.tree.map(
                lambda x, n=size - count: np.concatenate([x, np.repeat(x[:1], n, axis=0)]), rows
            )
        yield start, rows, np.arange(size) < count


def _is_finite(tree: PyTree) -> bool:
    return all(np.isfinite(x).all() for x in jax.tree.leaves(tree))


def _name_the_block(
    data: DataSource, function: Callable, arguments: PyTree, block_rows: int
) -> str:
    for start, rows, is_row in _padded_blocks(data, block_rows):
        if not _is_finite(_of_block(function, arguments, rows, is_row)):
            end = start + int(is_row.sum()) - 1
            return (
                f"the sum over rows {start:,} to {end:,} of data is not finite: the model "
                "overflows there, or the rows hold NaN or infinite values."
            )
    return "the sum over all rows of data overflows, although each block's is finite."
