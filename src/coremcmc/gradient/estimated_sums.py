"""Σ_n ℓ_n(θ) at many positions, estimated from some rows: the same function at every call."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from coremcmc.base import DataSource, Model, Position, Rows
from coremcmc.gradient.control_variate import ControlVariate, quadratic
from coremcmc.posterior.derivatives import prepared, taylor_terms
from coremcmc.pytrees import unflatten

__all__ = ["EstimatedSums"]


class EstimatedSums:
    """The polynomial, where it is on, the exact rows, and the remainder of a fixed subsample.

    Unbiased over the choice of ``rows``, which are distinct indices, all equally likely.
    """

    def __init__(self, model: Model, data: DataSource, control: ControlVariate, rows: np.ndarray):
        self._model, self._control = model, control
        self._rows = prepared(model, data.take(rows))
        self._counts = ~np.isin(rows, np.asarray(control.exact_indices))
        self._scale = data.num_rows / len(rows)

    def __call__(self, flat: np.ndarray) -> np.ndarray:
        """Return the sums at flattened positions, one a row, up to a constant."""
        return self.with_priors(flat)[0]

    def with_priors(self, flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums, and the log prior at each position."""
        positions = unflatten(flat, self._control.centre)
        totals, prior = _totals(
            self._model, self._control, positions, self._rows, self._counts, self._scale
        )
        return np.asarray(totals), np.asarray(prior)


@functools.partial(jax.jit, static_argnums=0)
def _totals(
    model: Model,
    control: ControlVariate,
    positions: Position,
    rows: Rows,
    counts: Bool[Array, " S"],
    scale: Any,
) -> tuple[Float[Array, " J"], Float[Array, " J"]]:
    def remainder(position):
        values, polynomials = taylor_terms(model, control.centre, position, rows)
        exact, known = taylor_terms(model, control.centre, position, control.exact_rows)
        others = jnp.where(counts, values - control.strength * polynomials, 0.0).sum()
        sums = (exact - control.strength * known).sum() + scale * others
        return sums, model.logprior_fn(position)

    remainders, prior = jax.lax.map(remainder, positions, batch_size=32)
    return control.strength * quadratic(control, positions) + remainders, prior
