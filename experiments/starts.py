"""Where the chains of a trial start, θ₀, which the paper does not say.

A start is made for a data set, ``start(rows) -> draw``; then ``draw(rng_key, coreset_rows)`` gives
the position of one chain. These two are the paper's authors' (in their published experiments); the
other models start where their ``initial_position`` says, as the authors' do up to the random
numbers.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import coremcmc

__all__ = ["Start", "in_the_starting_posterior", "near_least_squares"]

Draw = Callable[[jax.Array, Any], dict[str, jax.Array]]
Start = Callable[[dict[str, np.ndarray]], Draw]


def in_the_starting_posterior(rows: dict[str, np.ndarray]) -> Draw:
    """Gaussian location: θ₀ ~ π_{w₀}, the coreset posterior at the weights N/M."""
    num_rows = len(rows["x"])

    def draw(rng_key: jax.Array, coreset_rows: Any) -> dict[str, jax.Array]:
        size, dimension = coreset_rows["x"].shape
        weights = jnp.full(size, num_rows / size)
        mean, variance = coremcmc.GaussianLocation.posterior(coreset_rows, weights)
        return {"theta": mean + jnp.sqrt(variance) * jax.random.normal(rng_key, (dimension,))}

    return draw


def near_least_squares(rows: dict[str, np.ndarray]) -> Draw:
    """Sparse regression: β at least squares + N(0, I), γ = 1, σ² the variance of its residuals."""
    x, y = np.asarray(rows["x"], float), np.asarray(rows["y"], float)
    least_squares = np.linalg.lstsq(x, y, rcond=None)[0]
    # The variance of y − xβ for any β from these, without another pass over the rows.
    covariance = np.cov(x.T, y, bias=True)

    def draw(rng_key: jax.Array, coreset_rows: Any) -> dict[str, jax.Array]:
        beta = least_squares + jax.random.normal(rng_key, least_squares.shape)
        contrast = jnp.append(-beta, 1.0)
        sigma2 = contrast @ covariance @ contrast
        return {"beta": beta, "gamma": jnp.ones_like(beta), "sigma2": sigma2}

    return draw
