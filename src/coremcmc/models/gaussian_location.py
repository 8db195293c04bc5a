"""The Gaussian location model, whose posterior is known in closed form."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from coremcmc.base import Model, Position, PRNGKey, Rows
from coremcmc.models.row_checks import require_matrix
from coremcmc.models.special import standard_normal_logpdf

__all__ = ["GaussianLocation"]

_LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class GaussianLocation(Model):
    """X_n ~ N(θ, I) with θ ~ N(0, I); rows ``{"x"}``, position ``{"theta"}``."""

    fields: ClassVar[tuple[str, ...]] = ("x",)
    default_kernel: ClassVar[str] = "gaussian_exact"

    def logprior_fn(self, position: Position) -> Float[Array, ""]:
        """Independent standard normals."""
        return standard_normal_logpdf(position["theta"]).sum()

    def loglikelihood_fn(self, position: Position, rows: Rows) -> Float[Array, " rows"]:
        """Normal log density with the identity as covariance."""
        residual = rows["x"] - position["theta"]
        dimension = residual.shape[-1]
        return -0.5 * (jnp.sum(residual * residual, axis=-1) + dimension * _LOG_2PI)

    def initial_position(self, rng_key: PRNGKey, rows: Rows) -> Position:
        """θ ~ N(0, I)."""
        return {"theta": jax.random.normal(rng_key, (rows["x"].shape[1],))}

    def check_rows(self, rows: Rows) -> None:
        """A matrix of observations."""
        require_matrix("x", rows["x"])

    @staticmethod
    def posterior(
        rows: Rows, weights: Float[Array, " M"]
    ) -> tuple[Float[Array, " d"], Float[Array, ""]]:
        """Mean and (common) variance of π_w = N(Σ w x / (1 + Σ w), I / (1 + Σ w))."""
        precision = 1.0 + weights.sum()
        return weights @ rows["x"] / precision, 1.0 / precision
