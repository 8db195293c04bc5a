"""Generated data have the stated shapes and moments; five standard errors (6e-7 a number)."""

import numpy as np
import pytest
import scipy.special

from coremcmc import gaussian_location_data, logistic_data, sparse_regression_data

GENERATORS = [gaussian_location_data, sparse_regression_data, logistic_data]


def assert_mean(values, expected):
    """Means along the first axis within five standard errors."""
    values = np.asarray(values, np.float64)
    standard_error = values.std(axis=0) / np.sqrt(len(values))
    assert (np.abs(values.mean(axis=0) - expected) < 5 * standard_error).all()


def products(x):
    """All products of two columns, row by row."""
    first, second = np.triu_indices(x.shape[1])
    return x[:, first] * x[:, second], first == second


@pytest.mark.parametrize(
    ("generate", "shapes"),
    [
        (gaussian_location_data, {"x": (10_000, 20)}),
        (sparse_regression_data, {"x": (50_000, 10), "y": (50_000,)}),
        (logistic_data, {"x": (100_000, 4), "y": (100_000,)}),
    ],
)
def test_default_shapes_are_those_of_the_appendix(generate, shapes):
    assert {name: column.shape for name, column in generate().items()} == shapes


@pytest.mark.parametrize("generate", GENERATORS)
def test_number_of_rows_is_the_users(generate):
    assert all(len(column) == 7 for column in generate(num_rows=7).values())


def test_number_of_features_is_the_users():
    assert gaussian_location_data(num_rows=7, dimension=3)["x"].shape == (7, 3)
    assert logistic_data(num_rows=7, num_features=9)["x"].shape == (7, 9)


@pytest.mark.parametrize("generate", GENERATORS)
def test_the_seed_decides(generate):
    first, again, other = generate(3, 50), generate(3, 50), generate(4, 50)
    for name in first:
        np.testing.assert_array_equal(first[name], again[name])
    assert not np.array_equal(first["x"], other["x"])


@pytest.mark.parametrize("generate", [gaussian_location_data, sparse_regression_data])
def test_features_are_independent_standard_normals(generate):
    x = generate(0)["x"]
    assert_mean(x, 0.0)
    assert_mean(*products(x))  # 1 on the diagonal of the covariance, 0 off it
    assert_mean(x**4, 3.0)


def test_sparse_responses_follow_the_appendix():
    data = sparse_regression_data(0)
    noise = data["y"] - data["x"] @ np.array([0, 0, 0, 0, 0, 5, 5, 5, 5, 5])
    assert_mean(noise, 0.0)
    assert_mean(noise**2, 25.0**2)
    assert_mean(data["x"] * noise[:, None], 0.0)


def test_logistic_features_are_correlated_with_unit_variance():
    x = logistic_data(0)["x"]
    values, diagonal = products(x)
    assert_mean(x, 0.0)
    assert_mean(values, np.where(diagonal, 1.0, 0.36))


def test_logistic_labels_follow_their_coefficients():
    data = logistic_data(0)
    x, y = data["x"], data["y"]
    assert set(np.unique(y)) == {0, 1}
    # The score at the true coefficients has mean zero.
    residual = y - scipy.special.expit(x @ np.array([1, 1 / 3, -1 / 3, -1]) - 0.5)
    assert_mean(residual, 0.0)
    assert_mean(x * residual[:, None], 0.0)
    # And η ~ N(−1/2, 0.64 · 20/9), since the coefficients sum to zero.
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    eta = -0.5 + np.sqrt(0.64 * 20 / 9) * nodes
    assert_mean(y, scipy.special.expit(eta) @ weights / weights.sum())
