"""Optimizers of the paper's study that are optax's own, with the study's settings."""

import jax.numpy as jnp
import optax
from jax.typing import ArrayLike
from optax import contrib

from coremcmc.optimizers.wrappers import ignoring_zero_gradients

__all__ = ["adam", "dadapt_adam", "dog", "dowg"]


def adam(learning_rate: ArrayLike = 1.0) -> optax.GradientTransformation:
    """ADAM with the rate γ/√t, where t counts the updates."""
    return optax.adam(lambda count: learning_rate / jnp.sqrt(count + 1.0))


def dog(r: ArrayLike = 1e-3) -> optax.GradientTransformation:
    """DoG: rate max_i ‖w_i − w_0‖ / √(Σ ‖g_i‖²), the first distance being r."""
    return contrib.dog(init_step=("distance", r))


def dowg(r: ArrayLike = 1e-3) -> optax.GradientTransformation:
    """DoWG: rate r_t² / √(Σ r_i² ‖g_i‖²) with r_t as in DoG."""
    return contrib.dowg(init_estim_sq_dist=r**2, eps=1e-8)


def dadapt_adam(d0: ArrayLike = 1e-6) -> optax.GradientTransformation:
    """D-Adaptation, Adam variant."""
    return ignoring_zero_gradients(contrib.dadapt_adamw(estim_lr0=d0))
