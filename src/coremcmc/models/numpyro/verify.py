"""A NumPyro model taken apart, against NumPyro's own log density, by numbers, on a few rows."""

import functools
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float

from coremcmc.base import Position, Rows
from coremcmc.models.numpyro.sites import ROW_COUNTS
from coremcmc.pytrees import prepared

__all__ = ["telling_rows", "verify"]

_RADII = (2.0, 2.0, 1.0, 0.5, 0.1, 0.01)  # of the unconstrained positions that are tried
_TOLERANCE = 1e-10  # relative to the sum of the absolute terms
_ROW_TOLERANCE = 1e-8  # a row's term is computed in another order beside other rows
_NUM_ROWS, _NUM_EXTREMES = 48, 24
_NUM_SETS = 6  # of rows, for each number of rows


def telling_rows(rows: Rows) -> np.ndarray:
    """Choose a few rows that differ: at random, and the smallest and largest of some columns.

    A dependence between rows shows only where rows differ, which a random few of a rare class
    would not. Where there are fewer rows than that, some come twice.
    """
    rng = np.random.default_rng(0)
    columns = []
    for leaf in jax.tree.leaves(rows):
        column = leaf.reshape(len(leaf), -1)
        columns += [column[:, j] for j in rng.permutation(column.shape[1])[:1]]
    chosen = rng.permutation(len(columns))[: _NUM_EXTREMES // 2]
    extremes = [i for k in chosen for i in (columns[k].argmin(), columns[k].argmax())]
    num_rows = len(jax.tree.leaves(rows)[0])
    others = rng.integers(num_rows, size=_NUM_ROWS - len(extremes))
    return np.concatenate([np.asarray(extremes, int), others])


def verify(model: Any, rows: Rows) -> None:
    """Raise ``ValueError`` where prior and rows do not add up, or a row's term is not its own."""
    rng = np.random.default_rng(1)
    positions = {
        name: np.stack([rng.uniform(-radius, radius, shape) for radius in _RADII])
        for name, shape in model.sites.latents
    }
    # The same rows at other places and in other company, and fewer of them.
    sets = [rng.permutation(_NUM_ROWS)[:count] for count in ROW_COUNTS for _ in range(_NUM_SETS)]
    found = [_densities(model, positions, jax.tree.map(lambda x, i=i: x[i], rows)) for i in sets]
    priors, terms, wholes = ([np.asarray(part[i]) for part in found] for i in range(3))
    _refuse_unclear(priors, terms, wholes)
    magnitude = 1.0 + np.abs(priors[0])
    if not all(_agree(priors[0], prior, _TOLERANCE * magnitude) for prior in priors):
        raise ValueError(
            "the prior depends on the number of rows, of which the model sees a few at a time. "
            "Give such a number in constants."
        )
    known: dict[int, np.ndarray] = {}
    for chosen, values in zip(sets, terms, strict=True):
        for row, value in zip(chosen.tolist(), values.T, strict=True):
            before = known.setdefault(row, value)
            if not _agree(value, before, _ROW_TOLERANCE * (1.0 + np.abs(before))):
                raise ValueError(
                    "the rows are not separable: the log-likelihood of a row changes with the "
                    "rows around it. Compute means, scales, ranks and lags of rows before the "
                    "model, and leave serial dependence out."
                )
    for prior, values, whole in zip(priors, terms, wholes, strict=True):
        magnitude = 1.0 + np.abs(prior) + np.abs(values).sum(axis=1)
        together = prior + values.sum(axis=1)
        if not _agree(together, whole, _TOLERANCE * magnitude):
            raise ValueError(
                f"the rows are not separable: the prior and the rows add up to {together[0]}, but "
                f"NumPyro's own log density is {whole[0]}. Part of it belongs to neither."
            )


def _refuse_unclear(
    priors: list[np.ndarray], terms: list[np.ndarray], wholes: list[np.ndarray]
) -> None:
    """Raise ``ValueError`` where the numbers are too coarse, or none at all."""
    if {x.dtype for x in [*priors, *terms]} != {np.dtype(np.float64)}:
        raise ValueError(
            "the model computes its log density in 32 bits, which lose the differences that "
            "matter. Leave out float32 types and casts; data are given to it in 64 bits."
        )
    if not any(np.isfinite(whole).any() for whole in wholes):
        raise ValueError(
            f"the log density is not finite at any of {len(_RADII)} random positions around zero, "
            f"on {ROW_COUNTS[0]} rows of data. Standardize the columns of data, and check the "
            "model for overflow and the data for values outside of its support."
        )


def _agree(a: np.ndarray, b: np.ndarray, tolerance: np.ndarray) -> bool:
    """Whether two arrays are the same where finite, and finite in the same places."""
    finite = np.isfinite(a) & np.isfinite(b)
    with np.errstate(invalid="ignore"):
        near = np.abs(a - b) <= tolerance
    return bool(np.all(np.where(finite, near, ~np.isfinite(a) & ~np.isfinite(b))))


@functools.partial(jax.jit, static_argnums=0)
def _densities(
    model: Any, positions: Position, stored_rows: Rows
) -> tuple[Float[Array, " P"], Float[Array, "P rows"], Float[Array, " P"]]:
    """Return the prior, the rows' terms, and NumPyro's log density, at several positions."""
    rows = prepared(model, stored_rows)

    def at(position: Any) -> Any:
        return (
            model.prior_beside(position, rows),
            model.loglikelihood_fn(position, rows),
            model.program.logdensity(position, rows),
        )

    return jax.vmap(at)(positions)
