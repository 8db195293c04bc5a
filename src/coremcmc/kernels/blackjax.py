"""BlackJAX: any of its samplers as a kernel, and its NUTS with a warm-up of its own."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from coremcmc.base import Kernel, KernelInfo, KernelState, Position, PRNGKey, flat_positions
from coremcmc.posterior.target import Target

__all__ = ["BlackJAXKernel", "nuts_draws"]

_LARGEST_DENSE = 100  # dimensions up to which NUTS learns all covariances


@dataclass(frozen=True)
class BlackJAXKernel(Kernel):
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

    def step(
        self, rng_key: PRNGKey, state: KernelState, target: Target, metric: PyTree = None
    ) -> tuple[KernelState, KernelInfo]:
        """Move once."""
        sampler = self.algorithm(target)
        moved, _ = sampler.step(rng_key, sampler.init(state.position))
        new_state = KernelState(moved.position, target.loglikelihoods(moved.position))
        return new_state, KernelInfo(jnp.asarray(self.evaluations, int), jnp.zeros((), bool))


@functools.partial(jax.jit, static_argnums=(3, 4))
def nuts_draws(
    rng_key: PRNGKey,
    target: Target,
    positions: Position,
    num_draws: int,
    num_warmup: int,
) -> tuple[Float[Array, "num_draws K D"], dict[str, Array]]:
    """Draw by BlackJAX's NUTS: window adaptation for each chain, then draws at fixed weights.

    Returns the flattened draws, and statistics of each step by name.
    """
    import blackjax

    num_chains, dimension = flat_positions(positions).shape

    def one_chain(key: PRNGKey, position: Position) -> Any:
        key_warmup, key_draws = jax.random.split(key)
        adaptation = blackjax.window_adaptation(
            blackjax.nuts, target, is_mass_matrix_diagonal=dimension > _LARGEST_DENSE
        )
        (state, parameters), _ = adaptation.run(key_warmup, position, num_warmup)
        sampler = blackjax.nuts(target, **parameters)

        def advance(state: Any, key: PRNGKey) -> Any:
            state, info = sampler.step(key, state)
            stats = {
                "diverging": info.is_divergent,
                "acceptance_rate": info.acceptance_rate,
                "n_steps": info.num_integration_steps,
            }
            return state, (state.position, stats)

        return jax.lax.scan(advance, state, jax.random.split(key_draws, num_draws))[1]

    drawn, stats = jax.vmap(one_chain)(jax.random.split(rng_key, num_chains), positions)
    flat = jax.vmap(flat_positions)(drawn)
    return jnp.swapaxes(flat, 0, 1), jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), stats)
