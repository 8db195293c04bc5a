"""Draws at fixed weights, ArviZ, and the coreset as a table."""

import pickle

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import coremcmc
from coremcmc import FunctionModel, GaussianLocation, LogisticRegression, SparseRegression


@pytest.fixture(scope="module")
def data():
    return coremcmc.logistic_data(num_rows=5_000)


@pytest.fixture(scope="module")
def fit(data):
    return coremcmc.fit(LogisticRegression(), data, 100, progress=False)


def test_nuts_draws_from_the_weighted_posterior():
    """The closed form: prior N(0, I), rows N(θ, I), weights w."""
    rng = np.random.default_rng(0)
    x = rng.normal(1.0, 1.0, (400, 3))
    made = coremcmc.fit(
        GaussianLocation(), {"x": x}, 40, preset="paper", hot_start=False, num_iterations=500
    )
    drawn = made.sample(2_000, seed=3)
    w = made.coreset.weights
    variance = 1 / (1 + w.sum())
    mean = variance * (w @ x[made.coreset.indices])
    flat = drawn.sampled_positions.reshape(-1, 3)
    error = (flat.mean(axis=0) - mean) / np.sqrt(variance)
    # At least 2,000 effective draws of 8,000; 4.5 standard errors.
    assert np.abs(error).max() < 4.5 / np.sqrt(2_000)
    assert np.allclose(flat.var(axis=0), variance, rtol=4.5 * np.sqrt(2 / 2_000))
    assert drawn.sample_stats["diverging"].sum() == 0


def test_all_kernels_agree_with_the_fit(fit):
    reference = fit.sampled_positions.reshape(-1, fit.sampled_positions.shape[-1])
    for kernel in ("nuts", "whitened_hmc", "whitened_slice"):
        drawn = fit.sample(1_000, kernel=kernel, num_chains=4)
        assert drawn.sampled_positions.shape == (1_000, 4, reference.shape[1])
        flat = drawn.sampled_positions.reshape(-1, reference.shape[1])
        z = (flat.mean(axis=0) - reference.mean(axis=0)) / reference.std(axis=0)
        assert np.abs(z).max() < 0.25, kernel  # at least 700 effective draws on either side
        assert (flat.std(axis=0) / reference.std(axis=0)).min() > 0.8, kernel


def test_same_seed_same_draws_and_the_rest_stays(fit):
    first, again, other = (fit.sample(50, seed=s) for s in (1, 1, 2))
    assert np.array_equal(first.sampled_positions, again.sampled_positions)
    assert not np.array_equal(first.sampled_positions, other.sampled_positions)
    assert first.certificate is fit.certificate
    assert first.coreset is fit.coreset
    assert first.posterior["beta"].shape == (4, 50, 5)


def test_a_loaded_fit_needs_its_model_and_no_data(fit, tmp_path):
    loaded = coremcmc.Fit.load(fit.save(tmp_path / "fit.npz"))
    with pytest.raises(ValueError, match="Pass model="):
        loaded.sample(10)
    with pytest.raises(ValueError, match="not the one that the fit was made with"):
        loaded.sample(10, model=LogisticRegression(intercept=False))
    drawn = loaded.sample(10, model=LogisticRegression())
    assert np.array_equal(drawn.sampled_positions, fit.sample(10).sampled_positions)
    saved = coremcmc.Fit.load(drawn.save(tmp_path / "drawn.npz"))
    assert np.array_equal(saved.sample_stats["lp"], drawn.sample_stats["lp"])


def test_the_fits_own_draws_have_their_log_densities(fit):
    again = fit.sample(5, kernel="whitened_hmc")
    assert fit.sample_stats["lp"].shape == fit.sampled["beta"].shape[:2]
    beta, w = fit.sampled["beta"][3, 7], fit.coreset.weights
    eta = beta[0] + np.asarray(fit.coreset.rows["x"], float) @ beta[1:]
    terms = np.asarray(fit.coreset.rows["y"]) * eta - np.logaddexp(0, eta)
    density = w @ terms - np.log(np.pi * (1 + beta**2)).sum()
    assert fit.sample_stats["lp"][3, 7] == pytest.approx(density, rel=1e-9)
    assert again.sample_stats["lp"].shape == (4, 5)


def test_a_pickled_fit_loses_its_model_only(fit):
    again = pickle.loads(pickle.dumps(fit))
    assert again.model is None
    assert np.array_equal(again.positions, fit.positions)


def test_rows_that_are_not_a_mapping_need_the_data():
    rows = np.random.default_rng(1).normal(size=(200, 2))
    model = FunctionModel(
        logprior=lambda p: -0.5 * (p**2).sum(),
        loglikelihood=lambda p, r: -0.5 * ((r - p) ** 2).sum(axis=1),
        initial=lambda key: jnp.zeros(2),
    )
    made = coremcmc.fit(model, rows, 20, preset="paper", hot_start=False, num_iterations=100)
    with pytest.raises(ValueError, match="Pass data="):
        made.sample(10)
    assert made.sample(10, data=rows).sampled_positions.shape == (10, 4, 2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_draws": 0}, "num_draws must be an integer of at least 1"),
        ({"num_chains": 0}, "num_chains must be an integer"),
        ({"num_warmup": True}, "num_warmup must be an integer"),
        ({"kernel": "gibbs"}, "kernel='gibbs' is unknown; choose from nuts, hit_and_run"),
    ],
)
def test_bad_arguments(fit, options, words):
    with pytest.raises(ValueError, match=words):
        fit.sample(**options)


def test_nuts_refuses_discrete_parameters_and_the_default_does_not():
    model = SparseRegression()
    data = coremcmc.sparse_regression_data(num_rows=500)
    made = coremcmc.fit(model, data, 50, preset="paper", hot_start=False, num_iterations=200)
    with pytest.raises(ValueError, match="kernel='nuts' moves unconstrained reals only"):
        made.sample(10, kernel="nuts")
    assert made.sample(10).sampled_positions.shape[:2] == (10, 4)


def test_arviz_has_every_group_and_its_functions_work(fit, data):
    import arviz

    drawn = fit.sample(200)
    tree = drawn.to_arviz(data, num_loo_rows=300)
    assert {"posterior", "sample_stats", "coreset", "observed_data", "log_likelihood"} <= {
        name.strip("/") for name in (tree.groups() if callable(tree.groups) else tree.groups)
    }
    assert np.array_equal(tree["coreset"]["weight"].values, fit.coreset.weights)
    assert tree["observed_data"]["x"].shape == (100, 4)
    assert tree["posterior"].attrs["verdict"] == fit.certificate.verdict
    table = arviz.summary(tree)
    assert np.allclose(
        table["mean"].to_numpy(float), drawn.posterior["beta"].mean((0, 1)), atol=0.006
    )
    loo = arviz.loo(tree)
    # The mean log-likelihood of a row at the truth, within four standard errors.
    x, y = np.asarray(data["x"], float), np.asarray(data["y"], float)
    eta = -0.5 + x @ np.linspace(1, -1, 4)
    truth = y * eta - np.logaddexp(0, eta)
    elpd = float(loo.elpd_loo if hasattr(loo, "elpd_loo") else loo.elpd)
    assert abs(elpd / 300 - truth.mean()) < 4 * truth.std() / np.sqrt(300)


def test_netcdf_round_trip(fit, tmp_path):
    import arviz

    fit.sample(20).to_arviz().to_netcdf(tmp_path / "posterior.nc")
    tree = arviz.from_netcdf(tmp_path / "posterior.nc")
    assert tree["posterior"]["beta"].shape == (4, 20, 5)
    assert np.array_equal(tree["coreset"]["row"].values, fit.coreset.indices)


def test_a_slash_in_a_name_does_not_break_the_file(tmp_path):
    model = FunctionModel(
        logprior=lambda p: -0.5 * p**2,
        loglikelihood=lambda p, rows: -0.5 * (rows["a/b"] - p) ** 2,
        initial=lambda key: jnp.zeros(()),
        constrain=lambda p: {"I(h / 2)": p},
    )
    rows = {"a/b": np.random.default_rng(2).normal(size=100)}
    made = coremcmc.fit(model, rows, 20, preset="paper", hot_start=False, num_iterations=50)
    made.to_arviz().to_netcdf(tmp_path / "posterior.nc")
    assert (tmp_path / "posterior.nc").stat().st_size > 0


def test_arviz_of_a_fit_without_a_verdict():
    model, data = GaussianLocation(), {"x": np.ones((50, 2))}
    made = coremcmc.fit(model, data, 10, preset="paper", hot_start=False, num_iterations=20)
    assert made.to_arviz()["posterior"].attrs["verdict"] == "none"


def test_the_coreset_as_a_table(fit, data, tmp_path):
    frame = fit.coreset.to_pandas()
    assert list(frame.columns) == ["row", "weight", "x_0", "x_1", "x_2", "x_3", "y"]
    assert np.array_equal(frame["x_2"], np.asarray(data["x"])[fit.coreset.indices, 2])
    own = pd.DataFrame({"weight": np.arange(5_000), "name": [f"r{i}" for i in range(5_000)]})
    path = fit.coreset.to_parquet(tmp_path / "coreset.parquet", own)
    read = pd.read_parquet(path)
    assert list(read.columns) == ["row", "weight", "weight_", "name"]
    assert read["name"][7] == f"r{fit.coreset.indices[7]}"
    assert np.array_equal(read["weight"], fit.coreset.weights)
    assert [p.name for p in tmp_path.iterdir()] == ["coreset.parquet"]
    with pytest.raises(ValueError, match="table has 10 rows, but the coreset was chosen from"):
        fit.coreset.to_pandas(own[:10])


def test_parameters_keep_the_models_order():
    model = FunctionModel(
        logprior=lambda p: -0.5 * (p["z"] ** 2 + p["a"] ** 2),
        loglikelihood=lambda p, rows: -0.5 * (rows["x"] - p["z"] - p["a"]) ** 2,
        initial=lambda key: {"z": jnp.zeros(()), "a": jnp.zeros(())},
        constrain=lambda p: {"zeta": p["z"], "sum": p["z"] + p["a"], "alpha": p["a"]},
    )
    rows = {"x": np.random.default_rng(2).normal(size=100)}
    made = coremcmc.fit(model, rows, 20, preset="paper", hot_start=False, num_iterations=50)
    assert list(made.draws) == ["zeta", "sum", "alpha"]
    np.testing.assert_allclose(made.draws["sum"], made.draws["zeta"] + made.draws["alpha"])
    assert list(made.sample(5).sampled) == ["zeta", "sum", "alpha"]
