"""The gradient estimate is unbiased: over chains and over subsamples."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coremcmc.data import MemoryData
from coremcmc.gradient.kl import kl_gradient
from coremcmc.models import GaussianLocation
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

    def one(key):
        key_chains, key_rows = jax.random.split(key)
        theta = mean + jnp.sqrt(variance) * jax.random.normal(key_chains, (num_chains, 3))
        rows = feed.subsample(key_rows, jnp.zeros((), int), size) if pick is None else pick
        terms = jax.vmap(lambda t, r: model.loglikelihood_fn({"theta": t}, r), in_axes=(0, None))
        return kl_gradient(jnp.asarray(weights), terms(theta, coreset), terms(theta, rows), len(x))

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
    rng = np.random.default_rng(2)
    w, core, sub = rng.gamma(1, 1, 4), rng.normal(size=(3, 4)) - 1e3, rng.normal(size=(3, 6)) - 1e3
    expected = np.zeros(4)
    for k in range(3):
        centred = core[k] - core.mean(0)
        other = (sub[k] - sub.mean(0)).sum() * 100 / 6
        expected += centred * (w @ centred - other) / 2
    got = kl_gradient(jnp.asarray(w), jnp.asarray(core), jnp.asarray(sub), 100)
    np.testing.assert_allclose(got, expected, rtol=1e-9)
