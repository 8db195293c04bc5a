"""The coreset in NumPyro, PyMC, Stan and statsmodels: the same posterior as in this package."""

import json
import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

import coremcmc
from coremcmc.posterior.target import Target
from tests.docs.pages import DOCS, blocks_of, run_blocks

PAGE = DOCS / "guides" / "elsewhere.md"
STAN = next(block.code for block in blocks_of(PAGE) if block.language == "stan")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS"),
]


@pytest.fixture(scope="module")
def page(demo_output, tmp_path_factory):
    """Everything that the page's code defines, run once."""
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "demo-output").symlink_to(demo_output, target_is_directory=True)
    with pytest.MonkeyPatch.context() as patch, jax.enable_x64(False):
        patch.chdir(folder)
        namespace = run_blocks(PAGE, {"__name__": "__main__"})
    # Copies: JAX remembers an array by its identity as it was in 32-bit mode.
    columns = {name: namespace[name].copy() for name in ("x", "y", "weight")}
    return {**namespace, **columns, "folder": folder}


@pytest.fixture(scope="module")
def points(page):
    """Positions around the posterior: intercept first."""
    draws = page["fit"].sampled_positions.reshape(-1, 5)
    rng = np.random.default_rng(0)
    return draws.mean(axis=0) + 5.0 * draws.std(axis=0) * rng.standard_normal((6, 5))


@pytest.fixture
def densities(page, points):
    """Log densities of our coreset posterior there."""
    return np.array([_target(page, page["model"])({"beta": jnp.asarray(p)}) for p in points])


def _target(page, model):
    rows = {"x": jnp.asarray(page["x"]), "y": jnp.asarray(page["y"])}
    return Target(model, model.prepare_rows(rows), jnp.asarray(page["weight"]))


def test_file_holds_the_rows_of_the_table(page):
    kept = page["coreset"]
    original = page["table"].iloc[kept["row"]].reset_index(drop=True)
    assert 100 < len(kept) <= 500
    assert (original == kept[original.columns].reset_index(drop=True)).all(axis=None)
    in_order = page["fit"].coreset.weights[page["fit"].coreset.weights > 0]
    np.testing.assert_array_equal(kept["weight"], in_order)


def test_numpyro_has_the_same_density(page, points, densities):
    arguments = (page["x"], page["y"], page["weight"])
    density = page["numpyro"].infer.util.log_density
    found = [
        density(page["weighted"], arguments, {}, {"intercept": p[0], "beta": p[1:]})[0]
        for p in points
    ]
    np.testing.assert_allclose(found, densities, rtol=1e-8)


def test_numpyro_draws_the_same_posterior(page):
    """Means within 4 standard errors of their Monte Carlo noise; sds within a tenth."""
    ours = page["fit"].sample(1_000, num_chains=2).posterior["beta"].reshape(-1, 5)
    samples = page["mcmc"].get_samples()
    theirs = np.column_stack([samples["intercept"], samples["beta"]])
    effective = page["numpyro"].diagnostics.effective_sample_size(theirs[None])
    error = theirs.std(axis=0) * np.sqrt(1 / effective + 1 / 1_000)
    assert (np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) < 4 * error).all()
    np.testing.assert_allclose(ours.std(axis=0), theirs.std(axis=0), rtol=0.1)


def test_pymc_has_the_same_density(page, points, densities):
    density = page["weighted_pymc"].compile_logp()
    found = [float(density({"intercept": p[0], "beta": p[1:]})) for p in points]
    np.testing.assert_allclose(found, densities, rtol=1e-8)


# -- Stan, compiled by PyStan ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def stan_posterior(page):
    """The page's program with the page's data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its server, about itself
        stan = pytest.importorskip("stan", reason="PyStan has no build for this platform")
        return stan.build(STAN, data=page["inputs"], random_seed=1)


def test_stan_reads_the_file_that_the_page_writes(page):
    declared = re.search(r"^data {\n(.*?)^}", STAN, re.MULTILINE | re.DOTALL)[1]
    written = json.loads((page["folder"] / "coreset.json").read_text())
    assert sorted(re.findall(r"(\w+);$", declared, re.MULTILINE)) == sorted(written)
    assert written == page["inputs"]


def test_stan_has_the_same_density(stan_posterior, points, densities):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [stan_posterior.log_prob(list(p)) for p in points]
    np.testing.assert_allclose(found, densities, rtol=1e-8)


# -- statsmodels -----------------------------------------------------------------------------------


def test_statsmodels_estimate_is_our_mode_under_a_wide_prior(page):
    wide = coremcmc.GLM("logistic", priors=dict.fromkeys(("beta", "Intercept"), "normal(1000)"))
    target = _target(page, wide)

    @jax.jit
    def objective(beta):
        return jax.value_and_grad(lambda b: -target({"beta": b}))(beta)

    start = np.asarray(page["mle"].params) + 0.1
    found = optimize.minimize(objective, start, jac=True, method="BFGS", options={"gtol": 1e-5})
    mode, mle, error = found.x, np.asarray(page["mle"].params), np.asarray(page["mle"].bse)
    assert (np.abs(mode - mle) < 1e-3 * error).all()


def test_statsmodels_estimate_and_errors_are_those_of_all_rows(page):
    sm = page["sm"]
    full = sm.GLM(
        page["data"]["y"], sm.add_constant(page["data"]["x"]), family=sm.families.Binomial()
    ).fit()
    difference = np.asarray(page["mle"].params) - full.params
    assert (np.abs(difference) < 0.2 * full.bse).all()
    np.testing.assert_allclose(page["mle"].bse, full.bse, rtol=0.1)
