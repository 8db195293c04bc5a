"""One entry makes a kernel or an optimizer known wherever a name is taken."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import coremcmc
from coremcmc.base import Kernel, KernelInfo, KernelState
from coremcmc.kernels import KERNELS
from coremcmc.optimizers import OPTIMIZERS

SHORT = {"preset": "paper", "hot_start": False, "num_iterations": 300, "progress": False}


@dataclass(frozen=True)
class MadeUp(Kernel):
    """A random walk, as a file of its own would have it."""

    scale: float = 0.1

    def step(self, rng_key, state, target, metric=None):
        key_step, key_accept = jax.random.split(rng_key)
        theta = state.position["theta"]
        position = {"theta": theta + self.scale * jax.random.normal(key_step, theta.shape)}
        proposed = KernelState(position, target.loglikelihoods(position))
        log_ratio = target.logdensity(*proposed) - target.logdensity(*state)
        accept = jnp.log(jax.random.uniform(key_accept)) < log_ratio
        chosen = jax.tree.map(lambda a, b: jnp.where(accept, a, b), proposed, state)
        return chosen, KernelInfo(jnp.ones((), int), jnp.zeros((), bool))


class Plain:
    """The same without this package's class."""

    def init(self, position, target):
        return MadeUp().init(position, target)

    def step(self, rng_key, state, target):
        return MadeUp().step(rng_key, state, target)


def made_up(rate=0.01):
    return optax.sign_sgd(rate)


@pytest.fixture(scope="module")
def data():
    return coremcmc.gaussian_location_data(num_rows=300, dimension=2)


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setitem(KERNELS, "made_up", MadeUp)
    monkeypatch.setitem(OPTIMIZERS, "made_up", made_up)


def fit(data, **options):
    return coremcmc.fit(coremcmc.GaussianLocation(), data, 20, **(SHORT | options))


def test_a_new_kernel_and_a_new_optimizer_are_known_by_name(data, registered):
    made = fit(data, kernel="made_up", optimizer="made_up")
    assert made.config["settings"]["kernel"] == "made_up"
    assert made.config["settings"]["optimizer"] == "made_up"
    assert made.traces["num_evaluations"][-1] == 300 * made.positions.shape[1]  # one a step
    given = fit(data, kernel=MadeUp(), optimizer=made_up())
    np.testing.assert_array_equal(made.positions, given.positions)
    np.testing.assert_array_equal(made.coreset.weights, given.coreset.weights)
    other = fit(data)
    assert not np.array_equal(made.positions, other.positions)
    assert not np.array_equal(made.coreset.weights, other.coreset.weights)


def test_draws_take_the_new_kernel(data, registered):
    trained = fit(data)
    made, given = (trained.sample(50, kernel=kernel, seed=1) for kernel in ("made_up", MadeUp()))
    np.testing.assert_array_equal(made.sampled_positions, given.sampled_positions)
    assert made.sampled_positions.std() > 0


def test_messages_list_the_new_ones(data, registered):
    with pytest.raises(ValueError, match=r"choose from hit_and_run.*made_up"):
        fit(data, kernel="no such")
    with pytest.raises(ValueError, match=r"choose from hot_dog.*made_up"):
        fit(data, optimizer="no such")
    with pytest.raises(ValueError, match=r"choose from nuts, hit_and_run.*made_up"):
        fit(data, num_iterations=5).sample(5, kernel="no such")


def test_without_the_entry_the_name_is_unknown(data):
    with pytest.raises(ValueError, match="kernel='made_up' is unknown"):
        fit(data, kernel="made_up")
    with pytest.raises(ValueError, match="optimizer='made_up' is unknown"):
        fit(data, optimizer="made_up")


def test_an_object_with_init_and_step_is_the_same_kernel(data):
    plain, made = (fit(data, kernel=kernel) for kernel in (Plain(), MadeUp()))
    np.testing.assert_array_equal(plain.positions, made.positions)
    draws = [trained.sample(20, kernel=k) for trained, k in ((plain, Plain()), (made, MadeUp()))]
    np.testing.assert_array_equal(*(drawn.sampled_positions for drawn in draws))
    with pytest.raises(ValueError, match="kernel must be a name"):
        made.sample(20, kernel=3)
