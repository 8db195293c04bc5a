"""Whole fits of what has no mode, no gradient, no curvature or no unique answer."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import coremcmc
from coremcmc import FitError, FunctionModel, LogisticRegression
from coremcmc.fitting.settings import Limits
from coremcmc.posterior.mode import ModeSearch

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:the hot-start test has not passed"),
]

SHORT = {"num_iterations": 300, "num_draws": 250, "progress": False}


def plain_logistic(dimension, logprior):
    """A logistic regression of features as they are, under any prior."""
    likelihood = LogisticRegression(intercept=False).loglikelihood_fn
    return FunctionModel(
        logprior,
        lambda beta, rows: likelihood({"beta": beta}, rows),
        lambda key: jnp.zeros(dimension),
    )


def flat(beta):
    return jnp.zeros(())


def normal(beta):
    return -0.5 * jnp.sum(beta**2)


def logistic_rows(x, seed=0):
    rng = np.random.default_rng(seed)
    return {"x": x, "y": (rng.random(len(x)) < 1 / (1 + np.exp(-x[:, 0]))).astype(int)}


# -- no mode, no gradient -------------------------------------------------------------------------


def test_separable_data_under_a_flat_prior_are_told_to_have_no_mode():
    """The posterior is improper: the slice sampler runs off with it until it cannot move."""
    x = np.column_stack([np.ones(300), np.random.default_rng(5).standard_normal((300, 2))])
    rows = {"x": x, "y": (x[:, 1] > 0).astype(int)}
    with (
        pytest.warns(UserWarning, match="improper or nearly flat"),
        pytest.raises(FitError, match="a chain cannot move"),
    ):
        coremcmc.fit(plain_logistic(3, flat), rows, 50, **SHORT)


def test_a_model_without_gradients_is_fitted_by_slices():
    """A loop of unknown length has no gradient backwards; the posterior mean is in closed form."""

    def loglikelihood(theta, rows):
        total = jax.lax.while_loop(
            lambda carry: carry[0] < 3,
            lambda carry: (carry[0] + 1, carry[1] + theta[0] / 3),
            (0, jnp.zeros(())),
        )[1]
        return -0.5 * (rows - total) ** 2

    rows = 2.0 + np.random.default_rng(0).standard_normal(500)
    model = FunctionModel(
        lambda theta: -0.5 * theta[0] ** 2, loglikelihood, lambda key: jnp.zeros(1)
    )
    with pytest.warns(UserWarning, match="has no second derivatives"):
        fit = coremcmc.fit(model, rows, 100, **{**SHORT, "num_iterations": 2_000})
    assert fit.config["settings"]["kernel"] == "whitened_slice"
    mean, sd = rows.sum() / 501, 1 / np.sqrt(501)
    assert abs(fit.sampled_positions.mean() - mean) < 1.5 * sd
    assert fit.sampled_positions.std() == pytest.approx(sd, rel=0.3)


@pytest.mark.filterwarnings("ignore:the certificate calls this coreset poor")
def test_more_parameters_than_a_matrix_can_hold_need_none(monkeypatch):
    """No second derivative is taken anywhere, and no covariance factorised."""

    def refuse(*_):
        raise AssertionError("a matrix of second derivatives")

    monkeypatch.setattr("coremcmc.certificate.other_modes.weighted_derivatives", refuse)
    monkeypatch.setattr("coremcmc.posterior.derivatives.weighted_derivatives", refuse)
    monkeypatch.setattr("jax.numpy.linalg.cholesky", refuse)
    x = np.random.default_rng(1).standard_normal((400, 30))
    model = FunctionModel(
        lambda theta: -0.5 * jnp.sum(theta**2),
        lambda theta, rows: -0.5 * jnp.sum((rows - theta) ** 2, axis=1),
        lambda key: jax.random.normal(key, (30,)),
    )
    limits = Limits(mode=ModeSearch(most_parameters=29))
    with pytest.warns(UserWarning, match="has 30 parameters, too many"):
        fit = coremcmc.fit(model, x, 100, limits=limits, **SHORT)
    assert fit.stopped == "finished"
    assert fit.config["settings"]["kernel"] is None
    assert np.isfinite(fit.coreset.weights).all()
    assert fit.certificate.verdict in ("good", "usable", "poor")


def test_nan_in_a_block_of_a_pass_is_named_by_its_rows():
    rows = np.random.default_rng(2).standard_normal(40_000)
    rows[20_000] = 100.0
    model = FunctionModel(
        lambda theta: -0.5 * theta[0] ** 2,
        lambda theta, y: jnp.where(y > 50, jnp.nan, -0.5 * (y - theta[0]) ** 2),
        lambda key: jnp.zeros(1),
    )
    with (
        pytest.warns(UserWarning, match="rows 16,384 to 32,767 of data"),
        pytest.raises((FitError, ValueError)),
    ):
        coremcmc.fit(model, rows, 50, subsample_size=40_000, selection=np.arange(50), **SHORT)


# -- a support with an edge -----------------------------------------------------------------------


def test_a_posterior_at_the_edge_of_its_support():
    """A Poisson rate without a link: Gamma(4, 1001), whose Gaussian has 4 % below zero.

    Mean and sd to what the verdict good allows, √0.02 and 15 %.
    """
    y = np.zeros(1_000)
    y[np.random.default_rng(3).choice(1_000, 3, replace=False)] = 1.0
    model = FunctionModel(
        lambda rate: jnp.where(rate[0] > 0, -rate[0], -jnp.inf),
        lambda rate, rows: jnp.where(rate[0] > 0, rows * jnp.log(rate[0]) - rate[0], -jnp.inf),
        lambda key: jnp.full(1, 0.5),
    )
    fit = coremcmc.fit(model, y, 50, **{**SHORT, "num_draws": 1_000})
    exact = stats.gamma(4, scale=1 / 1_001)
    assert fit.certificate.verdict == "good"
    assert abs(fit.sampled_positions.mean() - exact.mean()) < np.sqrt(0.02) * exact.std()
    assert fit.sampled_positions.std() == pytest.approx(exact.std(), rel=0.15)
    assert (fit.sampled_positions > 0).all()


# -- no curvature ---------------------------------------------------------------------------------


def test_a_singular_hessian_under_a_flat_prior_is_not_called_good():
    """Twin columns: their difference is undetermined, and the posterior improper."""
    x = np.random.default_rng(4).standard_normal((400, 2))[:, [0, 1, 1]]
    with pytest.warns(UserWarning, match="calls this coreset poor"):
        fit = coremcmc.fit(plain_logistic(3, flat), logistic_rows(x), 100, **SHORT)
    assert fit.certificate.verdict == "poor"


def test_a_singular_likelihood_under_a_proper_prior_is_well():
    """The prior alone says what the difference of the twins is: its standard normal."""
    x = np.random.default_rng(4).standard_normal((400, 2))[:, [0, 1, 1]]
    fit = coremcmc.fit(plain_logistic(3, normal), logistic_rows(x), 100, **SHORT)
    assert fit.certificate.verdict == "good"
    difference = (fit.sampled_positions[..., 1] - fit.sampled_positions[..., 2]) / np.sqrt(2)
    assert abs(difference.mean()) < 0.2
    assert difference.std() == pytest.approx(1.0, rel=0.15)


# -- few rows, and one that counts for all --------------------------------------------------------


def test_fewer_rows_than_parameters_are_poor():
    x = np.random.default_rng(5).standard_normal((2_000, 12))
    with pytest.warns(UserWarning, match="calls this coreset poor"):
        fit = coremcmc.fit(plain_logistic(12, normal), logistic_rows(x), 5, **SHORT)
    assert (fit.coreset.weights >= 0).all()
    assert fit.certificate.verdict == "poor"


def test_one_row_that_dominates_is_in_the_coreset_and_the_answer_right():
    """All rows but one hardly know θ, which is N(0, 1) a priori; that one has it near 3."""
    rng = np.random.default_rng(6)
    scale = np.full(3_000, 100.0)
    scale[1_234] = 0.1
    rows = {"y": scale * rng.standard_normal(3_000), "scale": scale}
    rows["y"][1_234] = 3.0
    model = FunctionModel(
        lambda theta: -0.5 * theta[0] ** 2,
        lambda theta, rows: -2.5 * jnp.log1p(((rows["y"] - theta[0]) / rows["scale"]) ** 2 / 4),
        lambda key: jnp.zeros(1),
    )
    fit = coremcmc.fit(model, rows, 50, **{**SHORT, "num_draws": 1_000})
    assert 1_234 in fit.coreset.indices
    grid = np.linspace(-5, 6, 20_001)
    residual = (rows["y"][:, None] - grid[::20]) / scale[:, None]
    others = np.delete(-2.5 * np.log1p(residual**2 / 4), 1_234, axis=0).sum(axis=0)
    log_density = np.interp(grid, grid[::20], others) - 0.5 * grid**2
    log_density += -2.5 * np.log1p(((3.0 - grid) / 0.1) ** 2 / 4)
    weights = np.exp(log_density - log_density.max())
    mean = np.average(grid, weights=weights)
    sd = np.sqrt(np.average((grid - mean) ** 2, weights=weights))
    assert fit.certificate.verdict == "good"
    assert abs(fit.sampled_positions.mean() - mean) < np.sqrt(0.02) * sd
    # Its tails are heavy, so that sds of draws say little. Quantiles: at least 400 effective draws,
    # and 4.5 standard errors of a share.
    below = np.cumsum(weights) / weights.sum()
    for share in (0.1, 0.25, 0.5, 0.75, 0.9):
        quantile = grid[np.searchsorted(below, share)]
        error = np.sqrt(share * (1 - share) / 400)
        assert abs((fit.sampled_positions < quantile).mean() - share) < 4.5 * error


# -- two modes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("initial", "certificate"),
    [
        (lambda key: 3.0 * jax.random.normal(key, (1,)), True),
        (lambda key: jnp.ones(1), "estimate"),
    ],
    ids=["by a pass", "by an estimate, all starts alike"],
)
def test_one_of_two_modes_is_not_blessed(initial, certificate):
    """Rows see |θ| only, so that half of the posterior is at −5."""
    rows = 5.0 + np.random.default_rng(7).standard_normal(2_000)
    model = FunctionModel(
        lambda theta: -0.005 * theta[0] ** 2,
        lambda theta, rows: -0.5 * (rows - jnp.abs(theta[0])) ** 2,
        initial,
    )
    with pytest.warns(UserWarning, match="calls this coreset poor"):
        fit = coremcmc.fit(model, rows, 50, certificate=certificate, **SHORT)
    assert "another mode" in fit.summary() or "disagree" in fit.summary()
