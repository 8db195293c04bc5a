"""The other optimizers of the paper's study, built from optax with the study's settings."""

from functools import partial
from typing import Any

import jax.numpy as jnp
import optax
from jax.typing import ArrayLike
from optax import contrib

from coremcmc.optimizers.prodigy import cosine_restarts

__all__ = ["adam", "dadapt_adam", "dog", "dowg", "prodigy_corrected"]


def adam(learning_rate: ArrayLike = 1.0) -> optax.GradientTransformation:
    """ADAM with the rate γ/√t, where t counts the updates."""
    return optax.adam(lambda count: learning_rate / jnp.sqrt(count + 1.0))


def dog(r: ArrayLike = 1e-3) -> optax.GradientTransformation:
    """DoG: rate max_i ‖w_i − w_0‖ / √(Σ ‖g_i‖²), the first distance being r."""
    return contrib.dog(init_step=("distance", r))


def dowg(r: ArrayLike = 1e-3) -> optax.GradientTransformation:
    """DoWG: rate r_t² / √(Σ r_i² ‖g_i‖²) with r_t as in DoG."""
    return contrib.dowg(init_estim_sq_dist=r**2, eps=1e-8)


def prodigy_corrected(d0: ArrayLike = 1e-6, period: int = 100) -> optax.GradientTransformation:
    """Prodigy with Adam's bias correction, which the published one and the paper's lack.

    The rate is annealed along a cosine that restarts every ``period`` updates.
    """
    schedule = partial(cosine_restarts, period=period)
    return _ignoring_zero_gradients(contrib.prodigy(schedule, estim_lr0=d0))


def dadapt_adam(d0: ArrayLike = 1e-6) -> optax.GradientTransformation:
    """D-Adaptation, Adam variant."""
    return _ignoring_zero_gradients(contrib.dadapt_adamw(estim_lr0=d0))


def _ignoring_zero_gradients(inner: Any) -> optax.GradientTransformation:
    """Skip updates by a gradient of zeros, which those two turn into 0/0."""
    gated = optax.conditionally_mask(
        inner, lambda step, *, is_zero, **_: ~is_zero, forward_extra_args=True
    )

    def update_fn(updates, state, params=None, **extra):
        is_zero = optax.tree.norm(updates) == 0
        return gated.update(updates, state, params, is_zero=is_zero, **extra)

    return optax.GradientTransformationExtraArgs(gated.init, update_fn)
