"""The hot-start test, Algorithm 3: have the Markov chains settled?"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

__all__ = ["HotStart", "HotStartState", "hot_start_statistic"]


def hot_start_statistic(
    log_potentials: Float[Array, "T K"], num_iterations: Int[Array, ""] | int
) -> Float[Array, ""]:
    r"""Median over chains of the change of the mean log potential, in units of its noise.

    The first ``num_iterations`` = t values of each chain count. Of the three thirds of length
    n = ⌊t/3⌋ that end with the last value, the first is dropped; for the other two,

    .. math:: u_k = |m_{k1} - m_{k2}| / \max(s_{k1}, s_{k2}),

    where m are the means and s the residual standard deviations (n − 2 degrees of freedom)
    around a straight line, which removes a trend from the noise.

    ``num_iterations`` may be traced, so that one compiled program serves every t.
    """
    n = jnp.asarray(num_iterations) // 3
    index = jnp.arange(log_potentials.shape[0])

    def segment(start: Any) -> Any:
        inside = ((index >= start) & (index < start + n))[:, None]
        time = jnp.where(inside, index[:, None] - (start + 0.5 * (n - 1)), 0.0)
        mean = jnp.where(inside, log_potentials, 0.0).sum(axis=0) / n
        centred = jnp.where(inside, log_potentials - mean, 0.0)
        slope = (time * centred).sum(axis=0) / (time * time).sum()
        squares = jnp.square(centred - slope * time).sum(axis=0)
        return mean, jnp.sqrt(squares / (n - 2))

    mean_1, noise_1 = segment(num_iterations - 2 * n)
    mean_2, noise_2 = segment(num_iterations - n)
    change, noise = jnp.abs(mean_1 - mean_2), jnp.maximum(noise_1, noise_2)
    # Constant chains: no change is settled, a change without noise is not.
    ratio = jnp.where(noise > 0, change / jnp.where(noise > 0, noise, 1.0), jnp.inf)
    return jnp.median(jnp.where(change == 0, 0.0, ratio))


class HotStartState(NamedTuple):
    """Progress of the test.

    Attributes
    ----------
    log_potentials
        Σ_m w_0m ℓ_m(θ_jk), the likelihood's part alone, of every iteration j so far.
    statistic
        The latest value of the test statistic; infinite before the first test.
    passed_at
        Iteration at which the weights were released, or −1 while they are held.
    is_forced
        Whether the cap on the iterations released them, not the test.
    """

    log_potentials: Float[Array, "max_iterations K"]
    statistic: Float[Array, ""]
    passed_at: Int[Array, ""]
    is_forced: Bool[Array, ""]

    @property
    def is_hot(self) -> Bool[Array, ""]:
        """Whether the weights may move."""
        return self.passed_at >= 0


@dataclass(frozen=True)
class HotStart:
    """Settings of the test.

    Parameters
    ----------
    threshold
        c: the test passes when the statistic is below it.
    interval
        The test runs every so many iterations, from max(interval, 3 · dimension) on. (The paper
        writes of every iteration; its authors' code does this.)
    max_iterations
        After so many iterations the weights are released whether or not the test has passed,
        with a warning. (The paper waits for ever; its authors' code never trains.)
    """

    threshold: float = 0.5
    interval: int = 30
    max_iterations: int = 10_000

    def __post_init__(self) -> None:
        if not self.threshold > 0:
            raise ValueError(f"hot_start.threshold must be positive, but is {self.threshold}.")
        for name in ("interval", "max_iterations"):
            if not isinstance(getattr(self, name), int):
                raise ValueError(f"hot_start.{name} must be an integer.")
        if self.interval < 10:
            raise ValueError(f"hot_start.interval must be at least 10, but is {self.interval}.")
        if self.max_iterations < self.interval:
            raise ValueError(
                f"hot_start.max_iterations ({self.max_iterations}) must be at least "
                f"hot_start.interval ({self.interval})."
            )

    def init(self, num_chains: int) -> HotStartState:
        """Start with nothing recorded and the weights held."""
        record = jnp.zeros((self.max_iterations, num_chains))
        return HotStartState(record, jnp.array(jnp.inf), jnp.array(-1), jnp.array(False))

    @staticmethod
    def disabled(num_chains: int) -> HotStartState:
        """Weights that may move from the first iteration on."""
        record = jnp.zeros((0, num_chains))
        return HotStartState(record, jnp.array(jnp.inf), jnp.array(0), jnp.array(False))

    def update(
        self,
        state: HotStartState,
        iteration: Int[Array, ""],
        log_potentials: Float[Array, " K"],
        dimension: int,
    ) -> HotStartState:
        """Record the log potentials of an iteration (counted from 1); test when it is due.

        The outer branch depends on the iteration alone, so that runs under ``vmap`` that share
        their iteration also share it; the inner one spares a single run the test once it is hot.
        """
        recording = iteration <= self.max_iterations
        slot = jnp.minimum(iteration, self.max_iterations) - 1
        kept = state.log_potentials[slot]
        record = state.log_potentials.at[slot].set(
            jnp.where(recording & ~state.is_hot, log_potentials, kept)
        )
        last = self.max_iterations - self.max_iterations % self.interval
        first = min(max(self.interval, 3 * dimension), last)
        due = (iteration % self.interval == 0) & (iteration >= first) & recording
        at_cap = iteration == self.max_iterations

        def keep() -> Array:
            return state.statistic

        def test() -> Array:
            return jax.lax.cond(state.is_hot, keep, lambda: hot_start_statistic(record, iteration))

        statistic = jax.lax.cond(due, test, keep)
        passes = due & (statistic < self.threshold)
        opens = ~state.is_hot & (passes | at_cap)
        return HotStartState(
            record,
            statistic,
            jnp.where(opens, iteration, state.passed_at),
            state.is_forced | (opens & ~passes),
        )
