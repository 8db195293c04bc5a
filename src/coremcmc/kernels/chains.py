"""All chains at once, whether or not their kernel adapts."""

from typing import Any

import jax
from jaxtyping import PyTree

from coremcmc.base import KernelInfo, KernelState, Position, PRNGKey, flat_positions
from coremcmc.posterior.target import Target

__all__ = ["metric_of", "move_chains"]


def metric_of(kernel: Any, target: Target, positions: Position) -> PyTree:
    """Return what a kernel that adapts learns from the chains' positions; None for others."""
    return kernel.adapt(target, positions) if hasattr(kernel, "adapt") else None


def move_chains(
    kernel: Any, rng_key: PRNGKey, chains: KernelState, target: Target, metric: PyTree
) -> tuple[KernelState, KernelInfo]:
    """Move each of K chains once.

    A kernel with the methods ``noise`` and ``move`` has the randomness of all chains drawn at once.
    """
    num_chains = chains.loglikelihoods.shape[0]
    if hasattr(kernel, "noise"):
        dimension = flat_positions(chains.position).shape[1]
        noise = kernel.noise(rng_key, num_chains, dimension)
        return jax.vmap(kernel.move, in_axes=(0, 0, None, None))(noise, chains, target, metric)
    keys = jax.random.split(rng_key, num_chains)
    if metric is None:
        return jax.vmap(kernel.step, in_axes=(0, 0, None))(keys, chains, target)
    return jax.vmap(kernel.step, in_axes=(0, 0, None, None))(keys, chains, target, metric)
