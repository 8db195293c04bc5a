"""All chains at once, whether or not their kernel adapts."""

from typing import Any

import jax
from jaxtyping import PyTree

from coremcmc.base import KernelInfo, KernelState, Position, PRNGKey
from coremcmc.target import Target

__all__ = ["metric_of", "move_chains"]


def metric_of(kernel: Any, target: Target, positions: Position) -> PyTree:
    """Return what a kernel that adapts learns from the chains' positions; None for others."""
    return kernel.adapt(target, positions) if hasattr(kernel, "adapt") else None


def move_chains(
    kernel: Any, rng_key: PRNGKey, chains: KernelState, target: Target, metric: PyTree
) -> tuple[KernelState, KernelInfo]:
    """Move each of K chains once."""
    keys = jax.random.split(rng_key, chains.loglikelihoods.shape[0])
    if metric is None:
        return jax.vmap(kernel.step, in_axes=(0, 0, None))(keys, chains, target)
    return jax.vmap(kernel.step, in_axes=(0, 0, None, None))(keys, chains, target, metric)
