"""Spike-and-slab linear regression of George and McCulloch (1993), Example 4.1."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import stats
from jaxtyping import Array, Float

from coremcmc.base import Model, Position, PRNGKey, Rows
from coremcmc.models.row_checks import require_matrix, require_vector

__all__ = ["SparseRegression"]

_LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class SparseRegression(Model):
    """Linear regression that chooses its features.

    ::

        σ² ~ InvGamma(ν/2, νλ/2)      γ_i ~ Bernoulli(q)
        β_i | γ_i ~ N(0, τ²) if γ_i = 0, N(0, (cτ)²) if γ_i = 1
        y_n ~ N(x_nᵀ β, σ²)

    Rows are ``{"x", "y"}``; the position holds ``beta``, ``gamma`` (zeros and ones, as floats)
    and ``sigma2``. It is moved by Gibbs sampling, not by gradients.
    """

    nu: float = 0.1
    lam: float = 1.0
    q: float = 0.1
    tau: float = 0.1
    c: float = 10.0
    fields: ClassVar[tuple[str, ...]] = ("x", "y")
    default_kernel: ClassVar[str] = "spike_slab_gibbs"
    is_continuous: ClassVar[bool] = False

    def coefficient_sd(self, gamma: Float[Array, " p"]) -> Float[Array, " p"]:
        """Prior standard deviation of each β_i: τ in the spike, cτ in the slab."""
        return jnp.where(gamma == 1.0, self.c * self.tau, self.tau)

    def logprior_fn(self, position: Position) -> Float[Array, ""]:
        """Joint log density of (β, γ, σ²)."""
        beta, gamma, sigma2 = position["beta"], position["gamma"], position["sigma2"]
        shape, scale = self.nu / 2, self.nu * self.lam / 2
        inverse_gamma = (
            shape * np.log(scale)
            - jax.scipy.special.gammaln(shape)
            - (shape + 1) * jnp.log(sigma2)
            - scale / sigma2
        )
        inclusion = jnp.where(gamma == 1.0, np.log(self.q), np.log1p(-self.q)).sum()
        slab = stats.norm.logpdf(beta, scale=self.coefficient_sd(gamma)).sum()
        return inverse_gamma + inclusion + slab

    def loglikelihood_fn(self, position: Position, rows: Rows) -> Float[Array, " rows"]:
        """Normal log density."""
        residual = rows["y"] - rows["x"] @ position["beta"]
        sigma2 = position["sigma2"]
        return -0.5 * (residual * residual / sigma2 + jnp.log(sigma2) + _LOG_2PI)

    def prepare_rows(self, rows: Rows) -> Rows:
        """All columns as float64."""
        return jax.tree.map(lambda column: column.astype(float), rows)

    def initial_position(self, rng_key: PRNGKey, rows: Rows) -> Position:
        """β ~ N(0, I), all features in, σ² = 1."""
        p = rows["x"].shape[1]
        beta = jax.random.normal(rng_key, (p,))
        return {"beta": beta, "gamma": jnp.ones(p), "sigma2": jnp.ones(())}

    def check_rows(self, rows: Rows) -> None:
        """A matrix of features and a vector of responses."""
        require_matrix("x", rows["x"])
        require_vector("y", rows["y"])
