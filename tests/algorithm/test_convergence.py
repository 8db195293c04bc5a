"""With an exact coreset the weights converge to it, as the paper's theorem says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from coremcmc.algorithm.step import CoresetMCMC
from coremcmc.data import MemoryData
from coremcmc.kernels import GaussianExact
from coremcmc.models import GaussianLocation
from coremcmc.optimizers import OPTIMIZERS

pytestmark = pytest.mark.statistical

NUM_RUNS, NUM_ITERATIONS = 48, 60_000


def exact_coreset(rng, d=3, num_rows=20):
    """Data, and d + 1 of its rows with the only weights w* that reproduce the whole likelihood.

    Σ_n ℓ_n = Σ_m w*_m ℓ_m + const for all θ asks for Σ w* = N and Σ w* x_m = Σ x_n: as many
    equations as weights. N is small, for the mixing assumption of the theorem: scaling all
    weights together changes the posterior the less the more data there are.
    """
    corners = np.vstack([np.eye(d), -np.ones(d)])
    x = np.vstack([corners, 0.5 * rng.standard_normal((num_rows - d - 1, d))])
    system = np.vstack([np.ones(d + 1), corners.T])
    return x, np.linalg.solve(system, np.concatenate([[num_rows], x.sum(0)]))


@pytest.mark.slow
def test_squared_distance_to_the_exact_weights_falls_at_least_like_root_t():
    x, exact = exact_coreset(np.random.default_rng(0))
    assert (exact > 0).all()
    num_rows, size = len(x), len(exact)
    model, feed = GaussianLocation(), MemoryData({"x": x}).feed()
    rows = {"x": jnp.asarray(x[:size])}
    algorithm = CoresetMCMC(
        model,
        num_rows,
        GaussianExact(),
        OPTIMIZERS["hot_dog"](),
        max_weight_sum=2.0 * num_rows,
    )
    start = jnp.asarray(exact * np.array([0.5, 1.5, 0.7, 1.2]))
    times = np.unique(np.logspace(3, np.log10(NUM_ITERATIONS), 25).astype(int))

    def one(key):
        state = algorithm.init({"theta": jax.random.normal(key, (2, 3))}, start, rows)

        def step(state, t):
            key_move, key_rows = jax.random.split(jax.random.fold_in(key, t))
            subsample = feed.subsample(key_rows, t, num_rows // 2)
            state, _ = algorithm.step(key_move, state, subsample, rows)
            return state, jnp.sum((state.weights - exact) ** 2)

        return jax.lax.scan(step, state, jnp.arange(NUM_ITERATIONS))[1][times - 1]

    keys = jax.random.split(jax.random.key(1), NUM_RUNS)
    squared = np.asarray(jax.jit(jax.vmap(one))(keys))
    mean = squared.mean(0)
    # Slope of log E‖w_t − w*‖² on log t, with a bootstrap over runs for its standard error.
    slope = stats.linregress(np.log(times), np.log(mean)).slope
    rng = np.random.default_rng(2)
    resampled = [squared[rng.integers(0, NUM_RUNS, NUM_RUNS)].mean(0) for _ in range(400)]
    error = np.std([stats.linregress(np.log(times), np.log(m)).slope for m in resampled])
    assert mean[-1] < 0.01 * np.sum((np.asarray(start) - exact) ** 2)
    assert slope + 3 * error < -0.5, f"slope {slope:.3f} ± {error:.3f}"
