"""Derivatives of Σ_n ℓ_n(θ) with respect to the flattened position.

A linear-predictor model needs no derivative through its matrix product: with η = A θ, where A is
the product of the predictor with the unit vectors, everything else is row by row.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float

from coremcmc.base import LinearPredictorModel, Model, Position, Rows
from coremcmc.pytrees import prepared

__all__ = [
    "Derivatives",
    "SumDerivatives",
    "SumGradient",
    "SumOfLogLikelihoods",
    "taylor_terms",
    "weighted_derivatives",
]


class Derivatives(NamedTuple):
    """Value, gradient and Hessian of a sum."""

    value: Float[Array, ""]
    gradient: Float[Array, " d"]
    hessian: Float[Array, "d d"]


@dataclass(frozen=True)
class SumDerivatives:
    """Σ ℓ_n and its first two derivatives over the rows of a block, for a full pass."""

    model: Model

    def __call__(self, position: Position, rows: Rows, is_row: Bool[Array, " rows"]) -> Derivatives:
        """Sum over the rows that are none but padding."""
        rows = prepared(self.model, rows)
        weights = jnp.where(is_row, 1.0, 0.0)
        return weighted_derivatives(self.model, position, rows, weights)


@dataclass(frozen=True)
class SumGradient:
    """Σ ℓ_n and its gradient over the rows of a block, for a full pass."""

    model: Model

    def __call__(
        self, position: Position, rows: Rows, is_row: Bool[Array, " rows"]
    ) -> tuple[Float[Array, ""], Float[Array, " d"]]:
        """Sum over the rows that are none but padding."""
        rows = prepared(self.model, rows)
        flat, unravel = ravel_pytree(position)

        def total(flat: Any) -> Any:
            terms = self.model.loglikelihood_fn(unravel(flat), rows).astype(float)
            return jnp.where(is_row, terms, 0.0).sum()

        return jax.value_and_grad(total)(flat)


@dataclass(frozen=True)
class SumOfLogLikelihoods:
    """Σ ℓ_n at each of several positions (a leading axis), for a full pass."""

    model: Model

    def __call__(
        self, positions: Position, rows: Rows, is_row: Bool[Array, " rows"]
    ) -> Float[Array, " J"]:
        """Sum over the rows that are none but padding."""
        rows = prepared(self.model, rows)

        def one(position: Any) -> Any:
            terms = self.model.loglikelihood_fn(position, rows).astype(float)
            return jnp.where(is_row, terms, 0.0).sum()

        return jax.lax.map(one, positions, batch_size=16)


def weighted_derivatives(
    model: Model, position: Position, rows: Rows, weights: Float[Array, " rows"]
) -> Derivatives:
    """Σ w_n ℓ_n and its derivatives; rows of weight zero count for nothing."""
    flat, unravel = ravel_pytree(position)
    counts = weights != 0

    def weigh(terms: Any) -> Any:
        return jnp.where(counts, terms, 0.0) @ weights

    if not isinstance(model, LinearPredictorModel):

        def total(flat: Any) -> Any:
            return weigh(model.loglikelihood_fn(unravel(flat), rows).astype(float))

        return Derivatives(total(flat), jax.grad(total)(flat), jax.hessian(total)(flat))

    features = jax.vmap(lambda unit: model.predictor(unravel(unit), rows))(jnp.eye(flat.size))
    eta = flat @ features

    def pointwise(eta: Any, flat: Any) -> Any:
        return model.pointwise(eta, rows, unravel(flat)).astype(float)

    def slope(eta: Any, flat: Any) -> Any:
        return jax.jvp(lambda e: pointwise(e, flat), (eta,), (jnp.ones_like(eta),))[1]

    def weighted_slope(eta: Any, flat: Any) -> Any:
        return jnp.where(counts, slope(eta, flat), 0.0) * weights

    curvature = jax.jvp(lambda e: weighted_slope(e, flat), (eta,), (jnp.ones_like(eta),))[1]
    # What depends on θ other than through η: a scale parameter, say. Zero for many models.
    direct = jax.grad(lambda f: weigh(pointwise(eta, f)))(flat)
    direct_hessian = jax.hessian(lambda f: weigh(pointwise(eta, f)))(flat)
    mixed = jax.jacfwd(lambda f: weighted_slope(eta, f))(flat)  # rows by coordinates
    cross = features @ mixed
    return Derivatives(
        weigh(pointwise(eta, flat)),
        features @ weighted_slope(eta, flat) + direct,
        (features * curvature) @ features.T + cross + cross.T + direct_hessian,
    )


def taylor_terms(
    model: Model, centre: Position, position: Position, rows: Rows
) -> tuple[Float[Array, " rows"], Float[Array, " rows"]]:
    """ℓ_n(θ), and its second-order Taylor polynomial at the centre, of each row.

    By forward-mode derivatives along the line from the centre to θ.
    """
    step = jax.tree.map(jnp.subtract, position, centre)

    if isinstance(model, LinearPredictorModel):
        eta, slope = model.predictor(centre, rows), model.predictor(step, rows)

        def along(t: Any) -> Any:
            there = jax.tree.map(lambda c, s: c + t * s, centre, step)
            return model.pointwise(eta + t * slope, rows, there).astype(float)

    else:

        def along(t: Any) -> Any:
            there = jax.tree.map(lambda c, s: c + t * s, centre, step)
            return model.loglikelihood_fn(there, rows).astype(float)

    def with_slope(t: Any) -> Any:
        return jax.jvp(along, (t,), (jnp.ones_like(t),))

    zero: Any = jnp.zeros(())
    (value, first), (_, second) = jax.jvp(with_slope, (zero,), (jnp.ones(()),))
    return along(jnp.ones(())), value + first + 0.5 * second
