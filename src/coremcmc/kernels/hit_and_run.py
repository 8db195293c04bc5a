"""Hit-and-run slice sampling with doubling (Bélisle et al. 1993; Neal 2003, Figures 4 to 6)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int

from coremcmc.base import KernelInfo, KernelState, Position, PRNGKey
from coremcmc.target import Target

__all__ = ["HitAndRun"]


Scalar = Float[Array, ""]


class _Slice(NamedTuple):
    """A slice {t : logdensity(t) > level} of the line, and the uniforms to explore it with."""

    logdensity: Callable[[Scalar], Scalar]
    level: Scalar
    coins: Float[Array, " max_doublings"]
    proposals: Float[Array, " max_shrinks"]


@dataclass(frozen=True)
class HitAndRun:
    """Slice sampling along random lines through the current point.

    Needs no gradient and no tuning: the interval doubles until it covers the slice, then shrinks
    toward the current point, t = 0, until a point of the slice is found.

    Parameters
    ----------
    width
        Width of the initial interval.
    max_doublings
        How often it may double.
    num_passes
        Lines per step.
    max_shrinks
        Proposals on a line, after which the chain is declared stuck.
    """

    width: float = 10.0
    max_doublings: int = 20
    num_passes: int = 3
    max_shrinks: int = 128

    def __post_init__(self):
        if not self.width > 0:
            raise ValueError(f"width must be positive, but is {self.width}.")
        for name in ("max_doublings", "num_passes", "max_shrinks"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, but is {getattr(self, name)}.")

    def init(self, position: Position, target: Target) -> KernelState:
        """Start a chain at a position."""
        if not target.model.is_continuous:
            raise ValueError(
                "kernel 'hit_and_run' moves unconstrained reals only, and "
                f"{type(target.model).__name__} has other parameters. Use kernel="
                f"{target.model.default_kernel!r}."
            )
        return KernelState(position, target.loglikelihoods(position))

    def step(
        self, rng_key: PRNGKey, state: KernelState, target: Target
    ) -> tuple[KernelState, KernelInfo]:
        """Move along ``num_passes`` random lines."""
        flat, unravel = ravel_pytree(state.position)
        key_direction, key_uniform = jax.random.split(rng_key)
        # All randomness of the step at once: generators are slow inside loops.
        directions = jax.random.normal(key_direction, (self.num_passes, flat.size))
        directions /= jnp.linalg.norm(directions, axis=-1, keepdims=True)
        num_uniforms = 2 + self.max_doublings + self.max_shrinks
        uniforms = jax.random.uniform(key_uniform, (self.num_passes, num_uniforms))

        def one_pass(carry, xs):
            position, logdensity, evaluations, stuck = carry
            direction, uniform = xs
            line = target.along(unravel(position), unravel(direction))
            t, logdensity, used, failed = self._sample_line(line, logdensity, uniform)
            moved = position + t * direction
            # Shrunk onto the current point: nowhere else to go.
            stuck = stuck | failed | jnp.all(moved == position)
            return (moved, logdensity, evaluations + used, stuck), None

        start = (flat, target.logdensity(*state), jnp.zeros((), int), jnp.zeros((), bool))
        (flat, _, evaluations, stuck), _ = jax.lax.scan(one_pass, start, (directions, uniforms))
        position = unravel(flat)
        new_state = KernelState(position, target.loglikelihoods(position))
        return new_state, KernelInfo(evaluations, stuck)

    def _sample_line(
        self,
        logdensity: Callable[[Scalar], Scalar],
        logdensity_here: Scalar,
        uniforms: Float[Array, " U"],
    ) -> tuple[Scalar, Scalar, Int[Array, ""], Bool[Array, ""]]:
        """One slice-sampling update of t from t = 0: (t, log density, evaluations, stuck)."""
        d = self.max_doublings
        level = logdensity_here + jnp.log1p(-uniforms[0])
        on = _Slice(logdensity, level, uniforms[2 : 2 + d], uniforms[2 + d :])
        left = -self.width * uniforms[1]
        left, right, doublings = self._double(on, left, left + self.width)
        t, found, shrinks, tests = self._shrink(on, left, right)
        stuck = ~(found > level)
        evaluations = (2 + doublings + shrinks + tests).astype(int)
        return (
            jnp.where(stuck, 0.0, t),
            jnp.where(stuck, logdensity_here, found),
            evaluations,
            stuck,
        )

    def _double(self, on: _Slice, left: Scalar, right: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        """Neal's Figure 4: double, to a random side, until both ends lie outside the slice.

        The loop's numbers travel as one small vector, which costs fewer kernels a round.
        """

        def grow(carry):
            left, right, at_left, at_right, count = carry
            to_left = _at(on.coins, count) < 0.5
            new_left = jnp.where(to_left, left - (right - left), left)
            new_right = jnp.where(to_left, right, right + (right - left))
            new_value = on.logdensity(jnp.where(to_left, new_left, new_right))
            at_left = jnp.where(to_left, new_value, at_left)
            at_right = jnp.where(to_left, at_right, new_value)
            return jnp.stack([new_left, new_right, at_left, at_right, count + 1.0])

        def inside(carry):
            end_inside = (carry[2] > on.level) | (carry[3] > on.level)
            return end_inside & (carry[4] < self.max_doublings)

        ends = jax.vmap(on.logdensity)(jnp.stack([left, right]))
        start = jnp.stack([left, right, ends[0], ends[1], jnp.zeros_like(left)])
        left, right, _, _, count = jax.lax.while_loop(inside, grow, start)
        return left, right, count

    def _shrink(
        self, on: _Slice, left: Scalar, right: Scalar
    ) -> tuple[Scalar, Scalar, Scalar, Scalar]:
        """Neal's Figure 5: propose uniformly, shrink toward t = 0 what is refused.

        What lies in the slice is also put to the acceptance test, outside the inner loop, which
        is what most of the time goes to.
        """
        doubled = right - left > 1.1 * self.width

        def propose(carry):
            low, high, _, _, count = carry
            t = low + _at(on.proposals, count) * (high - low)
            low, high = jnp.where(t < 0, t, low), jnp.where(t < 0, high, t)
            return jnp.stack([low, high, t, on.logdensity(t), count + 1.0])

        def refused(carry):
            return ~(carry[3] > on.level) & (carry[4] < self.max_shrinks)

        def find(carry):
            found, tests = carry
            low, high, t, value, count = jax.lax.while_loop(
                refused, propose, found.at[3].set(-jnp.inf)
            )
            reachable, used = self._reachable(on, left, right, t, doubled)
            value = jnp.where(reachable, value, -jnp.inf)
            return jnp.stack([low, high, t, value, count]), tests + used

        zero = jnp.zeros_like(left)
        start = jnp.stack([left, right, zero, jnp.full_like(left, -jnp.inf), zero])
        found, tests = jax.lax.while_loop(lambda carry: refused(carry[0]), find, (start, zero))
        _, _, t, value, count = found
        return t, value, count, tests

    def _reachable(
        self, on: _Slice, left: Scalar, right: Scalar, t: Scalar, needed: Bool[Array, ""]
    ) -> tuple[Bool[Array, ""], Scalar]:
        """Neal's Figure 6: whether doubling from ``t`` could have led to this interval.

        Halve the interval toward ``t``; once the halves of ``t`` and of 0 differ, each half's
        ends must not both lie outside the slice, or doubling from ``t`` would have stopped there.
        """

        def halve(carry):
            low, high, apart, _, used = carry
            middle = 0.5 * (low + high)
            apart = jnp.maximum(apart, jnp.where((middle > 0.0) != (middle > t), 1.0, 0.0))
            low, high = jnp.where(t < middle, low, middle), jnp.where(t < middle, middle, high)
            ends = jax.vmap(on.logdensity)(jnp.stack([low, high]))
            possible = (apart == 0.0) | jnp.any(ends > on.level)
            return jnp.stack([low, high, apart, possible.astype(t.dtype), used + 2.0 * apart])

        def undecided(carry):
            return (carry[3] > 0.0) & (carry[1] - carry[0] > 1.1 * self.width) & needed

        zero = jnp.zeros_like(t)
        start = jnp.stack([left, right, zero, jnp.ones_like(t), zero])
        _, _, _, possible, used = jax.lax.while_loop(undecided, halve, start)
        return possible > 0.0, used


def _at(values: Float[Array, " n"], index: Scalar) -> Scalar:
    """Return the entry at an index that is known to be valid."""
    return values.at[index.astype(int)].get(mode="promise_in_bounds")
