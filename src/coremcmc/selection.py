"""Which M rows form the coreset, and the weights that they start with."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from coremcmc.base import DataSource

__all__ = [
    "SELECTIONS",
    "Selected",
    "Selection",
    "Stratified",
    "Uniform",
    "choose_rows",
    "starting_weights",
    "within_bound",
]


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


SELECTIONS = {"uniform": Uniform}
"""Rules by the name under which ``fit(selection=…)`` knows them."""


def choose_rows(selection: Any, data: DataSource, size: int, seed: int) -> Selected:
    """Choose the coreset's rows by a rule, its name, or an array of their indices."""
    if isinstance(selection, str):
        if selection not in SELECTIONS:
            known = ", ".join(SELECTIONS)
            raise ValueError(f"selection={selection!r} is unknown; choose from {known}.")
        selection = SELECTIONS[selection]()
    if isinstance(selection, list) or hasattr(selection, "__array__"):
        return _given_rows(np.asarray(selection), data.num_rows, size)
    if isinstance(selection, Selection) and not isinstance(selection, type):
        return selection(np.random.default_rng([seed, 1]), data, size)
    raise ValueError(
        "selection must be 'uniform', a selection such as Stratified('y'), or an array of "
        f"row indices, not {selection!r}."
    )


def _given_rows(indices: np.ndarray, num_rows: int, coreset_size: int) -> Selected:
    if indices.shape != (coreset_size,) or indices.dtype.kind not in "iu":
        raise ValueError(
            f"selection as an array must hold coreset_size = {coreset_size} integers; got shape "
            f"{indices.shape} and dtype {indices.dtype}."
        )
    if indices.min() < 0 or indices.max() >= num_rows or len(np.unique(indices)) < coreset_size:
        raise ValueError(f"selection must hold distinct row indices from 0 to {num_rows - 1:,}.")
    return Selected(indices, np.full(coreset_size, num_rows / coreset_size))


def within_bound(weights: np.ndarray, bound: float | None) -> np.ndarray:
    """Scale weights that were not given by the user down to ``max_weight_sum``."""
    return weights if bound is None else weights * min(1.0, bound / weights.sum())


def starting_weights(
    given: Any, selected: Selected, num_rows: int, bound: float | None = None
) -> np.ndarray:
    """Return w_0: N/M each, what the selection gives, or an array; checked.

    ``"least_squares"`` stands for the selection's until the guide has fitted others.
    """
    size = len(selected.indices)
    if isinstance(given, str):
        if given not in ("uniform", "selection", "least_squares"):
            raise ValueError(
                "initial_weights must be 'uniform' (N/M each), 'selection' (what the selection "
                "gives), 'least_squares' (fitted at the mode) or an array, not "
                f"{given!r}."
            )
        weights = np.full(size, num_rows / size) if given == "uniform" else selected.weights
    else:
        try:
            weights = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError("initial_weights must be numbers.") from None
        if weights.shape != (size,) or not np.isfinite(weights).all() or (weights < 0).any():
            raise ValueError(
                f"initial_weights must be {size} finite numbers, none negative; got an array of "
                f"shape {weights.shape} with minimum {weights.min() if weights.size else 'none'}."
            )
    if bound is not None and weights.sum() > bound * (1 + 1e-12):
        raise ValueError(
            f"the initial weights sum to {weights.sum():,.6g}, more than max_weight_sum = "
            f"{bound:,.6g}. Raise the bound (the paper's choice is the number of rows, "
            f"{num_rows:,}) or give smaller initial_weights."
        )
    return weights.astype(np.float64)
