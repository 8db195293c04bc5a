"""D-Adaptation SGD (Defazio and Mishchenko 2023), in the form that the paper gives it."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.typing import ArrayLike
from jaxtyping import Array, Float

__all__ = ["DAdaptSGDState", "dadapt_sgd"]


class DAdaptSGDState(NamedTuple):
    """State of :func:`coremcmc.optimizers.dadapt_sgd`.

    Attributes
    ----------
    initial_params
        w_0.
    distance
        d_t, a lower bound on the distance from w_0 to the solution.
    correlation
        Σ d_i ⟨g_i, w_0 − w_i⟩.
    weighted_gradients
        Σ d_i g_i.
    squared_norms
        G_t = Σ ‖g_i‖².
    """

    initial_params: optax.Params
    distance: Float[Array, ""]
    correlation: Float[Array, ""]
    weighted_gradients: optax.Params
    squared_norms: Float[Array, ""]


def dadapt_sgd(d0: ArrayLike = 1e-6, eps: float = 1e-8) -> optax.GradientTransformation:
    r"""Gradient descent whose rate is a lower bound on the distance to the solution.

    .. math::

        w_{t+1} = w_t - \frac{d_t}{\sqrt{\sum_{i \le t} \|g_i\|^2 + ε}}\, g_t, \qquad
        d_{t+1} = \max\left\{ d_t,
            \frac{\sum_{i \le t} d_i \langle g_i, w_0 - w_i\rangle}
                 {\|\sum_{i \le t} d_i g_i\|} \right\}

    Parameters
    ----------
    d0
        Initial lower bound.
    eps
        Keeps a zero gradient at the start from a division by zero.
    """

    def init_fn(params: Any) -> Any:
        dtype = optax.tree.dtype(params, "lowest")
        zero = jnp.zeros([], dtype)
        distance = jnp.asarray(d0, dtype)
        return DAdaptSGDState(params, distance, zero, optax.tree.zeros_like(params), zero)

    def update_fn(updates: Any, state: Any, params: Any = None) -> Any:
        if params is None:
            raise ValueError(optax.NO_PARAMS_MSG)
        d = state.distance
        squared_norms = state.squared_norms + optax.tree.norm(updates, squared=True)
        travelled = optax.tree.sub(state.initial_params, params)
        correlation = state.correlation + d * optax.tree.vdot(updates, travelled)
        weighted = jax.tree.map(lambda s, g: s + d * g, state.weighted_gradients, updates)
        norm = optax.tree.norm(weighted)
        bound = jnp.where(norm > 0, correlation / jnp.where(norm > 0, norm, 1.0), 0.0)
        steps = optax.tree.scale(-d / jnp.sqrt(squared_norms + eps), updates)
        return steps, DAdaptSGDState(
            state.initial_params, jnp.maximum(d, bound), correlation, weighted, squared_norms
        )

    return optax.GradientTransformation(init_fn, update_fn)
