"""Control variates from passes over the data: made before the training, and mended during it."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from coremcmc.base import DataSource, Model, Position, Rows
from coremcmc.data.passes import full_pass
from coremcmc.gradient.control_variate import ControlVariate, row_spreads
from coremcmc.posterior.derivatives import Derivatives, SumDerivatives, prepared
from coremcmc.pytrees import flatten, unflatten

__all__ = ["ControlPasses", "Largest", "make_control", "revised", "spreads"]


@dataclass(frozen=True)
class ControlPasses:
    """Settings of the passes that make a control variate, and of when it is made anew.

    Parameters
    ----------
    num_exact
        Rows with the largest Taylor remainders, which are evaluated in every iteration.
    block_rows
        Rows of a block of a pass.
    spread_draws
        Draws over which a row's remainder is judged when the control variate moves.
    elsewhere
        Average squared distance of the chains from its centre, in posterior sds, at which it does.
    """

    num_exact: int = 500
    block_rows: int = 1 << 14
    spread_draws: int = 12
    elsewhere: float = 1.0


def make_control(
    model: Model,
    data: DataSource,
    centre: Position,
    likelihood: Derivatives,
    exact: np.ndarray,
    variance_ratio: float,
) -> ControlVariate:
    """Return a control variate, off where it would not help.

    ``likelihood`` holds the derivatives of Σ_n ℓ_n at the centre, ``exact`` the indices of the rows
    that are always evaluated.
    """
    return ControlVariate(
        jax.tree.map(jnp.asarray, centre),
        jnp.asarray(likelihood.gradient),
        jnp.asarray(likelihood.hessian),
        prepared(model, data.take(exact)),
        jnp.asarray(exact),
        jnp.asarray(variance_ratio > 1.0, float),
    )


def revised(
    control: ControlVariate,
    model: Model,
    data: DataSource,
    positions: np.ndarray,
    control_ratio: np.ndarray,
    passes: ControlPasses = ControlPasses(),
) -> ControlVariate | None:
    """Move the control variate to where the chains live, or switch it off; None if it is well.

    Two passes over the data where it moves, none otherwise.

    Parameters
    ----------
    positions
        Of the chains, lately: records × chains × coordinates.
    control_ratio
        Variances of what is summed with the control variate over those without, lately.
    """
    flat = positions.reshape(-1, positions.shape[-1])
    mean, sd = flat.mean(axis=0), flat.std(axis=0)
    step = (mean - flatten(control.centre)) / np.where(sd > 0, sd, 1.0)
    is_off = float(control.strength) == 0.0
    if np.mean(np.square(step)) > passes.elsewhere or (is_off and np.abs(step).max() > 0):
        moved = _moved(control, model, data, mean, flat, passes)
        if moved is not None:
            return moved
    if not is_off and np.median(control_ratio) > 1.0:
        return control._replace(strength=jnp.zeros(()))
    return None


def _moved(
    control: ControlVariate,
    model: Model,
    data: DataSource,
    mean: np.ndarray,
    flat: np.ndarray,
    passes: ControlPasses,
) -> ControlVariate | None:
    """Take the chains' mean for the new centre; None where the sum overflows there."""
    centre = unflatten(mean, control.centre)
    try:
        likelihood = full_pass(data, SumDerivatives(model), centre)
    except ValueError:
        return None
    few = flat[np.linspace(0, len(flat) - 1, passes.spread_draws).astype(int)]
    draws = unflatten(few, control.centre)
    largest, total = Largest(min(passes.num_exact, data.num_rows)), np.zeros(2)
    size = min(passes.block_rows, data.num_rows)
    for start, rows in data.blocks(size):
        variance, remainder = spreads(model, centre, draws, rows, size)
        total += variance.sum(), remainder.sum()
        largest.add(remainder, np.arange(start, start + len(remainder)), remainder)
    left = max(total[1] - largest.values.sum(), 0.0)
    ratio = float(total[0] / left) if left > 0 else np.inf
    return make_control(model, data, centre, likelihood, np.sort(largest.index), ratio)


class Largest:
    """The k entries with the largest keys of a stream."""

    def __init__(self, k: int):
        self.k = k
        self.keys = np.zeros(0)
        self.index = np.zeros(0, np.int64)
        self.values = np.zeros(0)

    def add(self, keys: np.ndarray, index: np.ndarray, values: np.ndarray) -> None:
        """Take in a block of the stream."""
        keys = np.concatenate([self.keys, keys])
        index = np.concatenate([self.index, index])
        values = np.concatenate([self.values, values])
        if len(keys) > self.k:
            kept = np.argpartition(keys, len(keys) - self.k)[len(keys) - self.k :]
            keys, index, values = keys[kept], index[kept], values[kept]
        self.keys, self.index, self.values = keys, index, values


def spreads(
    model: Model, centre: Position, draws: Position, rows: Rows, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Variances over the draws of ℓ_n and of its Taylor remainder, padded to ``size`` rows."""
    count = len(jax.tree.leaves(rows)[0])
    size = size if count > 64 else count
    if count < size:
        rows = jax.tree.map(
            lambda x: np.concatenate([x, np.repeat(x[:1], size - count, axis=0)]), rows
        )
    variance, remainder = row_spreads(model, centre, draws, rows)
    return np.array(variance)[:count], np.array(remainder)[:count]
