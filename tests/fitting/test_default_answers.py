"""Default fits of posteriors that are no Gaussians, against answers by sums over grids and draws.

Bounds: those of the verdict "good" and narrower, which the fits must then deserve.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import coremcmc
from coremcmc import FunctionModel, LogisticRegression
from coremcmc.data import MemoryData
from coremcmc.posterior.mode import laplace_approximation

pytestmark = [pytest.mark.slow, pytest.mark.statistical]


def weighted_moments(points, log_density):
    weights = np.exp(log_density - log_density.max())
    mean = np.average(points, axis=0, weights=weights)
    return mean, np.sqrt(np.average(np.square(points - mean), axis=0, weights=weights))


# -- a banana -------------------------------------------------------------------------------------


def banana_logprior(position):
    return -0.5 * (position["a"] ** 2 + position["b"] ** 2)


def banana_loglikelihood(position, rows):
    residual = (rows["y"] - position["a"] - position["b"] ** 2 * rows["x"]) / 10.0
    return -2.5 * jnp.log1p(residual * residual / 4.0)


def banana_initial(key):
    a, b = jax.random.normal(key, (2,))
    return {"a": a, "b": b}


BANANA = FunctionModel(banana_logprior, banana_loglikelihood, banana_initial)


@pytest.fixture(scope="module")
def banana():
    """a and b are known through a + b² x only; the answer by a sum over a grid."""
    rng = np.random.default_rng(1)
    rows = {"x": rng.uniform(0.5, 1.5, 5_000), "y": 10.0 * rng.standard_t(4, 5_000)}
    a, b = np.meshgrid(np.linspace(-6, 2, 161), np.linspace(-3, 3, 61), indexing="ij")
    points = np.stack([a.ravel(), b.ravel()], axis=1)

    def logdensity(point):
        position = {"a": point[0], "b": point[1]}
        return banana_loglikelihood(position, rows).sum() + banana_logprior(position)

    with jax.enable_x64(True):
        values = jax.jit(lambda x: jax.lax.map(logdensity, x, batch_size=64))(points)
    return rows, *weighted_moments(points, np.asarray(values))


@pytest.mark.parametrize("seed", [0, 1])
def test_a_banana(banana, seed):
    rows, mean, sd = banana
    fit = coremcmc.fit(BANANA, rows, 500, seed=seed, progress=False)
    assert fit.certificate.verdict == "good"
    assert fit.squared_z(mean, sd) < 0.01
    ratio = fit.sampled_positions.std(axis=(0, 1)) / sd
    assert ratio.min() > 0.85
    assert ratio.max() < 1.15
    # The Gaussian at the mode would not do.
    laplace = fit.certificate
    assert np.mean(((laplace.laplace_mean - mean) / sd) ** 2) > 0.1


# -- rare events ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rare():
    """30 positives of 20,000; one feature is 1 in a hundred rows, and in one of the positives.

    The answer by importance sampling: draws of a Student's t around the mode, exact sums.
    """
    rng = np.random.default_rng(11)
    x = np.column_stack([rng.standard_normal((20_000, 2)), rng.random(20_000) < 0.01])
    score = x @ [1.0, -0.5, 0.3] + rng.gumbel(size=20_000)
    y = np.zeros(20_000, int)
    y[np.argsort(score)[-30:]] = 1
    model, size = LogisticRegression(), 8_000
    with jax.enable_x64(True):
        laplace = laplace_approximation(model, MemoryData({"x": x, "y": y}), {"beta": jnp.zeros(4)})
    proposal = stats.multivariate_t(laplace.mean, 1.3 * np.linalg.inv(laplace.precision), 5)
    beta = proposal.rvs(size, random_state=12)
    log_posterior = stats.cauchy.logpdf(beta).sum(axis=1)
    for few in np.array_split(np.arange(size), 20):
        eta = beta[few] @ np.column_stack([np.ones(20_000), x]).T
        log_posterior[few] += eta[:, y == 1].sum(axis=1) - np.logaddexp(0.0, eta).sum(axis=1)
    log_ratio = log_posterior - proposal.logpdf(beta)
    weights = np.exp(log_ratio - log_ratio.max())
    assert weights.sum() ** 2 / np.square(weights).sum() > 3_000  # effective draws
    return {"x": x, "y": y}, *weighted_moments(beta, log_ratio)


@pytest.mark.parametrize("seed", [0, 1])
def test_rare_events(rare, seed):
    """The reference has errors of 1/√3000 of a sd in the means, and of 1/√6000 in the sds."""
    rows, mean, sd = rare
    fit = coremcmc.fit(LogisticRegression(), rows, 500, seed=seed, progress=False)
    assert rows["y"][fit.coreset.indices].sum() >= 20
    assert fit.certificate.verdict == "good"
    squared_z = fit.squared_z(mean, sd)
    assert squared_z < 0.005
    ratio = fit.sampled_positions.std(axis=(0, 1)) / sd
    assert ratio.min() > 0.9
    assert ratio.max() < 1.1
    assert np.mean(((fit.certificate.laplace_mean - mean) / sd) ** 2) > 4 * squared_z
