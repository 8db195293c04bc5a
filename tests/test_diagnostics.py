"""The error measure, the latter-half means and the names of coordinates, worked out by hand."""

import numpy as np
import pytest

from coremcmc.diagnostics import (
    average_squared_z,
    convergence,
    effective_draws,
    latter_half_means,
    pareto_smooth,
)
from coremcmc.pytrees import coordinate_names


def test_average_squared_z_by_hand():
    # z = (1/2, −1, 0): (1/4 + 1 + 0) / 3.
    z2 = average_squared_z([1.0, 5.0, 2.0], [2.0, 2.0, 2.0], [2.0, 3.0, 7.0])
    assert z2 == pytest.approx(1.25 / 3, rel=1e-15)


def test_average_squared_z_is_zero_at_the_reference():
    assert average_squared_z(np.arange(4.0), np.arange(4.0), np.ones(4)) == 0.0


def test_average_squared_z_of_a_trace_has_one_value_per_record():
    trace = np.array([[2.0, 2.0], [4.0, 2.0], [2.0, 5.0]])
    z2 = average_squared_z(trace, np.array([2.0, 2.0]), np.array([2.0, 1.0]))
    np.testing.assert_allclose(z2, [0.0, 0.5, 4.5], rtol=1e-15)


def brute_force(draws, records):
    """Mean over (last record at or before t/2, t], where 0 counts as a record."""
    means = []
    for t in records:
        begin = max(s for s in [0, *records] if s <= t / 2)
        means.append(draws[begin:t].mean(axis=0))
    return means


@pytest.mark.parametrize(
    "records",
    [
        list(range(1, 41)),
        list(range(5, 41, 5)),
        list(range(7, 40, 7)),
        [40],
        [1, 2, 3, 39, 40],
        [3, 4, 8, 15, 16, 23, 40],
    ],
    ids=["every", "thinned", "not halving", "one", "gap", "irregular"],
)
def test_latter_half_means_are_those_of_the_draws(records):
    draws = np.random.default_rng(0).normal(3.0, 1.0, size=(40, 2))
    iteration = np.array(records)
    position_sum = np.cumsum(draws, axis=0)[iteration - 1]
    means = latter_half_means(iteration, position_sum)
    np.testing.assert_allclose(means, brute_force(draws, records), rtol=1e-12)


def test_latter_half_mean_is_exact_where_half_is_a_record():
    draws = np.random.default_rng(1).normal(size=(100, 3))
    iteration = np.array([25, 50, 100])
    means = latter_half_means(iteration, np.cumsum(draws, axis=0)[iteration - 1])
    np.testing.assert_allclose(means[1], draws[25:50].mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(means[2], draws[50:].mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize(
    ("shapes", "names"),
    [
        ({}, []),
        ({"sigma": ()}, ["sigma"]),
        ({"beta": (3,), "sigma": ()}, ["beta[0]", "beta[1]", "beta[2]", "sigma"]),
        ({"a": (2, 2)}, ["a[0,0]", "a[0,1]", "a[1,0]", "a[1,1]"]),
        ({"z": (1,), "a": (0,), "b": ()}, ["z[0]", "b"]),
    ],
)
def test_coordinates_are_named_in_the_order_of_the_arrays(shapes, names):
    assert coordinate_names(shapes) == names


def test_smoothed_importance_weights_correct_a_mean():
    """From N(0, 1) to N(1/2, 1): the log weight of x is x/2, and e^{x/2} has k = 0."""
    x = np.random.default_rng(0).standard_normal(4_000)
    log_weights, k = pareto_smooth(0.5 * x)
    weights = np.exp(log_weights - log_weights.max())
    corrected = (weights @ x) / weights.sum()
    assert abs(corrected - 0.5) < 4 * 1.4 / np.sqrt(4_000)  # the weights' effective share is e^-1/4
    assert np.corrcoef(log_weights, x)[0, 1] > 0.99
    assert k < 0.5


def test_k_is_that_of_a_pareto_tail():
    """Weights u^{-0.9} have tail index 0.9; its estimate from 4,000 has an sd of about 0.1."""
    u = np.random.default_rng(1).random(4_000)
    assert abs(pareto_smooth(-0.9 * np.log(u))[1] - 0.9) < 0.3


@pytest.mark.parametrize("scale", [300.0, 700.0, 3e3, 1e6])
@pytest.mark.parametrize("heavy", [False, True])
def test_log_weights_that_are_worlds_apart_have_a_large_k(scale, heavy):
    """Most of them underflow, and a tail fitted to zeros must not look like a light one."""
    rng = np.random.default_rng(3)
    log_weights = scale * (rng.standard_cauchy(400) if heavy else rng.standard_normal(400))
    smoothed, k = pareto_smooth(log_weights)
    assert k > 0.7
    assert np.isfinite(smoothed).all()


def test_weights_of_a_moderate_spread_are_as_arviz_has_them():
    arviz = pytest.importorskip("arviz", minversion=None)
    if not hasattr(arviz, "psislw"):
        pytest.skip("ArviZ 1 has no function of its own for arrays")
    for seed, scale in enumerate((0.1, 1.0, 3.0, 10.0)):
        log_weights = scale * np.random.default_rng(seed).standard_normal(400)
        smoothed, k = pareto_smooth(log_weights)
        expected, expected_k = arviz.psislw(log_weights.copy())
        np.testing.assert_allclose(smoothed, expected, rtol=1e-9, atol=1e-9)
        assert k == pytest.approx(float(expected_k), rel=1e-9)


def test_effective_draws_are_those_of_the_worst_coordinate():
    rng = np.random.default_rng(5)
    draws = rng.standard_normal((1_000, 4, 6))
    draws[:, :, 3] = np.cumsum(draws[:, :, 3], axis=0)
    assert effective_draws(draws) < 50 < 3_000 < effective_draws(np.delete(draws, 3, axis=2))


def test_convergence_of_independent_and_of_separate_chains():
    rng = np.random.default_rng(2)
    draws = rng.standard_normal((4, 1_000))
    effective, rhat = convergence(draws)
    assert 3_000 < effective < 5_500
    assert abs(rhat - 1) < 0.01
    assert convergence(draws + np.arange(4)[:, None])[1] > 1.5
    assert np.isnan(convergence(np.ones((2, 10)))).all()
