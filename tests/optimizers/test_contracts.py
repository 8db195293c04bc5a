"""Every optimizer of the package keeps the contract."""

import jax.numpy as jnp
import numpy as np
import optax
import pytest

from coremcmc.optimizers import OPTIMIZERS
from tests.contracts.optimizer import OptimizerContract, descend


class TestOptimizers(OptimizerContract):
    @pytest.fixture(params=OPTIMIZERS)
    def name(self, request):
        return request.param

    @pytest.fixture
    def factory(self, name):
        return OPTIMIZERS[name]

    @pytest.fixture
    def knows_the_constraint(self, name):
        # The bound of D-Adaptation on the distance knows of no constraint.
        return not name.startswith("dadapt")


def test_one_that_goes_uphill_does_not_pass_for_convergence():
    """The power of the tests of convergence."""
    uphill = optax.with_extra_args_support(optax.sgd(-1e-3))
    target = jnp.asarray([3.0, 4.0, 2.5])
    w = descend(uphill, [2.0, 3.0, 3.0], target, num_steps=2_000)
    assert np.abs(w - target).max() > 0.02
