"""Which M rows form the coreset."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from coremcmc.base import DataSource

__all__ = ["Selected", "Selection", "Stratified", "Uniform"]


class Selected(NamedTuple):
    """Chosen rows.

    Attributes
    ----------
    indices
        Their M distinct indices, ascending.
    weights
        Weights under which the coreset's sums are unbiased for those of the data: N/M for a
        uniform choice, stratum size over stratum count for a stratified one.
    """

    indices: np.ndarray
    weights: np.ndarray


@runtime_checkable
class Selection(Protocol):
    """A rule that chooses the coreset's rows."""

    def __call__(self, rng: np.random.Generator, data: DataSource, size: int) -> Selected:
        """Choose ``size`` distinct rows."""
        ...


@dataclass(frozen=True)
class Uniform:
    """All rows equally likely, without replacement."""

    def __call__(self, rng: np.random.Generator, data: DataSource, size: int) -> Selected:
        """Choose ``size`` distinct rows."""
        indices = np.sort(rng.choice(data.num_rows, size, replace=False))
        return Selected(indices, np.full(size, data.num_rows / size))


@dataclass(frozen=True)
class Stratified:
    """Equal shares for each value of a column, as far as its rows go.

    With two classes this is the paper's rule for rare events: all rows of the rare class if they
    are less than half of the coreset, else half of the coreset from each class. Within a class,
    rows are chosen uniformly without replacement.
    """

    column: str
    max_strata: int = 100

    def __call__(self, rng: np.random.Generator, data: DataSource, size: int) -> Selected:
        """Choose ``size`` distinct rows."""
        values = np.asarray(data.column(self.column))
        if values.ndim != 1:
            raise ValueError(
                f"selection: column {self.column!r} has shape {values.shape}; stratify by a "
                "column with one value per row."
            )
        strata, membership, sizes = np.unique(values, return_inverse=True, return_counts=True)
        if len(strata) == 1:
            raise ValueError(
                f"selection: column {self.column!r} is constant ({strata[0]}), so it cannot "
                "stratify. Choose another column, or selection='uniform'."
            )
        if len(strata) > min(self.max_strata, size):
            raise ValueError(
                f"selection: column {self.column!r} has {len(strata):,} distinct values, more "
                f"than {min(self.max_strata, size):,} (max_strata, and one row each). Group them "
                "first."
            )
        counts = _equal_shares(sizes, size)
        indices, weights = [], []
        for stratum, count in enumerate(counts):
            members = np.flatnonzero(membership == stratum)
            indices.append(rng.choice(members, count, replace=False))
            weights.append(np.full(count, sizes[stratum] / count))
        order = np.argsort(np.concatenate(indices))
        return Selected(np.concatenate(indices)[order], np.concatenate(weights)[order])


def _equal_shares(sizes: np.ndarray, total: int) -> np.ndarray:
    """Split ``total`` over strata as evenly as their sizes allow, the smallest first."""
    counts = np.zeros_like(sizes)
    left = total
    for position, stratum in enumerate(np.argsort(sizes, kind="stable")):
        share = left // (len(sizes) - position)
        counts[stratum] = min(sizes[stratum], share)
        left -= counts[stratum]
    return counts
