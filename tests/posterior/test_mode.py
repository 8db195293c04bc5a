"""The mode of the full posterior and the Gaussian there, against SciPy and closed forms."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy import optimize, stats

from coremcmc.data import MemoryData, logistic_data, sparse_regression_data
from coremcmc.models import (
    FunctionModel,
    GaussianLocation,
    LinearRegression,
    LogisticRegression,
    PoissonRegression,
    SparseRegression,
)
from coremcmc.posterior.mode import Laplace, ModeSearch, NoModeError, laplace_approximation

FALSE_ALARM = 1e-4


def flat_logistic(dimension):
    """A logistic regression under a flat prior; the first feature is the intercept."""
    return FunctionModel(
        logprior=lambda beta: jnp.zeros(()),
        loglikelihood=lambda beta, rows: LogisticRegression(intercept=False).loglikelihood_fn(
            {"beta": beta}, rows
        ),
        initial=lambda key: jnp.zeros(dimension),
    )


def test_a_gaussian_posterior_is_found_exactly():
    x = np.random.default_rng(0).standard_normal((321, 4)) + np.array([0.0, 5.0, -3.0, 100.0])
    found = laplace_approximation(
        GaussianLocation(), MemoryData({"x": x}), {"theta": jnp.full(4, -1e4)}
    )
    np.testing.assert_allclose(found.mean, x.sum(0) / (1 + len(x)), rtol=1e-10)
    np.testing.assert_allclose(found.precision, (1 + len(x)) * np.eye(4), rtol=1e-10, atol=1e-7)
    np.testing.assert_allclose(found.sd, 1 / np.sqrt(1 + len(x)), rtol=1e-10)
    np.testing.assert_allclose(found.likelihood.gradient, found.mean, rtol=1e-6)  # minus prior's
    assert found.num_passes <= 3  # there, and the check that it is there


def regression_problems():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((700, 3)) * [1.0, 3.0, 0.2]
    eta = x @ [0.5, -0.3, 1.0] + 0.4
    return {
        "linear": (LinearRegression(), {"x": x, "y": eta + 0.5 * rng.standard_normal(700)}),
        "logistic": (LogisticRegression(), {"x": x, "y": rng.random(700) < 1 / (1 + np.exp(-eta))}),
        "Poisson": (PoissonRegression(), {"x": x, "y": rng.poisson(np.log1p(np.exp(eta)))}),
    }


@pytest.mark.parametrize("name", ["linear", "logistic", "Poisson"])
def test_modes_agree_with_scipy_from_near_and_far(name):
    """A general minimizer on the plain log posterior; the gradient at the mode is nothing."""
    model, rows = regression_problems()[name]
    prepared = model.prepare_rows(jax.tree.map(jnp.asarray, rows))
    near = model.initial_position(jax.random.key(0), prepared)
    flat, unravel = ravel_pytree(near)

    @jax.jit
    def loss(x):
        def value(x):
            position = unravel(x)
            terms = model.loglikelihood_fn(position, prepared)
            return -terms.sum() - model.logprior_fn(position)

        return jax.value_and_grad(value)(x)

    best = optimize.minimize(loss, np.zeros(flat.size), jac=True, method="BFGS")
    rng = np.random.default_rng(2)
    starts = [np.asarray(flat), *(20.0 * rng.standard_normal((4, flat.size)))]
    for start in starts:
        found = laplace_approximation(model, MemoryData(rows), unravel(jnp.asarray(start)))
        gradient = np.asarray(loss(jnp.asarray(found.mean))[1])
        # The Newton step that is left, in posterior standard deviations.
        assert np.sqrt(gradient @ np.linalg.solve(found.precision, gradient)) < 1e-6
        difference = found.mean - best.x
        assert np.sqrt(difference @ found.precision @ difference) < 1e-2, start
        np.testing.assert_allclose(
            found.precision, -np.asarray(hessian_of(loss, found.mean)), rtol=1e-6, atol=1e-6
        )


def hessian_of(loss, x):
    """Minus the second derivatives by central differences of the gradient."""
    step = 1e-5
    columns = [
        (np.asarray(loss(x + step * e)[1]) - np.asarray(loss(x - step * e)[1])) / (2 * step)
        for e in np.eye(x.size)
    ]
    return -np.stack(columns)


def test_more_rows_than_the_pilot_give_the_mode_of_all_rows():
    """Ordered data: the pilot's rows alone would not do."""
    x = np.sort(np.random.default_rng(3).standard_normal(1_003))[:, None] ** 3
    data, start = MemoryData({"x": x}), {"theta": jnp.zeros(1)}
    found = laplace_approximation(GaussianLocation(), data, start, search=ModeSearch(50))
    np.testing.assert_allclose(found.mean, x.sum(0) / 1_004, rtol=1e-9)


def test_rare_events_that_the_pilot_misses_are_found_on_all_rows():
    """The pilot has no positive at all: flat there, and yet no reason to give up."""
    rng = np.random.default_rng(4)
    x = np.column_stack([np.ones(1_003), rng.standard_normal(1_003)])
    pilot = np.unique(np.linspace(0, 1_002, 50).astype(int))
    y = np.zeros(1_003, int)
    y[np.setdiff1d(np.arange(1_003), pilot)[:30]] = 1
    data, search = MemoryData({"x": x, "y": y}), ModeSearch(pilot_rows=50)
    found = laplace_approximation(flat_logistic(2), data, jnp.zeros(2), search=search)
    fitted = 1 / (1 + np.exp(-x @ found.mean))
    np.testing.assert_allclose(x.T @ (y - fitted), 0.0, atol=1e-6)  # the score equations


# -- many parameters -----------------------------------------------------------------------------


def many_parameters(num_rows=1_500, dimension=60):
    """Poisson counts whose rates are sums of softplus features: no linear predictor, one mode."""
    rng = np.random.default_rng(9)
    x = rng.standard_normal((num_rows, dimension)) @ np.diag(np.linspace(0.2, 2.0, dimension))
    rate = np.log1p(np.exp(x @ rng.standard_normal(dimension) / 5))
    model = FunctionModel(
        logprior=lambda beta: -0.5 * jnp.sum(beta**2),
        loglikelihood=lambda beta, rows: (
            rows["y"] * jnp.log(jax.nn.softplus(rows["x"] @ beta))
            - jax.nn.softplus(rows["x"] @ beta)
        ),
        initial=lambda key: jnp.zeros(dimension),
    )
    return model, {"x": x, "y": rng.poisson(rate)}


@pytest.mark.parametrize("pilot", [1 << 14, 50], ids=["few rows", "many rows"])
def test_many_parameters_need_fewer_second_derivatives(pilot):
    """The same mode as by Newton's method alone; with many rows the pilot must not undo the climb.

    Newton's own starts: one where the rows are few, the pilot's mode where they are many.
    """
    model, rows = many_parameters()
    data, start = MemoryData(rows), jnp.full(60, 0.3)
    climbed = laplace_approximation(model, data, start, search=ModeSearch(pilot))
    alone = laplace_approximation(
        model, data, start, search=ModeSearch(pilot, costly_hessian=1_000)
    )
    difference = climbed.mean - alone.mean
    assert np.sqrt(difference @ alone.precision @ difference) < 1e-5
    np.testing.assert_allclose(climbed.precision, alone.precision, rtol=1e-6, atol=1e-6)
    assert climbed.num_passes < alone.num_passes
    assert climbed.num_passes <= 3


def test_a_climb_into_an_overflow_is_left_to_newtons_method():
    model = FunctionModel(
        logprior=lambda theta: jnp.zeros(()),
        loglikelihood=lambda theta, rows: (
            rows * jnp.log(theta[0]) - theta[0] + theta[1] - jnp.exp(theta[1])
        ),
        initial=lambda key: jnp.ones(2),
    )
    rows = np.random.default_rng(10).poisson(0.05, 2_000).astype(float)
    start, search = jnp.array([0.01, 3.0]), ModeSearch(costly_hessian=1)
    found = laplace_approximation(model, MemoryData(rows), start, search=search)
    np.testing.assert_allclose(found.mean, [rows.mean(), 0.0], rtol=1e-5, atol=1e-5)


def test_too_many_parameters_for_a_matrix_are_refused_before_any_pass():
    model, rows = many_parameters(num_rows=100)
    seen = []
    options = {"search": ModeSearch(most_parameters=59), "progress": seen.append}
    with pytest.raises(NoModeError, match=r"60 parameters, too many .*at most 59") as raised:
        laplace_approximation(model, MemoryData(rows), jnp.zeros(60), **options)
    assert raised.value.is_large
    assert not seen


def test_progress_tells_of_the_rows():
    seen = []
    data = MemoryData({"x": np.ones((10, 1))})
    laplace_approximation(GaussianLocation(), data, {"theta": jnp.zeros(1)}, progress=seen.append)
    assert set(seen) == {10}


# -- where there is none ------------------------------------------------------------------------


def test_separable_data_under_a_flat_prior_have_no_mode():
    rng = np.random.default_rng(5)
    x = np.column_stack([np.ones(300), rng.standard_normal((300, 2))])
    rows = {"x": x, "y": (x[:, 1] > 0).astype(int)}
    began = time.monotonic()
    with pytest.raises(NoModeError, match=r"improper or nearly flat.*proper prior"):
        laplace_approximation(flat_logistic(3), MemoryData(rows), jnp.zeros(3))
    assert time.monotonic() - began < 60


def test_separable_data_under_a_proper_prior_have_one():
    rng = np.random.default_rng(5)
    x = rng.standard_normal((300, 2))
    rows = {"x": x, "y": (x[:, 0] > 0).astype(int)}
    found = laplace_approximation(LogisticRegression(), MemoryData(rows), {"beta": jnp.zeros(3)})
    assert found.mean[1] > 5
    np.testing.assert_allclose(  # the Cauchy prior's slope
        found.likelihood.gradient, 2 * found.mean / (1 + found.mean**2), atol=1e-5
    )


def test_discrete_parameters_have_no_mode():
    data = MemoryData(sparse_regression_data(num_rows=20))
    with pytest.raises(NoModeError, match="SparseRegression has discrete parameters"):
        laplace_approximation(SparseRegression(), data, {"beta": jnp.zeros(10)})


def symmetric(start_at):
    return FunctionModel(
        logprior=lambda theta: -0.005 * theta[0] ** 2,
        loglikelihood=lambda theta, rows: -0.5 * (rows - theta[0] ** 2) ** 2,
        initial=lambda key: jnp.full(1, start_at),
    )


def test_a_start_in_a_valley_does_not_pass_for_a_mode():
    """Models symmetric in sign, started at zero as people do: a minimum between two modes."""
    rows = 9.0 + np.random.default_rng(6).standard_normal(200)
    model = symmetric(0.0)
    try:
        found = laplace_approximation(model, MemoryData(rows), jnp.zeros(1))
    except NoModeError:
        return
    assert abs(found.mean[0]) == pytest.approx(3.0, abs=0.1)


def test_a_start_beside_the_valley_climbs_out_of_it():
    """Where the curvature is of the wrong sign a plain Newton step would go to the minimum."""
    rows = 9.0 + np.random.default_rng(6).standard_normal(200)
    found = laplace_approximation(symmetric(0.1), MemoryData(rows), jnp.full(1, 0.1))
    assert found.mean[0] == pytest.approx(3.0, abs=0.1)


def test_a_posterior_without_curvature_has_no_mode_to_be_found():
    model = FunctionModel(
        lambda theta: jnp.zeros(()),
        lambda theta, rows: -jnp.abs(rows - theta[0]),
        lambda key: jnp.zeros(1),
    )
    with pytest.raises(NoModeError):
        laplace_approximation(model, MemoryData(np.arange(9.0)), jnp.zeros(1))


def test_a_posterior_with_a_kink_at_its_top_has_no_mode_to_be_found():
    model = FunctionModel(
        lambda theta: -0.005 * theta[0] ** 2,
        lambda theta, rows: -jnp.abs(rows - theta[0]),
        lambda key: jnp.zeros(1),
    )
    with pytest.raises(NoModeError, match="did not settle"):
        laplace_approximation(model, MemoryData(np.arange(9.0)), jnp.zeros(1))


# -- flat directions ----------------------------------------------------------------------------


def twin_columns():
    rng = np.random.default_rng(7)
    x = rng.standard_normal(400)
    return {"x": np.column_stack([np.ones(400), x, x]), "y": rng.integers(0, 2, 400)}


def test_twin_columns_under_a_proper_prior():
    """The data know their sum only; the prior halves it and gives the difference its spread."""
    model = FunctionModel(
        logprior=lambda beta: -0.5 * jnp.sum(beta**2) / 4.0,
        loglikelihood=flat_logistic(3).loglikelihood,
        initial=lambda key: jnp.zeros(3),
    )
    found = laplace_approximation(model, MemoryData(twin_columns()), jnp.array([0.0, 3.0, -5.0]))
    assert found.mean[1] == pytest.approx(found.mean[2], abs=1e-6)
    difference = np.array([0.0, 1.0, -1.0]) / np.sqrt(2)
    assert difference @ np.linalg.solve(found.precision, difference) == pytest.approx(4.0, rel=1e-6)


def test_a_flat_direction_gets_the_floor_and_the_others_their_own_curvature():
    """Under a flat prior the difference of twin columns is undetermined: no error, a wide sd."""
    rows = twin_columns()
    found = laplace_approximation(flat_logistic(3), MemoryData(rows), jnp.zeros(3))
    eigenvalues = np.linalg.eigvalsh(found.precision)
    assert eigenvalues[0] == pytest.approx(1e-10 * eigenvalues[-1], rel=1e-2)
    merged = {"x": rows["x"][:, :2], "y": rows["y"]}
    once = laplace_approximation(flat_logistic(2), MemoryData(merged), jnp.zeros(2))
    assert found.mean[1] + found.mean[2] == pytest.approx(once.mean[1], abs=1e-5)
    assert found.sd[0] == pytest.approx(once.sd[0], rel=1e-5)


# -- draws --------------------------------------------------------------------------------------


def test_draws_have_the_mean_and_the_covariance():
    """Bonferroni bound of the false-alarm rate, in standard errors, over all second moments."""
    model, rows = regression_problems()["Poisson"]
    found = laplace_approximation(model, MemoryData(rows), {"beta": jnp.zeros(4)})
    assert isinstance(found, Laplace)
    size = 40_000
    draws = found.draw(np.random.default_rng(8), size)
    white = (draws - found.mean) @ np.linalg.cholesky(found.precision)
    bound = stats.norm.isf(FALSE_ALARM / (2 * 20))
    second = (white[:, :, None] * white[:, None, :]).reshape(size, -1)
    for samples, truth in ((white, 0.0), (second, np.eye(4).ravel())):
        z = (samples.mean(0) - truth) / (samples.std(0, ddof=1) / np.sqrt(size))
        assert np.abs(z).max() < bound
    again = found.draw(np.random.default_rng(8), size)
    np.testing.assert_array_equal(draws, again)


def test_float32_data_have_the_same_mode():
    data = logistic_data(seed=2, num_rows=500, num_features=2)
    single = {"x": data["x"].astype(np.float32), "y": data["y"]}
    modes = [
        laplace_approximation(LogisticRegression(), MemoryData(rows), {"beta": jnp.zeros(3)}).mean
        for rows in (data, single)
    ]
    assert modes[1].dtype == np.float64
    np.testing.assert_allclose(*modes, atol=1e-5)
