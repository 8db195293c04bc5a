"""Hit-and-run slice sampling that learns the posterior's shape from its own chains."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from coremcmc.base import KernelInfo, KernelState, Position, PRNGKey, flat_positions
from coremcmc.kernels.slice_along_lines import SliceAlongLines
from coremcmc.posterior.target import Target

__all__ = ["Moments", "WhitenedSlice"]

_MEMORY = 4_000.0  # positions that the moments remember


class Moments(NamedTuple):
    """Running mean and covariance of the chains' positions, and how many they rest on."""

    size: Float[Array, ""]
    mean: Float[Array, " d"]
    covariance: Float[Array, "d d"]


@dataclass(frozen=True)
class WhitenedSlice(SliceAlongLines):
    """Slice sampling along lines whose directions follow the chains' covariance.

    For models without gradients: a unit of t is about a posterior standard deviation, whatever the
    scales and correlations, so that the initial interval fits. The moments forget, and so follow
    the weights; at fixed weights the kernel is fixed.

    Parameters
    ----------
    width
        Width of the initial interval, in standard deviations.
    max_doublings, num_passes, max_shrinks, fused
        As those of :class:`coremcmc.kernels.HitAndRun`.
    """

    width: float = 3.0

    def learn_metric(
        self, target: Target, positions: Position, previous: Moments | None = None
    ) -> Moments:
        """Take the chains' positions into the moments."""
        flat = flat_positions(positions)
        if previous is None:
            spread = jnp.eye(flat.shape[1])
            return Moments(jnp.zeros(()), flat.mean(axis=0), spread)
        size = previous.size + flat.shape[0]
        rate = flat.shape[0] / jnp.minimum(size, _MEMORY)
        mean = previous.mean + rate * (flat.mean(axis=0) - previous.mean)
        apart = flat - previous.mean
        outer = apart.T @ apart / flat.shape[0]
        covariance = previous.covariance + rate * (outer - previous.covariance)
        return Moments(size, mean, covariance)

    def step(
        self, rng_key: PRNGKey, state: KernelState, target: Target, metric: PyTree = None
    ) -> tuple[KernelState, KernelInfo]:
        """Move along ``num_passes`` lines."""
        key_direction, key_uniform = jax.random.split(rng_key)
        directions = self.random_directions(key_direction, state)
        dimension = directions.shape[1]
        # A little of the diagonal keeps every direction open.
        diagonal = jnp.diag(metric.covariance)
        floor = 1e-6 * diagonal + 1e-12 * diagonal.max() + jnp.finfo(diagonal.dtype).tiny
        factor = jnp.linalg.cholesky(metric.covariance + jnp.diag(floor))
        enough = (metric.size >= 4 * dimension) & jnp.isfinite(factor).all()
        factor = jnp.where(enough, factor, jnp.eye(dimension))
        return self.move_along(directions @ factor.T, key_uniform, state, target)

    def step_chains(
        self,
        rng_key: PRNGKey,
        chains: KernelState,
        target: Target,
        metric: PyTree = None,
        iteration: Int[Array, ""] | None = None,
    ) -> tuple[KernelState, KernelInfo, PyTree]:
        """Take the chains' positions into the moments, and move each chain once."""
        if iteration is not None:
            metric = self.learn_metric(target, chains.position, metric)
        return super().step_chains(rng_key, chains, target, metric)
