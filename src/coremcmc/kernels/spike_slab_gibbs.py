"""Gibbs sampling for spike-and-slab regression (George and McCulloch 1993), with weights."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve, solve_triangular
from jax.scipy.stats import norm
from jaxtyping import PyTree

from coremcmc.base import Kernel, KernelInfo, KernelState, Position, PRNGKey
from coremcmc.models.sparse_regression import SparseRegression
from coremcmc.posterior.target import Target

__all__ = ["SpikeSlabGibbs"]


@dataclass(frozen=True)
class SpikeSlabGibbs(Kernel):
    """Draw β, σ² and γ in turn from their conditionals under the coreset posterior π_w.

    ::

        β | γ, σ²  ~  N(A⁻¹ XᵀWy / σ², A⁻¹),   A = XᵀWX / σ² + diag(sd_γ)⁻²
        σ² | β     ~  InvGamma((ν + Σw) / 2, (νλ + Σ w (y − xᵀβ)²) / 2)
        γ_i | β_i  ~  Bernoulli, odds  q N(β_i; 0, (cτ)²) : (1 − q) N(β_i; 0, τ²)
    """

    def init(self, position: Position, target: Target) -> KernelState:
        """Start a chain at a position."""
        if not isinstance(target.model, SparseRegression):
            raise ValueError(
                "kernel 'spike_slab_gibbs' is for SparseRegression only, not for "
                f"{type(target.model).__name__}. Use kernel={target.model.default_kernel!r}."
            )
        return super().init(position, target)

    def step(
        self, rng_key: PRNGKey, state: KernelState, target: Target, metric: PyTree = None
    ) -> tuple[KernelState, KernelInfo]:
        """One sweep."""
        model: Any = target.model
        weights = target.weights
        x, y = target.rows["x"], target.rows["y"]
        gamma, sigma2 = state.position["gamma"], state.position["sigma2"]
        key_beta, key_sigma2, key_gamma = jax.random.split(rng_key, 3)

        # These two depend on the weights alone, so that chains under vmap share them.
        weighted_x = weights[:, None] * x
        gram, moment = weighted_x.T @ x, weighted_x.T @ y

        precision = gram / sigma2 + jnp.diag(model.coefficient_sd(gamma) ** -2)
        lower = jnp.linalg.cholesky(precision)
        mean = cho_solve((lower, True), moment / sigma2)
        noise = jax.random.normal(key_beta, mean.shape)
        beta = mean + solve_triangular(lower, noise, lower=True, trans=1)

        residual = y - x @ beta
        shape = 0.5 * (model.nu + weights.sum())
        scale = 0.5 * (model.nu * model.lam + jnp.sum(weights * residual * residual))
        sigma2 = scale / jax.random.gamma(key_sigma2, shape)

        slab = jnp.log(model.q) + norm.logpdf(beta, scale=model.c * model.tau)
        spike = jnp.log1p(-model.q) + norm.logpdf(beta, scale=model.tau)
        included = jax.random.bernoulli(key_gamma, jax.nn.sigmoid(slab - spike))

        position = {"beta": beta, "gamma": included.astype(beta.dtype), "sigma2": sigma2}
        new_state = KernelState(position, target.loglikelihoods(position))
        return new_state, KernelInfo(jnp.ones((), int), jnp.zeros((), bool))
