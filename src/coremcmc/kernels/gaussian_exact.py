"""Draws from the coreset posterior of the Gaussian location model, which is Gaussian."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from coremcmc.base import Kernel, KernelInfo, KernelState, Position, PRNGKey
from coremcmc.models.gaussian_location import GaussianLocation
from coremcmc.posterior.target import Target

__all__ = ["GaussianExact"]


@dataclass(frozen=True)
class GaussianExact(Kernel):
    """θ' = μ_w + ρ (θ − μ_w) + √(1 − ρ²) σ_w z, which leaves π_w = N(μ_w, σ_w² I) invariant.

    Parameters
    ----------
    correlation
        ρ in [0, 1). Zero draws independently from π_w; more gives a chain with memory.
    """

    correlation: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.correlation < 1:
            raise ValueError(f"correlation must lie in [0, 1), but is {self.correlation}.")

    def init(self, position: Position, target: Target) -> KernelState:
        """Start a chain at a position."""
        if not isinstance(target.model, GaussianLocation):
            raise ValueError(
                "kernel 'gaussian_exact' knows the posterior of GaussianLocation only, not of "
                f"{type(target.model).__name__}. Use kernel={target.model.default_kernel!r}."
            )
        return super().init(position, target)

    def step(
        self, rng_key: PRNGKey, state: KernelState, target: Target, metric: PyTree = None
    ) -> tuple[KernelState, KernelInfo]:
        """Draw once."""
        mean, variance = GaussianLocation.posterior(target.rows, target.weights)
        noise = jnp.sqrt((1 - self.correlation**2) * variance)
        theta = state.position["theta"]
        theta = mean + self.correlation * (theta - mean)
        theta = theta + noise * jax.random.normal(rng_key, theta.shape)
        position = {"theta": theta}
        new_state = KernelState(position, target.loglikelihoods(position))
        return new_state, KernelInfo(jnp.ones((), int), jnp.zeros((), bool))
