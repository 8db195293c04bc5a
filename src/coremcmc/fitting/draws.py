"""Draws from the coreset posterior at fixed weights."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from coremcmc.base import Position, PRNGKey, flat_positions
from coremcmc.diagnostics import effective_draws, split_rhat
from coremcmc.kernels.chains import metric_of, move_chains
from coremcmc.posterior.target import Target

__all__ = ["sample_enough", "sample_target"]

_ENOUGH, _SHARE = 400, 0.1  # effective draws, or a share of the draws where these are few
_MOST_RHAT = 1.02
_MOST_STEPS = 16  # a draw


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


def sample_enough(
    run_on: Callable[[int], tuple[np.ndarray, np.ndarray]], num_draws: int
) -> tuple[np.ndarray, np.ndarray]:
    """Run chains until they have mixed, and keep ``num_draws`` of each, evenly spaced.

    ``run_on(i)`` continues the chains for ``num_draws`` steps after i calls, and returns draws
    (draws × chains × coordinates) and log densities. While their effective number is too small, or
    the chains disagree, these run on for as long again, up to 16 steps a draw.
    """
    draws, densities = run_on(0)
    steps = 1
    while steps < _MOST_STEPS and not _have_mixed(draws):
        kept = [(draws[1::2], densities[1::2])]
        for call in range(steps, 2 * steps):
            done = np.arange(call * num_draws + 1, (call + 1) * num_draws + 1)
            kept.append(tuple(x[done % (2 * steps) == 0] for x in run_on(call)))
        draws, densities = (np.concatenate(parts) for parts in zip(*kept, strict=True))
        steps *= 2
    return draws, densities


def _have_mixed(draws: np.ndarray) -> bool:
    enough = min(_ENOUGH, _SHARE * draws.shape[0] * draws.shape[1])
    agree = draws.shape[0] < 4 or split_rhat(draws) <= _MOST_RHAT
    return agree and effective_draws(draws) >= enough
