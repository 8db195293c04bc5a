"""Data sets generated from a seed: those of the paper's appendix, and one for the demonstration."""

import numpy as np

__all__ = ["gaussian_location_data", "logistic_data", "sparse_regression_data"]

Columns = dict[str, np.ndarray]


def gaussian_location_data(seed: int = 0, num_rows: int = 10_000, dimension: int = 20) -> Columns:
    """x_n ~ N(0, I) (appendix: N = 10,000, d = 20)."""
    return {"x": np.random.default_rng(seed).standard_normal((num_rows, dimension))}


def sparse_regression_data(seed: int = 0, num_rows: int = 50_000) -> Columns:
    """Generate the appendix's sparse regression: y = xᵀβ* + ε.

    x ~ N(0, I) with ten features, β* = (0, 0, 0, 0, 0, 5, 5, 5, 5, 5), ε ~ N(0, 25²).
    """
    rng = np.random.default_rng(seed)
    beta = np.repeat([0.0, 5.0], 5)
    x = rng.standard_normal((num_rows, beta.size))
    return {"x": x, "y": x @ beta + 25.0 * rng.standard_normal(num_rows)}


def logistic_data(seed: int = 0, num_rows: int = 100_000, num_features: int = 4) -> Columns:
    """Generate a logistic regression with known, moderate coefficients and correlated features."""
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((num_rows, 1))
    x = 0.8 * rng.standard_normal((num_rows, num_features)) + 0.6 * shared
    beta = np.linspace(1.0, -1.0, num_features)
    probability = 1.0 / (1.0 + np.exp(-(x @ beta - 0.5)))
    return {"x": x, "y": (rng.random(num_rows) < probability).astype(np.int8)}
