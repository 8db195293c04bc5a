"""Slice sampling along given lines, one after the other: what two kernels share.

They differ in how they choose the lines.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from coremcmc.base import Kernel, KernelInfo, KernelState, PRNGKey
from coremcmc.kernels.slice_on_a_line import Line, SliceSampler, packed_loop
from coremcmc.kernels.slice_on_gpu import can_fuse, sample_lines_fused
from coremcmc.posterior.target import Target

__all__ = ["SliceAlongLines"]


@dataclass(frozen=True)
class SliceAlongLines(Kernel):
    """The parameters are those of :class:`coremcmc.kernels.HitAndRun`."""

    width: float
    max_doublings: int = 20
    num_passes: int = 3
    max_shrinks: int = 128
    fused: bool | None = None
    moves_reals_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.width > 0:
            raise ValueError(f"width must be positive, but is {self.width}.")
        for name in ("max_doublings", "num_passes", "max_shrinks"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, but is {getattr(self, name)}.")

    @property
    def _sampler(self) -> SliceSampler:
        return SliceSampler(self.width, self.max_doublings, self.max_shrinks)

    def random_directions(self, rng_key: PRNGKey, state: KernelState) -> Float[Array, "passes d"]:
        """Draw unit vectors, one a line."""
        size = ravel_pytree(state.position)[0].size
        directions = jax.random.normal(rng_key, (self.num_passes, size))
        return directions / jnp.linalg.norm(directions, axis=-1, keepdims=True)

    def move_along(
        self,
        directions: Float[Array, "passes d"],
        key_uniform: PRNGKey,
        state: KernelState,
        target: Target,
    ) -> tuple[KernelState, KernelInfo]:
        """Move along the given lines."""
        flat, unravel = ravel_pytree(state.position)
        # All randomness of the step at once: generators are slow inside loops.
        uniforms = jax.random.uniform(key_uniform, (self.num_passes, self._sampler.num_uniforms))
        if can_fuse(target, state.position) if self.fused is None else self.fused:
            lines = jax.vmap(unravel)(directions)
            ts, evaluations, stuck = sample_lines_fused(
                self._sampler, target, state.position, lines, uniforms
            )
            moved = flat + ts @ directions
            stuck = stuck | jnp.all(moved == flat)
        else:
            logdensity = target.logdensity(*state)
            moved, evaluations, stuck = self._sample_lines(
                target, unravel, flat, logdensity, directions, uniforms
            )
        position = unravel(moved)
        new_state = KernelState(position, target.loglikelihoods(position))
        return new_state, KernelInfo(evaluations.astype(int), stuck)

    def _sample_lines(
        self,
        target: Target,
        unravel: Callable,
        flat: Float[Array, " d"],
        logdensity: Float[Array, ""],
        directions: Float[Array, "passes d"],
        uniforms: Float[Array, "passes u"],
    ) -> tuple[Array, Array, Array]:
        """One line after the other: (position, evaluations, stuck)."""

        def one_pass(carry: Any, xs: Any) -> Any:
            position, logdensity, evaluations, stuck = carry
            direction, uniform = xs
            line = _line(target.along(unravel(position), unravel(direction)), uniform)
            sampled = self._sampler.sample(line, logdensity)
            moved = position + sampled.t * direction
            # Shrunk onto the current point: nowhere else to go.
            stuck = stuck | sampled.is_stuck | jnp.all(moved == position)
            evaluations = evaluations + sampled.num_evaluations
            return (moved, sampled.logdensity, evaluations, stuck), None

        start = (flat, logdensity, jnp.zeros(()), jnp.zeros((), bool))
        (flat, _, evaluations, stuck), _ = jax.lax.scan(one_pass, start, (directions, uniforms))
        return flat, evaluations, stuck


def _line(logdensity: Callable, uniforms: Float[Array, " u"]) -> Line:
    """Evaluate through XLA."""

    def uniform(index: Array) -> Array:
        return uniforms.at[index.astype(int)].get(mode="promise_in_bounds")

    def pair(first: Array, second: Array) -> tuple[Array, Array]:
        values = jax.vmap(logdensity)(jnp.stack([first, second]))
        return values[0], values[1]

    return Line(logdensity, uniform, pair, packed_loop)
