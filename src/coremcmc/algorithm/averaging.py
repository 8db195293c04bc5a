"""The average of the weights over the latter half of a run whose end is known only at its end."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

__all__ = ["LatterHalf", "latter_half_init", "latter_half_update"]


class LatterHalf(NamedTuple):
    """Two sums over windows that both end now.

    When the run reaches ``boundary``, the older window is dropped, the younger becomes the older
    and a new one begins, and the boundary doubles. So the older window always began between a
    quarter and a half of the way into the run; and exactly at half of it when the run ends at its
    planned length, since the first boundary is that length divided by a power of two. The average
    is ``older_sum`` over the iterations after ``older_start``.
    """

    older_sum: Float[Array, " M"]
    older_start: Int[Array, ""]
    younger_sum: Float[Array, " M"]
    younger_start: Int[Array, ""]
    boundary: Float[Array, ""]


def latter_half_init(weights: Float[Array, " M"], planned_length: int) -> LatterHalf:
    """Start with nothing averaged."""
    boundary = float(planned_length)
    while boundary > 1:
        boundary /= 2
    zeros, start = jnp.zeros_like(weights), jnp.zeros((), int)
    return LatterHalf(zeros, start, zeros, start, jnp.asarray(boundary, weights.dtype))


def latter_half_update(
    state: LatterHalf, weights: Float[Array, " M"], iteration: Int[Array, ""]
) -> LatterHalf:
    """Add the weights after an iteration, counted from 1."""
    older, younger = state.older_sum + weights, state.younger_sum + weights
    rolls = iteration >= state.boundary
    return LatterHalf(
        jnp.where(rolls, younger, older),
        jnp.where(rolls, state.younger_start, state.older_start),
        jnp.where(rolls, 0.0, younger),
        jnp.where(rolls, iteration, state.younger_start),
        jnp.where(rolls, 2 * state.boundary, state.boundary),
    )
