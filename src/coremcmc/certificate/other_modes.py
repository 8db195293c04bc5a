"""Modes of the coreset posterior that no chain has visited."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from coremcmc.base import Model, Position, Rows
from coremcmc.posterior.derivatives import Derivatives, weighted_derivatives
from coremcmc.posterior.mode import ModeSearch, NoModeError, first_position, newton
from coremcmc.pytrees import flatten, prepared, unflatten

__all__ = ["unvisited_mode"]

_NUM_STARTS = 8
_TOLERANCE = 1e-2  # posterior sds
_MARGIN = 7.0  # a mode whose mass is below e⁻⁷ of the visited one's is of no account


def unvisited_mode(
    model: Model,
    stored_rows: Rows,
    weights: np.ndarray,
    draws: np.ndarray,
    seed: int = 0,
    search: ModeSearch = ModeSearch(),
) -> np.ndarray | None:
    """Climb from several of the model's own starts; return a mode that matters and is far.

    Parameters
    ----------
    draws
        From the coreset posterior, flattened: what has been visited.

    Returns
    -------
    The mode, flattened, or None. It is far if it lies outside of what the draws' mean and
    covariance make of a Gaussian, and matters if its own Gaussian's mass compares with that of
    the best visited mode.
    """
    if not model.is_continuous or draws.shape[1] > search.most_parameters:
        return None
    rows = prepared(model, stored_rows)
    likelihood_at = _likelihood(model, rows, jnp.asarray(weights))
    centre = draws.mean(axis=0)
    covariance = np.atleast_2d(np.cov(draws, rowvar=False))
    dimension = len(centre)
    limit = dimension + 8.0 * np.sqrt(2.0 * dimension) + 20.0
    few = jax.tree.map(lambda x: x[:2], stored_rows)
    starts = [first_position(model, few, seed + i) for i in range(_NUM_STARTS)]
    # And from all around what was visited, whatever the model's own starts are.
    rng = np.random.default_rng(seed)
    wide = 20.0 * draws.std(axis=0) * rng.standard_normal((_NUM_STARTS // 2, dimension))
    starts += [unflatten(x, starts[0]) for x in (-centre, *(centre + wide))]
    visited = _climb(model, likelihood_at, unflatten(centre, starts[0]))
    for start in starts:
        found = _climb(model, likelihood_at, start)
        if found is None:
            continue
        mode, mass = found
        step = mode - centre
        distance = step @ np.linalg.lstsq(covariance, step, rcond=1e-12)[0]
        if distance > limit and (visited is None or mass > visited[1] - _MARGIN):
            return mode
    return None


def _climb(
    model: Model, likelihood_at: Callable[[Position], Derivatives], start: Position
) -> tuple[np.ndarray, float] | None:
    """Return the mode uphill of a start, and the log mass of its Gaussian."""
    try:
        position, likelihood, precision, _ = newton(model, likelihood_at, start, _TOLERANCE)
    except NoModeError:
        return None
    height = float(likelihood.value) + float(_logprior(model, position))
    mass = height - 0.5 * np.linalg.slogdet(precision)[1]
    return flatten(position), mass


def _likelihood(model: Model, rows: Rows, weights: jax.Array) -> Callable:
    def at(position: Position) -> Derivatives:
        found = jax.tree.map(np.asarray, _derivatives(model, position, rows, weights))
        if not np.isfinite(found.value):
            raise ValueError("not finite here")
        return found

    return at


@functools.partial(jax.jit, static_argnums=0)
def _logprior(model: Model, position: Position) -> jax.Array:
    return model.logprior_fn(position)


@functools.partial(jax.jit, static_argnums=0)
def _derivatives(model: Model, position: Position, rows: Rows, weights: jax.Array) -> Derivatives:
    return weighted_derivatives(model, position, rows, weights)
