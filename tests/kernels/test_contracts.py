"""Every kernel of the package, one of a user's own, and two of BlackJAX keep the contract."""

import blackjax
import jax
import jax.numpy as jnp
import pytest

from coremcmc.base import KernelInfo, KernelState
from coremcmc.kernels import KERNELS, BlackJAXKernel, GaussianExact
from tests.contracts.kernel import KernelContract


class Plain:
    """A user's random walk that knows nothing of this package's classes but two tuples."""

    def init(self, position, target):
        return KernelState(position, target.loglikelihoods(position))

    def step(self, rng_key, state, target):
        key_step, key_accept = jax.random.split(rng_key)
        noise = 0.1 * jax.random.normal(key_step, state.position["theta"].shape)
        position = {"theta": state.position["theta"] + noise}
        proposed = KernelState(position, target.loglikelihoods(position))
        accept = jnp.log(jax.random.uniform(key_accept)) < (
            target.logdensity(*proposed) - target.logdensity(*state)
        )
        chosen = jax.tree.map(lambda a, b: jnp.where(accept, a, b), proposed, state)
        return chosen, KernelInfo(jnp.ones((), int), jnp.zeros((), bool))


OTHERS = {
    "gaussian_exact with memory": GaussianExact(0.8),
    "BlackJAX, HMC": BlackJAXKernel(
        lambda density: blackjax.hmc(density, 0.2, jnp.ones(3), 3), evaluations=4
    ),
    "BlackJAX, random walk": BlackJAXKernel(
        lambda density: blackjax.normal_random_walk(density, jnp.full(3, 0.1)), evaluations=2
    ),
    "a user's own": Plain(),
}


class TestKernels(KernelContract):
    @pytest.fixture(params=[*KERNELS, *OTHERS])
    def kernel(self, request):
        return OTHERS.get(request.param, request.param)
