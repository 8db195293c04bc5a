"""The sum over all rows, estimated from a few: a Taylor polynomial takes most of its variance.

With θ̂ near the mode and T_n the second-order Taylor polynomial of ℓ_n there,

    Σ_n ℓ_n(θ) = Σ_n T_n(θ) + Σ_n (ℓ_n − T_n)(θ).

The first sum is a quadratic whose coefficients one full pass gives exactly. The second is small and
is estimated on the S rows of a subsample; the few rows that carry most of its variance are always
evaluated. The estimate is unbiased for any θ̂.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int

from coremcmc.base import DataSource, Model, Position, Rows
from coremcmc.posterior.derivatives import prepared, taylor_terms
from coremcmc.pytrees import unflatten

__all__ = [
    "ControlVariate",
    "EstimatedSums",
    "Totals",
    "controlled_totals",
    "quadratic",
    "row_spreads",
]


class ControlVariate(NamedTuple):
    """What is known of all rows.

    Attributes
    ----------
    centre
        θ̂.
    gradient, hessian
        Of Σ_n ℓ_n at θ̂, exactly.
    exact_rows, exact_indices
        Rows that are evaluated at every iteration, as the model prepares them, and which of the
        data's they are, ascending.
    strength
        1, or 0 where the polynomials do not help: then all but the exact rows are estimated from
        the subsample alone. The estimate is unbiased for any value.
    """

    centre: Position
    gradient: Float[Array, " d"]
    hessian: Float[Array, "d d"]
    exact_rows: Rows
    exact_indices: Int[Array, " E"]
    strength: Any = 1.0

    def has_exact(self, indices: Int[Array, " S"]) -> Bool[Array, " S"]:
        """Tell which of the given rows are among the exact ones."""
        place = jnp.searchsorted(self.exact_indices, indices)
        place = jnp.minimum(place, self.exact_indices.shape[0] - 1)
        return self.exact_indices[place] == indices


class Totals(NamedTuple):
    """An estimate, up to a constant, of Σ_n ℓ_n(θ_k) for each of K chains.

    Attributes
    ----------
    value
        The estimate.
    plain_variance, remaining_variance
        Sample variance over the subsample of what is summed, without and with the control
        variate, averaged over the chains: their ratio is what the control variate gains.
    """

    value: Float[Array, " K"]
    plain_variance: Float[Array, ""]
    remaining_variance: Float[Array, ""]


def controlled_totals(
    model: Model,
    control: ControlVariate,
    positions: Position,
    subsample: Rows,
    is_exact: Bool[Array, " S"],
    num_rows: int,
) -> Totals:
    """Estimate the totals from a uniform subsample of S rows.

    ``is_exact`` marks those of them that are also among the exact rows, and count there.
    """
    size = is_exact.shape[0]
    # The exact rows with the others: one product of matrices, not two.
    rows = jax.tree.map(lambda *parts: jnp.concatenate(parts), subsample, control.exact_rows)
    remainder, values, polynomials = jax.vmap(lambda x: _remainders(model, control, x, rows))(
        positions
    )
    exact = remainder[:, size:].sum(axis=1)
    remainder = jnp.where(is_exact, 0.0, remainder[:, :size])
    # Centring comes before summing: the terms are of the order of 1, their sums of 10^6.
    remainder = remainder - remainder.mean(axis=0)
    polynomial = control.strength * quadratic(control, positions)
    total = polynomial + exact + num_rows / size * remainder.sum(axis=1)
    values, polynomials = values[:, :size], polynomials[:, :size]
    centred = values - values.mean(axis=0)
    # What the polynomials leave is told also while they are switched off.
    left = jnp.where(is_exact, 0.0, values - polynomials)
    left = left - left.mean(axis=0)
    return Totals(total, centred.var(axis=1).mean(), left.var(axis=1).mean())


def _remainders(
    model: Model, control: ControlVariate, position: Position, rows: Rows
) -> tuple[Float[Array, " rows"], Float[Array, " rows"], Float[Array, " rows"]]:
    """Return what the quadratic leaves of each row, to be summed or estimated, then ℓ_n and T_n."""
    values, polynomials = taylor_terms(model, control.centre, position, rows)
    return values - control.strength * polynomials, values, polynomials


class EstimatedSums:
    """Σ_n ℓ_n(θ) at many positions, estimated from fixed rows: the same function at every call.

    Unbiased over the choice of ``rows``, which are distinct indices, all equally likely.
    """

    def __init__(self, model: Model, data: DataSource, control: ControlVariate, rows: np.ndarray):
        self._model, self._control = model, control
        self._rows = prepared(model, data.take(rows))
        self._is_exact = np.isin(rows, np.asarray(control.exact_indices))
        self._scale = data.num_rows / len(rows)

    def __call__(self, flat: np.ndarray) -> np.ndarray:
        """Return the sums at flattened positions, one a row, up to a constant."""
        return self.with_priors(flat)[0]

    def with_priors(self, flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums, and the log prior at each position."""
        positions = unflatten(flat, self._control.centre)
        totals, prior = _totals(
            self._model, self._control, positions, self._rows, self._is_exact, self._scale
        )
        return np.asarray(totals), np.asarray(prior)


@functools.partial(jax.jit, static_argnums=0)
def _totals(
    model: Model,
    control: ControlVariate,
    positions: Position,
    rows: Rows,
    is_exact: Bool[Array, " S"],
    scale: Any,
) -> tuple[Float[Array, " J"], Float[Array, " J"]]:
    def one(position: Position) -> Any:
        remainder, *_ = _remainders(model, control, position, rows)
        exact, *_ = _remainders(model, control, position, control.exact_rows)
        others = jnp.where(is_exact, 0.0, remainder).sum()
        return exact.sum() + scale * others, model.logprior_fn(position)

    remainders, prior = jax.lax.map(one, positions, batch_size=32)
    return control.strength * quadratic(control, positions) + remainders, prior


def quadratic(control: ControlVariate, positions: Position) -> Float[Array, " K"]:
    """Σ_n T_n(θ_k) without its constant."""
    centre = ravel_pytree(control.centre)[0]
    steps = jax.vmap(lambda position: ravel_pytree(position)[0])(positions) - centre
    return steps @ control.gradient + 0.5 * jnp.einsum("ki,ij,kj->k", steps, control.hessian, steps)


@functools.partial(jax.jit, static_argnums=0)
def row_spreads(
    model: Model, centre: Position, positions: Position, rows: Rows
) -> tuple[Float[Array, " rows"], Float[Array, " rows"]]:
    """Return each row's variances, over the positions, of ℓ_n and of ℓ_n − T_n.

    Over those positions, that is, where they are finite: a Gaussian may leave the support.
    """
    rows = model.prepare_rows(jax.tree.map(jnp.asarray, rows))

    def terms(position: Any) -> Any:
        return taylor_terms(model, centre, position, rows)

    def variance(x: Any) -> Any:
        return jnp.nan_to_num(jnp.nanvar(jnp.where(jnp.isfinite(x), x, jnp.nan), axis=0))

    values, polynomials = jax.vmap(terms)(positions)
    return variance(values), variance(values - polynomials)
