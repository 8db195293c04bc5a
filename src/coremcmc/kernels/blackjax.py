"""Any BlackJAX sampler as a kernel."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp

from coremcmc.base import KernelInfo, KernelState, Position, PRNGKey
from coremcmc.posterior.target import Target

__all__ = ["BlackJAXKernel"]


@dataclass(frozen=True)
class BlackJAXKernel:
    """Wraps what makes a BlackJAX sampling algorithm from a log density.

    ::

        BlackJAXKernel(lambda logdensity: blackjax.nuts(logdensity, 0.5, inverse_mass_matrix))

    The sampler's state is made anew at every step: BlackJAX keeps the log density in it, which a
    change of the weights makes stale.

    Parameters
    ----------
    algorithm
        ``logdensity_fn -> SamplingAlgorithm``, of a sampler whose ``init`` takes a position alone.
    evaluations
        How many evaluations of the log density a step is counted as.
    """

    algorithm: Callable[[Callable], Any]
    evaluations: int = 1

    def init(self, position: Position, target: Target) -> KernelState:
        """Start a chain at a position."""
        return KernelState(position, target.loglikelihoods(position))

    def step(
        self, rng_key: PRNGKey, state: KernelState, target: Target
    ) -> tuple[KernelState, KernelInfo]:
        """Move once."""
        sampler = self.algorithm(target)
        moved, _ = sampler.step(rng_key, sampler.init(state.position))
        new_state = KernelState(moved.position, target.loglikelihoods(moved.position))
        return new_state, KernelInfo(jnp.asarray(self.evaluations, int), jnp.zeros((), bool))
