"""Draws from the coreset posterior at fixed weights."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from coremcmc.base import Position, PRNGKey, flat_positions
from coremcmc.kernels.moving import metric_of, move_chains
from coremcmc.target import Target

__all__ = ["sample_target"]


@functools.partial(jax.jit, static_argnames=("kernel", "num_draws", "num_warmup"))
def sample_target(
    kernel: Any,
    rng_key: PRNGKey,
    target: Target,
    positions: Position,
    metric: PyTree = None,
    *,
    num_draws: int,
    num_warmup: int,
) -> tuple[Float[Array, "num_draws K D"], Bool[Array, ""], Float[Array, "num_draws K"]]:
    """Run K chains from ``positions``: flattened draws, whether a chain got stuck, log densities.

    A kernel that adapts starts from ``metric``, if given, and adapts once at the end of the
    warm-up, whose draws are dropped: what is kept comes from one fixed kernel.
    """

    def advance(carry, xs):
        chains, metric, stuck = carry
        key, is_last_of_warmup = xs
        chains, info = move_chains(kernel, key, chains, target, metric)
        if metric is not None:  # one branch, so that the metric is compiled once
            metric = jax.lax.cond(
                is_last_of_warmup,
                lambda: kernel.adapt(target, chains.position, metric),
                lambda: metric,
            )
        carry = (chains, metric, stuck | info.is_stuck.any())
        density = jax.vmap(target.logdensity)(chains.position, chains.loglikelihoods)
        return carry, (flat_positions(chains.position), density)

    chains = jax.vmap(kernel.init, in_axes=(0, None))(positions, target)
    if metric is None:
        metric = metric_of(kernel, target, positions)
    start = (chains, metric, jnp.zeros((), bool))
    length = num_warmup + num_draws
    steps = jax.random.split(rng_key, length), jnp.arange(length) == num_warmup - 1
    (_, _, stuck), (draws, densities) = jax.lax.scan(advance, start, steps)
    return draws[num_warmup:], stuck, densities[num_warmup:]
