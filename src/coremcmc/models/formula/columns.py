"""Locations and scales of the columns of a matrix, in two passes over its rows.

The scale is what a prior of unit scale should mean for a column: one standard deviation; for a
column of two values, a category or a yes and no, the step between them; for a product of columns,
which is zero wherever a category is another one, the standard deviation where it is not zero.
They are rounded to four digits, which nobody notices in a prior, so that the last bit of a sum,
which machines compute differently, does not make another model.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

__all__ = ["Standardization", "rounded_location", "rounded_scale", "row_blocks", "standardize"]

_BLOCK_ENTRIES = 1 << 19


class Standardization(NamedTuple):
    """What a pass found of each column.

    Attributes
    ----------
    location, scale
        To be subtracted, and to divide by. The scale of a constant column is its size, or 1.
    is_constant
        Whether the column has one value only.
    largest
        The largest absolute value.
    """

    location: np.ndarray
    scale: np.ndarray
    is_constant: np.ndarray
    largest: np.ndarray


def standardize(matrix: np.ndarray, names: tuple[str, ...], centre: bool) -> Standardization:
    """Find locations and scales; without ``centre`` the locations are zero."""
    num_rows, p = matrix.shape
    lowest, highest = np.full(p, np.inf), np.full(p, -np.inf)
    total, nonzero = np.zeros(p), np.zeros(p)
    for block in row_blocks(matrix):
        lowest, highest = np.minimum(lowest, block.min(0)), np.maximum(highest, block.max(0))
        total += block.sum(0, dtype=np.float64)
        nonzero += np.count_nonzero(block, axis=0)
    nonzero = np.maximum(nonzero, 1)
    mean, mean_nonzero = total / num_rows, total / nonzero
    squares, squares_nonzero, between = np.zeros(p), np.zeros(p), np.zeros(p)
    for block in row_blocks(matrix):
        squares += np.square(block - mean).sum(0)
        squares_nonzero += (np.square(block - mean_nonzero) * (block != 0)).sum(0)
        between += ((block != lowest) & (block != highest)).sum(0)
    sd, sd_nonzero = np.sqrt(squares / num_rows), np.sqrt(squares_nonzero / nonzero)
    largest = np.maximum(np.abs(lowest), np.abs(highest))
    is_constant = lowest == highest
    is_product = np.array([":" in name for name in names], bool)
    scale = np.where(is_product & (sd_nonzero > 1e-6 * largest), sd_nonzero, sd)
    scale = np.where(between == 0, highest - lowest, scale)
    scale = np.where(is_constant, np.where(largest > 0, largest, 1.0), scale)
    scale = np.array([rounded_scale(s) for s in scale])
    location = np.array([rounded_location(m, s) for m, s in zip(mean, scale, strict=True)])
    return Standardization(location if centre else np.zeros(p), scale, is_constant, largest)


def row_blocks(matrix: np.ndarray) -> Iterator[np.ndarray]:
    """Run through the rows, some at a time."""
    rows = max(1, _BLOCK_ENTRIES // max(1, matrix.shape[1]))
    for start in range(0, len(matrix), rows):
        yield matrix[start : start + rows]


def rounded_scale(scale: float) -> float:
    """Round to four significant digits."""
    return float(f"{scale:.4g}")


def rounded_location(mean: float, scale: float) -> float:
    """Round to a thousandth of the scale, or a little less."""
    return round(float(mean), 3 - math.floor(math.log10(scale)))
