"""Regression models with a linear predictor: linear, logistic, Poisson.

The densities are those of the paper's appendix. Every model here reads rows ``{"x", "y"}`` and
has coefficients β = ``beta``, the intercept first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import stats
from jaxtyping import Array, Float

from coremcmc.base import LinearPredictorModel, Position, PRNGKey, Rows
from coremcmc.models.row_checks import (
    require_binary,
    require_counts,
    require_matrix,
    require_vector,
)
from coremcmc.models.special import (
    log_factorial,
    log_softplus,
    softplus,
    standard_normal_logpdf,
)

__all__ = ["LinearRegression", "LogisticRegression", "PoissonRegression"]

_LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class _Regression(LinearPredictorModel):
    """What the three have in common: η_n = [1 x_nᵀ] β."""

    intercept: bool = True
    has_independent_prior: ClassVar[bool] = True
    fields: ClassVar[tuple[str, ...]] = ("x", "y")

    def predictor(self, position: Position, rows: Rows) -> Float[Array, " rows"]:
        """η = [1 x] β."""
        beta = position["beta"]
        return rows["x"] @ beta[1:] + beta[0] if self.intercept else rows["x"] @ beta

    def prepare_rows(self, rows: Rows) -> Rows:
        """All columns as float64."""
        return jax.tree.map(lambda column: column.astype(float), rows)

    def check_rows(self, rows: Rows) -> None:
        """A matrix of features and a vector of responses."""
        require_matrix("x", rows["x"])
        require_vector("y", rows["y"])

    def num_coefficients(self, rows: Rows) -> int:
        """Length of β."""
        return rows["x"].shape[1] + self.intercept

    def initial_position(self, rng_key: PRNGKey, rows: Rows) -> Position:
        """β ~ N(0, I): far from the mass, as in the paper's study."""
        return {"beta": jax.random.normal(rng_key, (self.num_coefficients(rows),))}


@dataclass(frozen=True)
class LinearRegression(_Regression):
    """y_n ~ N([1 x_nᵀ] β, σ²) with (β, log σ²) ~ N(0, I). The position holds β and log σ²."""

    def logprior_fn(self, position: Position) -> Float[Array, ""]:
        """Independent standard normals."""
        log_sigma2 = standard_normal_logpdf(position["log_sigma2"])
        return standard_normal_logpdf(position["beta"]).sum() + log_sigma2

    def pointwise(
        self, eta: Float[Array, " rows"], rows: Rows, position: Position
    ) -> Float[Array, " rows"]:
        """Normal log density."""
        log_sigma2 = position["log_sigma2"]
        residual = rows["y"] - eta
        return -0.5 * (residual * residual * jnp.exp(-log_sigma2) + log_sigma2 + _LOG_2PI)

    def initial_position(self, rng_key: PRNGKey, rows: Rows) -> Position:
        """(β, log σ²) ~ N(0, I)."""
        draw = jax.random.normal(rng_key, (self.num_coefficients(rows) + 1,))
        return {"beta": draw[:-1], "log_sigma2": draw[-1]}

    def constrain_fn(self, position: Position) -> Mapping[str, Array]:
        """β and σ."""
        return {"beta": position["beta"], "sigma": jnp.exp(0.5 * position["log_sigma2"])}


@dataclass(frozen=True)
class LogisticRegression(_Regression):
    """y_n ~ Bernoulli(1 / (1 + exp(−[1 x_nᵀ] β))) with β_i ~ Cauchy(0, 1)."""

    def logprior_fn(self, position: Position) -> Float[Array, ""]:
        """Independent standard Cauchys."""
        return stats.cauchy.logpdf(position["beta"]).sum()

    def pointwise(
        self, eta: Float[Array, " rows"], rows: Rows, position: Position
    ) -> Float[Array, " rows"]:
        """y η − log(1 + e^η)."""
        return rows["y"] * eta - softplus(eta)

    def check_rows(self, rows: Rows) -> None:
        """Labels are 0 and 1."""
        super().check_rows(rows)
        require_binary("y", rows["y"])


@dataclass(frozen=True)
class PoissonRegression(_Regression):
    """y_n ~ Poisson(log(1 + exp([1 x_nᵀ] β))) with β ~ N(0, I)."""

    def logprior_fn(self, position: Position) -> Float[Array, ""]:
        """Independent standard normals."""
        return standard_normal_logpdf(position["beta"]).sum()

    def prepare_rows(self, rows: Rows) -> Rows:
        """Compute log y! once, not at every evaluation."""
        rows = super().prepare_rows(rows)
        return {**rows, "log_factorial": log_factorial(rows["y"])}

    def pointwise(
        self, eta: Float[Array, " rows"], rows: Rows, position: Position
    ) -> Float[Array, " rows"]:
        """y log μ − μ − log y! with μ = log(1 + e^η)."""
        return rows["y"] * log_softplus(eta) - softplus(eta) - rows["log_factorial"]

    def check_rows(self, rows: Rows) -> None:
        """Counts are whole and not negative."""
        super().check_rows(rows)
        require_counts("y", rows["y"])
