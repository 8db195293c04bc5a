"""Slice sampling on a line, with doubling (Neal 2003, Figures 4 to 6).

Neal's procedures are written once, on scalars; how a log density is evaluated and how a loop is
compiled is the caller's: XLA and a fused GPU kernel differ in both.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

__all__ = ["Line", "Sampled", "SliceSampler", "packed_loop"]

Scalar = Float[Array, ""]


class Line(NamedTuple):
    """A log density on a line, t = 0 being the current point, and how to explore it.

    Attributes
    ----------
    logdensity
        Function of t.
    uniform
        Function of a number i that returns the i-th of the uniforms set aside for this line.
    pair
        Evaluates the log density at two points.
    loop
        ``loop(condition, body, carry)`` on a tuple of floats.
    """

    logdensity: Callable[[Scalar], Scalar]
    uniform: Callable[[Scalar], Scalar]
    pair: Callable[[Scalar, Scalar], tuple[Scalar, Scalar]]
    loop: Callable[..., Any]


class Sampled(NamedTuple):
    """The new point: t, its log density, evaluations used, and whether none was found."""

    t: Scalar
    logdensity: Scalar
    num_evaluations: Scalar
    is_stuck: Bool[Array, ""]


@dataclass(frozen=True)
class SliceSampler:
    """One update of t; the parameters are those of :class:`coremcmc.kernels.HitAndRun`."""

    width: float
    max_doublings: int
    max_shrinks: int

    @property
    def num_uniforms(self) -> int:
        """Return how many uniforms a line needs: level, place of the interval, coins, proposals."""
        return 2 + self.max_doublings + self.max_shrinks

    def sample(self, line: Line, logdensity_here: Scalar) -> Sampled:
        """Draw t given that t = 0 has the given log density."""
        zero = jnp.zeros_like(logdensity_here)
        level = logdensity_here + jnp.log1p(-line.uniform(zero))
        left = -self.width * line.uniform(zero + 1.0)
        left, right, doublings = self._double(line, level, left, left + self.width)
        t, found, shrinks, tests = self._shrink(line, level, left, right)
        stuck = ~(found > level)
        return Sampled(
            jnp.where(stuck, 0.0, t),
            jnp.where(stuck, logdensity_here, found),
            2.0 + doublings + shrinks + tests,
            stuck,
        )

    def _double(
        self, line: Line, level: Scalar, left: Scalar, right: Scalar
    ) -> tuple[Scalar, Scalar, Scalar]:
        """Figure 4: double, to a random side, until both ends lie outside the slice."""

        def grow(left: Any, right: Any, at_left: Any, at_right: Any, count: Any) -> Any:
            to_left = line.uniform(2.0 + count) < 0.5
            new_left = jnp.where(to_left, left - (right - left), left)
            new_right = jnp.where(to_left, right, right + (right - left))
            new_value = line.logdensity(jnp.where(to_left, new_left, new_right))
            at_left = jnp.where(to_left, new_value, at_left)
            at_right = jnp.where(to_left, at_right, new_value)
            return new_left, new_right, at_left, at_right, count + 1.0

        def inside(left: Any, right: Any, at_left: Any, at_right: Any, count: Any) -> Any:
            return ((at_left > level) | (at_right > level)) & (count < self.max_doublings)

        start = (left, right, *line.pair(left, right), jnp.zeros_like(left))
        left, right, _, _, count = line.loop(inside, grow, start)
        return left, right, count

    def _shrink(
        self, line: Line, level: Scalar, left: Scalar, right: Scalar
    ) -> tuple[Scalar, Scalar, Scalar, Scalar]:
        """Figure 5: propose uniformly, shrink toward t = 0 what is refused.

        What lies in the slice is also put to the acceptance test, outside the inner loop, which
        is what most of the time goes to.
        """
        doubled = right - left > 1.1 * self.width
        offset = 2.0 + self.max_doublings

        def propose(low: Any, high: Any, t: Any, value: Any, count: Any) -> Any:
            t = low + line.uniform(offset + count) * (high - low)
            low, high = jnp.where(t < 0, t, low), jnp.where(t < 0, high, t)
            return low, high, t, line.logdensity(t), count + 1.0

        def refused(low: Any, high: Any, t: Any, value: Any, count: Any) -> Any:
            # A level that is NaN is not sought in vain.
            return ~(value > level) & (count < self.max_shrinks) & (level == level)

        def find(low: Any, high: Any, t: Any, value: Any, count: Any, tests: Any) -> Any:
            start = (low, high, t, jnp.full_like(t, -jnp.inf), count)
            low, high, t, value, count = line.loop(refused, propose, start)
            reachable, used = self._reachable(line, level, left, right, t, doubled)
            value = jnp.where(reachable, value, -jnp.inf)
            return low, high, t, value, count, tests + used

        zero = jnp.zeros_like(left)
        start = (left, right, zero, jnp.full_like(left, -jnp.inf), zero, zero)
        found = line.loop(lambda *carry: refused(*carry[:5]), find, start)
        _, _, t, value, count, tests = found
        return t, value, count, tests

    def _reachable(
        self,
        line: Line,
        level: Scalar,
        left: Scalar,
        right: Scalar,
        t: Scalar,
        needed: Bool[Array, ""],
    ) -> tuple[Bool[Array, ""], Scalar]:
        """Figure 6: whether doubling from ``t`` could have led to this interval.

        Halve the interval toward ``t``; once the halves of ``t`` and of 0 differ, each half's
        ends must not both lie outside the slice, or doubling from ``t`` would have stopped there.
        """
        zero, one = jnp.zeros_like(t), jnp.ones_like(t)

        def halve(low: Any, high: Any, apart: Any, _: Any, used: Any) -> Any:
            middle = 0.5 * (low + high)
            apart = jnp.where((middle > 0.0) != (middle > t), one, apart)
            low, high = jnp.where(t < middle, low, middle), jnp.where(t < middle, middle, high)
            at_low, at_high = line.pair(low, high)
            possible = (apart == 0.0) | (at_low > level) | (at_high > level)
            return low, high, apart, jnp.where(possible, one, zero), used + 2.0 * apart

        def undecided(low: Any, high: Any, apart: Any, possible: Any, used: Any) -> Any:
            return (possible > 0.0) & (high - low > 1.1 * self.width) & needed

        start = (left, right, zero, one, zero)
        _, _, _, possible, used = line.loop(undecided, halve, start)
        return possible > 0.0, used


def packed_loop(condition: Callable, body: Callable, carry: tuple[Scalar, ...]) -> Any:
    """While loop whose floats travel as one small vector, which costs XLA fewer kernels a round."""

    def packed_body(packed: Any) -> Any:
        return jnp.stack(body(*packed))

    return jax.lax.while_loop(lambda packed: condition(*packed), packed_body, jnp.stack(carry))
