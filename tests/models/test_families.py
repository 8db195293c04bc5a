"""Families: a made-up one is one entry of the registry, and known everywhere from there."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import scipy.stats
from typer.testing import CliRunner

import coremcmc
from coremcmc.cli.app import app
from coremcmc.models.families import FAMILIES, LINKS, Family, Parameter, Response
from coremcmc.models.priors import Exponential
from coremcmc.models.row_checks import require_vector
from coremcmc.pytrees import prepared

ETA = np.linspace(-6.0, 6.0, 25)
TRUTH = {"Intercept": 0.5, "a": -0.7, "shape": 1.6}


def weibull(eta, rows, position, link):
    log_shape = position["log_shape"]
    shape, log_ratio = jnp.exp(log_shape), rows["log_y"] - link.log_inverse(eta)
    return log_shape + shape * log_ratio - rows["log_y"] - jnp.exp(shape * log_ratio)


def require_positive(name, values):
    require_vector(name, values)
    if not (values > 0).all():
        raise ValueError(f"data[{name!r}] must be positive.")


@pytest.fixture
def made_up(monkeypatch):
    """Survival times, the predictor being the logarithm of their scale."""
    family = Family(
        weibull,
        (LINKS["log"], LINKS["softplus"]),
        Response("positive", lambda y: y > 0, "positive", "Leave it out.", require_positive),
        (Parameter("shape", Exponential(1.0)),),
        prepare=lambda rows: {**rows, "log_y": jnp.log(rows["y"])},
    )
    monkeypatch.setitem(FAMILIES, "weibull", family)
    return family


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    a = rng.standard_normal(4_000)
    scale = np.exp(TRUTH["Intercept"] + TRUTH["a"] * a)
    return pd.DataFrame({"a": a, "time": scale * rng.weibull(TRUTH["shape"], len(a))})


@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)
def test_the_logarithm_of_an_inverse_link_is_that_of_the_mean(link):
    eta = np.abs(ETA) if link.name == "identity" else ETA
    mean, log_mean = link.inverse(jnp.asarray(eta)), link.log_inverse(jnp.asarray(eta))
    np.testing.assert_allclose(np.exp(log_mean), mean, rtol=1e-12)
    assert (np.diff(np.asarray(link.inverse(jnp.asarray(ETA)))) > 0).all()


@pytest.mark.parametrize("link", ["log", "softplus"])
def test_a_made_up_family_is_known_to_glm(made_up, table, link):
    model = coremcmc.GLM("weibull", link=link, priors={"shape": "gamma(2, rate=0.5)"})
    stored = {"x": table[["a"]].to_numpy(), "y": table["time"].to_numpy()}
    model.check_rows(stored)
    rows = prepared(model, stored)
    position = model.initial_position(jax.random.key(0), rows)
    assert list(model.constrain_fn(position)) == ["beta", "shape"]
    shape = float(np.exp(position["log_shape"]))
    eta = np.asarray(model.predictor(position, rows))
    scale = np.exp(eta) if link == "log" else np.logaddexp(0.0, eta)
    expected = scipy.stats.weibull_min(shape, scale=scale).logpdf(stored["y"])
    np.testing.assert_allclose(model.loglikelihood_fn(position, rows), expected, rtol=1e-9)
    beta, gamma = np.asarray(position["beta"]), scipy.stats.gamma(2, scale=2)
    prior = scipy.stats.t(3, 0, 2.5).logpdf(beta).sum() + gamma.logpdf(shape) + np.log(shape)
    np.testing.assert_allclose(model.logprior_fn(position), prior, rtol=1e-10)
    with pytest.raises(ValueError, match="must be positive"):
        model.check_rows({**stored, "y": -stored["y"]})


@pytest.mark.slow
def test_a_made_up_family_is_fitted_from_a_formula(made_up, table):
    model, data = coremcmc.from_formula("time ~ a", table, family="weibull")
    fit = coremcmc.fit(model, data, 200, num_iterations=500, num_draws=500, progress=False)
    assert fit.certificate.verdict == "good"
    for name, true in TRUTH.items():
        draws = fit.sampled[name]
        assert abs(draws.mean() - true) < 4.0 * draws.std(), name  # 1 in 15,000 for each


def test_a_formula_refuses_what_the_response_of_a_made_up_family_is_not(made_up, table):
    with pytest.raises(ValueError, match=r"must be positive for family='weibull', but is -.*Leave"):
        coremcmc.from_formula("a ~ time", table, family="weibull")


def test_a_made_up_family_is_known_to_the_command(made_up, table, tmp_path):
    path = tmp_path / "table.csv"
    table.to_csv(path, index=False)
    runner = CliRunner()
    help_text = runner.invoke(app, ["fit", "--help"], env={"COLUMNS": "200"}).stdout
    assert "negative_binomial, weibull." in help_text
    arguments = ["fit", str(path), "--family", "weibull", "--formula", "time ~ a", "--dry-run"]
    words = ["--coreset-size", "50", "--prior", "shape=gamma(2)", "--preset", "paper"]
    done = runner.invoke(app, [*arguments, *words, "--iterations", "100", "--json"])
    assert done.exit_code == 0, done.output
    assert '"num_parameters": 3' in done.stdout
    wrong = runner.invoke(app, [*arguments[:3], "weibul", *arguments[4:]])
    assert wrong.exit_code == 2
    assert "Did you mean 'weibull'?" in wrong.stderr
