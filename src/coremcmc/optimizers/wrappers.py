"""Wrappers of optimizers: the hot-start gate, the allowed weights, a guard against 0/0."""

from typing import Any

import jax.numpy as jnp
import optax
from optax import projections

__all__ = ["constrained", "gated", "ignoring_zero_gradients"]


def gated(inner: optax.GradientTransformation) -> optax.GradientTransformationExtraArgs:
    """Hold an optimizer, state and all, until ``update(..., is_hot=True)``."""
    return optax.conditionally_mask(
        inner, lambda step, *, is_hot, **_: is_hot, forward_extra_args=True
    )


def constrained(
    inner: optax.GradientTransformation, max_sum: float | None = None
) -> optax.GradientTransformationExtraArgs:
    """Follow every update by the projection on w ≥ 0, and on Σ w ≤ ``max_sum`` if given."""
    projection = () if max_sum is None else (_project_on_capped_simplex(max_sum),)
    chained = optax.chain(inner, *projection, optax.keep_params_nonnegative())
    return optax.with_extra_args_support(chained)


def ignoring_zero_gradients(inner: optax.GradientTransformation) -> optax.GradientTransformation:
    """Skip updates by a gradient of zeros, which two of optax's own turn into 0/0."""
    masked = optax.conditionally_mask(
        inner, lambda step, *, is_zero, **_: ~is_zero, forward_extra_args=True
    )

    def update_fn(updates: Any, state: Any, params: Any = None, **extra: Any) -> Any:
        is_zero = optax.tree.norm(updates) == 0
        return masked.update(updates, state, params, is_zero=is_zero, **extra)

    return optax.GradientTransformationExtraArgs(masked.init, update_fn)


def _project_on_capped_simplex(max_sum: float) -> optax.GradientTransformation:
    """Euclidean projection on {w ≥ 0, Σ w ≤ max_sum}."""

    def update_fn(updates: Any, state: Any, params: Any = None) -> Any:
        if params is None:
            raise ValueError(optax.NO_PARAMS_MSG)
        moved = optax.apply_updates(params, updates)
        positive = projections.projection_non_negative(moved)
        capped = projections.projection_simplex(moved, max_sum)
        projected = jnp.where(positive.sum() <= max_sum, positive, capped)
        return projected - params, state

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update_fn)
