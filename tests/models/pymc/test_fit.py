"""Fits of PyMC models beside the built-in family and NumPyro's NUTS on all rows."""

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.diagnostics import effective_sample_size
from numpyro.infer import MCMC, NUTS

import coremcmc
from tests.models.pymc.pymc_models import pm

NUM_ROWS = 5_000


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(NUM_ROWS, 3))
    probability = 1.0 / (1.0 + np.exp(1.0 - x @ [1.0, -0.5, 0.25]))
    return {"x": x, "y": (rng.random(NUM_ROWS) < probability).astype(int)}


def logistic(data):
    with pm.Model() as model:
        x, y = pm.Data("x", data["x"]), pm.Data("y", data["y"])
        eta = pm.Cauchy("intercept", 0, 1) + x @ pm.Cauchy("slopes", 0, 1, shape=3)
        pm.Bernoulli("outcome", logit_p=eta, observed=y)
    return model


def nuts(program, **data):
    """Draws from the posterior of all rows: chains × draws of each variable."""
    sampler = MCMC(
        NUTS(program), num_warmup=500, num_samples=1_500, num_chains=2,
        chain_method="sequential", progress_bar=False,
    )  # fmt: skip
    sampler.run(jax.random.key(0), **data)
    return {k: np.asarray(x) for k, x in sampler.get_samples(group_by_chain=True).items()}


def assert_same_means(first, second):
    """Means agree within four Monte Carlo standard errors, each about 0.02 posterior sds."""
    first, second = (np.asarray(draws).reshape(*draws.shape[:2], -1) for draws in (first, second))
    for a, b in zip(np.moveaxis(first, -1, 0), np.moveaxis(second, -1, 0), strict=True):
        error = np.hypot(*(x.std() / np.sqrt(effective_sample_size(x)) for x in (a, b)))
        assert error < 0.05 * b.std()
        assert abs(a.mean() - b.mean()) < 4.0 * error
        assert 0.9 < a.std() / b.std() < 1.1


@pytest.mark.slow
def test_the_posterior_is_that_of_the_built_in_family_and_of_nuts(data):
    def program(x, y):
        intercept = numpyro.sample("intercept", dist.Cauchy(0, 1))
        slopes = numpyro.sample("slopes", dist.Cauchy(0, 1).expand([3]))
        numpyro.sample("outcome", dist.Bernoulli(logits=intercept + x @ slopes), obs=y)

    ours = coremcmc.fit(*coremcmc.from_pymc(logistic(data)), coreset_size=300)
    built_in = coremcmc.fit(coremcmc.LogisticRegression(), data, coreset_size=300)
    reference = nuts(program, **data)
    beta = np.concatenate(
        [ours.posterior["intercept"][..., None], ours.posterior["slopes"]], axis=-1
    )
    assert_same_means(beta, built_in.posterior["beta"])
    assert_same_means(ours.posterior["intercept"], reference["intercept"])
    assert_same_means(ours.posterior["slopes"], reference["slopes"])


@pytest.mark.slow
def test_constrained_and_hierarchical_parameters(data):
    rng = np.random.default_rng(4)
    group = rng.integers(0, 6, NUM_ROWS)
    y = rng.normal(0.0, 1.0, 6)[group] + 0.5 * data["x"][:, 0] + rng.standard_t(4, NUM_ROWS)

    with pm.Model() as model:
        x, g = pm.Data("x", data["x"][:, 0]), pm.Data("g", group)
        mean, spread = pm.Normal("mean", 0, 2), pm.Gamma("spread", 2, 2)
        level = pm.Normal("level", mean, spread, shape=6)
        location = level[g] + pm.Normal("slope", 0, 1) * x
        sigma = pm.HalfNormal("sigma", 2)
        pm.StudentT("o", nu=4, mu=location, sigma=sigma, observed=pm.Data("y", y))

    def program(x, g, y):
        mean = numpyro.sample("mean", dist.Normal(0, 2))
        spread = numpyro.sample("spread", dist.Gamma(2, 2))
        level = numpyro.sample("level", dist.Normal(mean, spread).expand([6]))
        slope = numpyro.sample("slope", dist.Normal(0, 1))
        sigma = numpyro.sample("sigma", dist.HalfNormal(2))
        numpyro.sample("o", dist.StudentT(4, level[g] + slope * x, sigma), obs=y)

    ours = coremcmc.fit(*coremcmc.from_pymc(model), coreset_size=400)
    reference = nuts(program, x=data["x"][:, 0], g=group, y=y)
    for name in ("mean", "spread", "level", "slope", "sigma"):
        assert_same_means(ours.posterior[name], reference[name])


@pytest.mark.slow
def test_a_fit_is_resumed_with_the_model_translated_anew(data, tmp_path):
    def fit(num_iterations, **options):
        problem = coremcmc.from_pymc(logistic(data))
        options |= {"num_iterations": num_iterations, "thin": 10, "certificate": False}
        return coremcmc.fit(*problem, coreset_size=50, num_draws=10, **options)

    path = tmp_path / "fit.npz"
    fit(60, checkpoint=path)
    resumed = fit(120, checkpoint=path, resume=True)
    whole = fit(120)
    assert resumed.iteration == whole.iteration == 120
    np.testing.assert_array_equal(resumed.coreset.weights_last, whole.coreset.weights_last)
    np.testing.assert_array_equal(resumed.draws["slopes"], whole.draws["slopes"])
