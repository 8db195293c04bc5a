"""Non-negative ridge regression, against SciPy's non-negative least squares."""

import numpy as np
import pytest
from scipy import optimize

from coremcmc.guide.least_squares_weights import nonnegative_ridge


def loss(terms, target, prior, ridge, weights):
    return np.sum((terms @ weights - target) ** 2) + ridge * np.sum((weights - prior) ** 2)


def by_nnls(terms, target, prior, ridge):
    """The ridge as further rows of a plain problem."""
    size = terms.shape[1]
    augmented = np.vstack([terms, np.sqrt(ridge) * np.eye(size)])
    return optimize.nnls(augmented, np.concatenate([target, np.sqrt(ridge) * prior]))[0]


def random_problem(seed, num_draws, size):
    """Correlated columns and a target that no non-negative weights reach."""
    rng = np.random.default_rng(seed)
    few = rng.standard_normal((num_draws, 4))
    terms = few @ rng.standard_normal((4, size)) + 0.3 * rng.standard_normal((num_draws, size))
    target = terms @ rng.normal(1.0, 2.0, size) + rng.standard_normal(num_draws)
    return terms, target, rng.gamma(1.0, 2.0, size)


SHAPES = [(60, 12), (60, 60), (40, 150), (5, 80), (200, 3), (10, 1), (1, 10)]


@pytest.mark.parametrize("ridge", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_agrees_with_scipy(shape, ridge):
    for seed in range(4):
        terms, target, prior = random_problem(seed, *shape)
        found = nonnegative_ridge(terms, target, prior, ridge)
        expected = by_nnls(terms, target, prior, ridge)
        assert (found >= 0).all()
        best = loss(terms, target, prior, ridge, expected)
        assert loss(terms, target, prior, ridge, found) == pytest.approx(best, rel=1e-6, abs=1e-9)
        # The strong convexity of the ridge turns the agreement of losses into that of weights.
        np.testing.assert_allclose(found, expected, atol=1e-3 * np.sqrt((best + 1e-9) / ridge))


@pytest.mark.parametrize("ridge", [1e-3, 1.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_conditions_of_a_minimum_hold(shape, ridge):
    terms, target, prior = random_problem(11, *shape)
    weights = nonnegative_ridge(terms, target, prior, ridge)
    slope = terms.T @ (terms @ weights - target) + ridge * (weights - prior)
    size = np.abs(terms.T @ target).max() + ridge * prior.max()
    assert np.abs(slope[weights > 0]).max(initial=0.0) < 1e-7 * size
    assert slope[weights == 0].min(initial=0.0) > -1e-7 * size


def test_some_weights_are_zero_and_some_are_not():
    """The problems above are not trivial."""
    terms, target, prior = random_problem(0, 60, 60)
    weights = nonnegative_ridge(terms, target, prior, 1e-3)
    assert 5 < (weights == 0).sum() < 55


def test_the_size_at_which_it_is_used():
    """600 draws, 1,000 weights, a tiny ridge, as the default preset asks."""
    rng = np.random.default_rng(1)
    features = rng.standard_normal((1_000, 9))
    step = 0.02 * rng.standard_normal((600, 9))
    terms = step @ features.T - 0.1 * np.square(step @ features.T)
    terms -= terms.mean(0)
    target = terms.sum(1) * 20 + 0.3 * rng.standard_normal(600)
    prior = np.full(1_000, 20.0)
    ridge = 1e-7 * np.mean(np.sum(terms**2, axis=0))
    weights = nonnegative_ridge(terms, target, prior, ridge)
    assert (weights >= 0).all()
    slope = terms.T @ (terms @ weights - target) + ridge * (weights - prior)
    size = np.abs(terms.T @ target).max()
    assert np.abs(slope[weights > 0]).max() < 1e-6 * size
    assert slope.min() > -1e-6 * size


def test_prior_weights_that_fit_are_kept():
    terms, _, prior = random_problem(2, 30, 10)
    np.testing.assert_allclose(nonnegative_ridge(terms, terms @ prior, prior, 0.1), prior)


def test_a_strong_ridge_gives_the_prior_weights_and_clips_negative_ones():
    terms, target, prior = random_problem(3, 30, 10)
    prior[2] = -1.0
    found = nonnegative_ridge(terms, target, prior, 1e12)
    np.testing.assert_allclose(found, np.maximum(prior, 0.0), atol=1e-6)


def test_a_target_out_of_reach_leaves_all_weights_at_zero():
    terms = np.abs(np.random.default_rng(4).standard_normal((20, 6)))
    found = nonnegative_ridge(terms, np.full(20, -50.0), np.full(6, 0.1), 1e-3)
    np.testing.assert_array_equal(found, 0.0)


def test_twin_columns_share_their_weight():
    rng = np.random.default_rng(5)
    column = rng.standard_normal((30, 1))
    terms = np.hstack([column, column])
    found = nonnegative_ridge(terms, 6.0 * column[:, 0], np.zeros(2), 1e-6)
    np.testing.assert_allclose(found, 3.0, rtol=1e-4)


def test_rows_that_never_vary_keep_their_prior_weights():
    """Columns of zeros: the fit has nothing to say about them."""
    terms, target, prior = random_problem(6, 30, 10)
    terms[:, 3] = 0.0
    assert nonnegative_ridge(terms, target, prior, 0.1)[3] == pytest.approx(prior[3])
