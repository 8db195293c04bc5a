"""The gradient that an iteration moves by is unbiased: over chains and over subsamples."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from coremcmc.algorithm.step import CoresetMCMC
from coremcmc.data import MemoryData
from coremcmc.kernels import GaussianExact, HitAndRun
from coremcmc.models import FunctionModel, GaussianLocation
from coremcmc.optimizers import hot_dog
from tests.standard_errors import assert_unbiased, is_biased

pytestmark = pytest.mark.statistical


def problem():
    rng = np.random.default_rng(0)
    x = (
        rng.standard_normal((53, 3)) + np.linspace(0, 2, 53)[:, None]
    )  # ordered: order must not matter
    weights = rng.gamma(2.0, 4.0, 7)
    return x, weights


def closed_form(x, weights):
    """Cov(ℓ_m, Σ w ℓ − Σ ℓ) under π_w = N(μ, s I), by hand.

    With θ = μ + √s z, ℓ_n = √s (x_n − μ)·z − s|z|²/2 + const, and |z|² has variance 2d and no
    correlation with z.
    """
    precision = 1 + weights.sum()
    s, d = 1 / precision, x.shape[1]
    mu = weights @ x[:7] / precision
    slope = weights @ x[:7] - x.sum(0) - (weights.sum() - len(x)) * mu
    return s * (x[:7] - mu) @ slope + (weights.sum() - len(x)) * s**2 * d / 2


def estimates(num_chains, size, num_replicates=40_000, pick=None):
    x, weights = problem()
    model, feed = GaussianLocation(), MemoryData({"x": x}).feed()
    coreset = {"x": jnp.asarray(x[:7])}
    mean, variance = model.posterior(coreset, jnp.asarray(weights))
    algorithm = CoresetMCMC(model, len(x), GaussianExact(), hot_dog(), hot_start=None)

    def one(key):
        key_chains, key_rows = jax.random.split(key)
        theta = mean + jnp.sqrt(variance) * jax.random.normal(key_chains, (num_chains, 3))
        rows = feed.subsample(key_rows, jnp.zeros((), int), size) if pick is None else pick
        state = algorithm.init({"theta": theta}, jnp.asarray(weights), coreset)
        return algorithm.gradient(state, rows).gradient

    keys = jax.random.split(jax.random.key(1), num_replicates)
    return np.asarray(jax.jit(jax.vmap(one))(keys)), closed_form(x, weights)


@pytest.mark.parametrize(("num_chains", "size"), [(2, 5), (3, 20), (5, 1), (2, 53)])
def test_mean_equals_the_closed_form_covariance(num_chains, size):
    samples, truth = estimates(num_chains, size)
    assert_unbiased(samples, truth)


def test_a_dropped_tail_would_be_seen():
    x, _ = problem()
    samples, truth = estimates(2, 50, pick={"x": jnp.asarray(x[:50])})
    assert is_biased(samples, truth)


def test_equals_a_plain_double_sum():
    """The position of chain k picks column k, so that the log-likelihoods are any numbers."""
    rng = np.random.default_rng(2)
    w, core, sub = rng.gamma(1, 1, 4), rng.normal(size=(3, 4)) - 1e3, rng.normal(size=(3, 6)) - 1e3
    expected = np.zeros(4)
    for k in range(3):
        centred = core[k] - core.mean(0)
        other = (sub[k] - sub.mean(0)).sum() * 100 / 6
        expected += centred * (w @ centred - other) / 2
    model = FunctionModel(lambda p: -0.5 * p @ p, lambda p, rows: rows @ p, lambda key: jnp.ones(3))
    algorithm = CoresetMCMC(model, 100, HitAndRun(), hot_dog(), hot_start=None)
    state = algorithm.init(jnp.eye(3), jnp.asarray(w), jnp.asarray(core.T))
    got = algorithm.gradient(state, jnp.asarray(sub.T))
    np.testing.assert_allclose(got.gradient, expected, rtol=1e-9)


def test_a_step_moves_the_weights_by_this_gradient():
    """What is tested above is what the algorithm runs on: plain descent shows it."""
    x, weights = problem()
    rows, subsample = {"x": jnp.asarray(x[:7])}, {"x": jnp.asarray(x[20:30])}
    rate = 1e-3
    algorithm = CoresetMCMC(
        GaussianLocation(), len(x), GaussianExact(), optax.sgd(rate), hot_start=None
    )
    positions = {"theta": jnp.asarray(np.random.default_rng(3).standard_normal((3, 3)))}
    state = algorithm.init(positions, jnp.asarray(weights), rows)
    after, info = algorithm.step(jax.random.key(0), state, subsample, rows)
    gradient = np.asarray(algorithm.gradient(state, subsample).gradient)
    moved = np.maximum(weights - rate * gradient, 0.0)
    assert np.abs(moved - weights).max() > 1e-3
    np.testing.assert_allclose(after.weights, moved, rtol=1e-12)
    np.testing.assert_allclose(info.gradient_norm, np.linalg.norm(gradient), rtol=1e-12)
