"""Weighted draws before any chain has run, and sums estimated from some of the rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coremcmc.data import MemoryData
from coremcmc.gradient.control_passes import ControlPasses, make_control, revised
from coremcmc.gradient.control_variate import EstimatedSums, row_spreads
from coremcmc.guide import importance as near_posterior_module
from coremcmc.guide.least_squares_weights import enough_rows
from coremcmc.models import FunctionModel, LogisticRegression
from coremcmc.posterior.derivatives import Derivatives
from coremcmc.posterior.mode import Laplace, laplace_approximation


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True):
        yield


def near_posterior(laplace, log_posterior, rng, size):
    """As the guide calls it, without a prior."""

    def sums_and_priors(positions):
        return log_posterior(positions), np.zeros(len(positions))

    return near_posterior_module.near_posterior(laplace, sums_and_priors, rng, size)


def gaussian(mean, precision):
    size = len(mean)
    nothing = Derivatives(np.zeros(()), np.zeros(size), np.zeros((size, size)))
    return Laplace(np.asarray(mean, float), nothing, np.asarray(precision, float), 1)


def log_normal(mean, sd):
    return lambda x: -0.5 * np.sum(np.square((x - mean) / sd), axis=1)


def test_a_proposal_that_is_right_is_kept():
    found = near_posterior(
        gaussian([1, 2], np.eye(2)), log_normal([1, 2], 1.0), np.random.default_rng(0), 500
    )
    np.testing.assert_allclose(found.weights, 1.0)
    assert found.share == pytest.approx(1.0)


@pytest.mark.parametrize(("mean", "sd"), [([0.0, 0.0], 0.1), ([3.0, -2.0], 0.5), ([0.5, 0.0], 2.0)])
def test_a_proposal_that_is_wrong_is_mended(mean, sd):
    """A Gaussian elsewhere, or ten times narrower: mean and sd within 4.5 standard errors."""
    found = near_posterior(
        gaussian([0, 0], np.eye(2)), log_normal(mean, sd), np.random.default_rng(1), 800
    )
    assert found.share > 0.3
    effective = 800 * found.share
    average = np.average(found.positions, axis=0, weights=found.weights)
    variance = np.average(np.square(found.positions - mean), axis=0, weights=found.weights)
    assert np.abs(average - mean).max() < 4.5 * sd / np.sqrt(effective)
    assert np.abs(variance / sd**2 - 1).max() < 4.5 * np.sqrt(2 / effective)


def test_where_the_posterior_is_nowhere_finite_draws_count_alike():
    found = near_posterior(
        gaussian([0, 0], np.eye(2)),
        lambda x: np.full(len(x), np.nan),
        np.random.default_rng(2),
        50,
    )
    np.testing.assert_array_equal(found.weights, 1.0)


def finite_at(kept):
    """A log posterior that is finite at a few of the draws only."""

    def log_posterior(x):
        values = np.full(len(x), np.nan)
        values[kept] = 0.0
        return values

    return log_posterior


@pytest.mark.parametrize("kept", [[3], [3, 4]], ids=["one", "two"])
def test_where_few_draws_are_inside_the_support_they_alone_count(kept):
    """Too few for a covariance in five dimensions, so that no other proposal is tried."""
    found = near_posterior(
        gaussian(np.zeros(5), np.eye(5)), finite_at(kept), np.random.default_rng(2), 200
    )
    np.testing.assert_array_equal(np.flatnonzero(found.weights), kept)
    drawn = found.resample(np.random.default_rng(3), 8)
    assert np.isin(drawn[:, 0], found.positions[kept, 0]).all()


def test_more_dimensions_than_draws_leave_the_proposal_as_it_is():
    found = near_posterior(
        gaussian(np.zeros(120), np.eye(120)),
        log_normal(0.0, 1.3),
        np.random.default_rng(2),
        100,
    )
    assert np.isfinite(found.weights).all()
    assert found.positions.std() == pytest.approx(1.0, abs=0.05)


def test_a_proposal_under_which_nothing_is_finite_is_not_taken_for_the_best():
    rounds = []

    def log_posterior(x):
        rounds.append(x)
        return log_normal(0.0, 0.1)(x) if len(rounds) == 1 else np.full(len(x), np.nan)

    found = near_posterior(
        gaussian([0, 0], np.eye(2)), log_posterior, np.random.default_rng(2), 800
    )
    assert len(rounds) > 1
    np.testing.assert_array_equal(found.positions, rounds[0])


def test_resampling_follows_the_weights():
    found = near_posterior(
        gaussian([0, 0], np.eye(2)), log_normal([0, 0], 0.2), np.random.default_rng(3), 800
    )
    rng = np.random.default_rng(4)
    drawn = np.concatenate([found.resample(rng, 8) for _ in range(100)])
    # The 800 come from some 300 effective draws.
    assert np.abs(drawn.std(axis=0) / 0.2 - 1).max() < 4.5 / np.sqrt(2 * 300)
    assert len(np.unique(found.resample(rng, 8), axis=0)) == 8


# -- sums ------------------------------------------------------------------------------------------


MODEL = LogisticRegression(intercept=False)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    x = rng.standard_normal((5_000, 3))
    return {"x": x, "y": (rng.random(5_000) < 1 / (1 + np.exp(-x[:, 0]))).astype(int)}


@pytest.fixture(scope="module")
def laplace(rows):
    with jax.enable_x64(True):
        return laplace_approximation(MODEL, MemoryData(rows), {"beta": jnp.zeros(3)})


def exact_sums(rows, flat):
    eta = flat @ rows["x"].T
    return (rows["y"] * eta - np.logaddexp(0, eta)).sum(axis=1)


@pytest.mark.parametrize("ratio", [5.0, 0.5], ids=["on", "off"])
def test_sums_over_all_rows_are_exact(rows, laplace, ratio):
    data = MemoryData(rows)
    exact = np.arange(0, 5_000, 10)
    control = make_control(MODEL, data, laplace.position, laplace.likelihood, exact, ratio)
    assert float(control.strength) == (ratio > 1)
    flat = laplace.draw(np.random.default_rng(6), 40)
    found = EstimatedSums(MODEL, data, control, np.arange(5_000))(flat)
    difference = found - exact_sums(rows, flat)
    assert np.ptp(difference) < 1e-8


def test_sums_over_some_rows_are_unbiased(rows, laplace):
    """Far from the mode, where the remainder is not small; 4.5 standard errors."""
    data = MemoryData(rows)
    control = make_control(MODEL, data, laplace.position, laplace.likelihood, np.arange(100), 5.0)
    flat = laplace.mean + np.array([[0.5, 0.0, 0.0], [0.0, -0.7, 0.4]])
    rng = np.random.default_rng(7)
    errors = []
    for _ in range(200):
        some = rng.choice(5_000, 50, replace=False)
        found = EstimatedSums(MODEL, data, control, some)(flat)
        errors.append(np.diff(found) - np.diff(exact_sums(rows, flat)))
    errors = np.array(errors)
    assert abs(errors.mean()) < 4.5 * errors.std(ddof=1) / np.sqrt(200)
    assert errors.std() > 0.01  # it is an estimate


def test_sums_without_the_polynomials_are_those_of_the_rows_scaled_up(rows, laplace):
    """A control variate that was switched off must not enter the estimate."""
    data, some = MemoryData(rows), np.arange(100, 5_000, 7)
    off = make_control(MODEL, data, laplace.position, laplace.likelihood, np.arange(100), 0.5)
    flat = laplace.draw(np.random.default_rng(8), 10)
    found = EstimatedSums(MODEL, data, off, some)(flat)
    few = [{name: x[part] for name, x in rows.items()} for part in (np.arange(100), some)]
    plain = exact_sums(few[0], flat) + 5_000 / len(some) * exact_sums(few[1], flat)
    np.testing.assert_allclose(found - found[0], plain - plain[0], atol=1e-8)


def test_how_many_rows_are_enough():
    assert enough_rows(10**6, 0.0) == 1 << 8
    assert enough_rows(10**6, 3e-6) == 1 << 10
    assert enough_rows(10**6, 1.0) == 1 << 14
    assert enough_rows(100, 1.0) == 100


# -- mending a control variate -----------------------------------------------------------------


def control_of(rows, laplace, ratio=5.0):
    exact = np.arange(ControlPasses().num_exact)
    return make_control(MODEL, MemoryData(rows), laplace.position, laplace.likelihood, exact, ratio)


def chains_at(laplace, shift, seed=8):
    draws = laplace.draw(np.random.default_rng(seed), 400) + shift * laplace.sd
    return draws.reshape(50, 8, 3)


def test_a_control_variate_that_works_is_left_alone(rows, laplace):
    chains = chains_at(laplace, 0.2)
    found = revised(control_of(rows, laplace), MODEL, MemoryData(rows), chains, np.full(50, 0.01))
    assert found is None


def test_chains_elsewhere_move_the_centre(rows, laplace):
    chains = chains_at(laplace, 3.0)
    found = revised(control_of(rows, laplace), MODEL, MemoryData(rows), chains, np.full(50, 0.01))
    centre = chains.mean((0, 1))
    np.testing.assert_allclose(found.centre["beta"], centre)
    probability = 1 / (1 + np.exp(-rows["x"] @ centre))
    np.testing.assert_allclose(found.gradient, rows["x"].T @ (rows["y"] - probability), atol=1e-8)
    assert float(found.strength) == 1.0
    assert found.exact_indices.shape == (ControlPasses().num_exact,)
    assert (np.diff(found.exact_indices) > 0).all()


def test_one_that_adds_noise_is_switched_off_and_comes_back(rows, laplace):
    data, chains = MemoryData(rows), chains_at(laplace, 0.2)
    off = revised(control_of(rows, laplace), MODEL, data, chains, np.full(50, 1.3))
    assert float(off.strength) == 0.0
    np.testing.assert_array_equal(off.centre["beta"], laplace.position["beta"])
    again = revised(off, MODEL, data, chains, np.full(50, 1.3))
    assert float(again.strength) == 1.0


def test_where_the_sum_overflows_at_the_chains_the_centre_stays_and_it_may_be_switched_off(
    rows, laplace
):
    """Their mean is outside of the support, though each of them is inside."""

    def loglikelihood(beta, few):
        terms = MODEL.loglikelihood_fn({"beta": beta}, few)
        return jnp.where(jnp.abs(beta[0] - 50.0) < 1.0, jnp.nan, terms)

    model = FunctionModel(lambda beta: jnp.zeros(()), loglikelihood, lambda key: jnp.zeros(3))
    data, exact = MemoryData(rows), np.arange(ControlPasses().num_exact)
    centre = laplace.position["beta"]
    control = make_control(model, data, centre, laplace.likelihood, exact, 5.0)
    chains = chains_at(laplace, 0.0) + np.array([50.0, 0.0, 0.0]) - laplace.mean
    chains[::2, :, 0] -= 10.0
    chains[1::2, :, 0] += 10.0
    assert revised(control, model, data, chains, np.full(50, 0.5)) is None
    off = revised(control, model, data, chains, np.full(50, 1.5))
    assert float(off.strength) == 0.0
    np.testing.assert_array_equal(off.centre, centre)


def test_positions_outside_of_the_support_do_not_spoil_the_spreads(rows):
    """Variances over the positions inside, as if the others had not been asked for."""

    def loglikelihood(beta, few):
        terms = MODEL.loglikelihood_fn({"beta": beta}, few)
        return jnp.where(beta[0] > 0, terms, -jnp.inf)

    model = FunctionModel(lambda beta: jnp.zeros(()), loglikelihood, lambda key: jnp.ones(3))
    positions = np.random.default_rng(9).standard_normal((30, 3))
    inside = positions[positions[:, 0] > 0]
    assert 5 < len(inside) < 25
    for found, expected in zip(
        row_spreads(model, np.ones(3), positions, rows),
        row_spreads(model, np.ones(3), inside, rows),
        strict=True,
    ):
        assert (np.asarray(expected) > 0).any()
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15)
