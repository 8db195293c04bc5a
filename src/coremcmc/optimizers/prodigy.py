"""Prodigy (Mishchenko and Defazio 2024), Adam variant, in two forms with the study's schedule."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int
from optax import contrib

from coremcmc.optimizers.wrappers import ignoring_zero_gradients

__all__ = ["ProdigyState", "prodigy", "prodigy_corrected"]


def _cosine_restarts(count: ArrayLike, period: int) -> jax.Array:
    """Rate that falls from 1 to 0 along a cosine and starts again every ``period`` updates."""
    return 0.5 * (1.0 + jnp.cos(jnp.pi * (jnp.asarray(count) % period) / period))


class ProdigyState(NamedTuple):
    """State of :func:`coremcmc.optimizers.prodigy`.

    Attributes
    ----------
    num_updates
        Updates so far.
    initial_params
        w_0.
    distance
        d_t, a lower bound on the distance from w_0 to the solution.
    first_moment, second_moment
        m_t and v_t, of d_t g_t.
    correlation
        r_t, moving average of γ_t d_t² ⟨g_t, w_0 − w_t⟩.
    weighted_gradients
        s_t, moving average of γ_t d_t² g_t.
    """

    num_updates: Int[Array, ""]
    initial_params: optax.Params
    distance: Float[Array, ""]
    first_moment: optax.Updates
    second_moment: optax.Updates
    correlation: Float[Array, ""]
    weighted_gradients: optax.Updates


def prodigy(
    d0: ArrayLike = 1e-6,
    period: int = 100,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
) -> optax.GradientTransformation:
    r"""Prodigy as published, and as the paper's authors ran it: without Adam's bias correction.

    .. math::

        r_{t+1} &= \sqrt{β_2}\, r_t + (1 - \sqrt{β_2})\, γ_t d_t^2 \langle g_t, w_0 - w_t\rangle,
        \qquad s_{t+1} = \sqrt{β_2}\, s_t + (1 - \sqrt{β_2})\, γ_t d_t^2 g_t, \\
        d_{t+1} &= \max\{d_t, r_{t+1} / \|s_{t+1}\|_1\}, \qquad
        w_{t+1} = w_t - γ_t d_t\, m_{t+1} / (\sqrt{v_{t+1}} + d_t ε),

    where m and v are Adam's moments of :math:`d_t g_t`, not corrected for their start at zero.
    ``optax.contrib.prodigy`` always corrects them, also in the estimate of d; that variant is
    :func:`coremcmc.optimizers.prodigy_corrected`.

    Parameters
    ----------
    d0
        Initial lower bound on the distance.
    period
        γ is annealed along a cosine that restarts every so many updates.
    """
    root = beta2**0.5

    def init_fn(params: optax.Params) -> ProdigyState:
        dtype = optax.tree.dtype(params, "lowest")
        zeros = optax.tree.zeros_like(params)
        return ProdigyState(
            jnp.zeros([], int),
            params,
            jnp.asarray(d0, dtype),
            zeros,
            zeros,
            jnp.zeros([], dtype),
            zeros,
        )

    def update_fn(
        updates: optax.Updates, state: ProdigyState, params: optax.Params | None = None
    ) -> tuple[optax.Updates, ProdigyState]:
        if params is None:
            raise ValueError(optax.NO_PARAMS_MSG)
        d, rate = state.distance, _cosine_restarts(state.num_updates, period)
        scaled = optax.tree.scale(d, updates)
        first = optax.tree.update_moment(scaled, state.first_moment, beta1, 1)
        second = optax.tree.update_moment(scaled, state.second_moment, beta2, 2)
        travelled = optax.tree.sub(state.initial_params, params)
        gain = (1 - root) * rate * d * d
        correlation = root * state.correlation + gain * optax.tree.vdot(updates, travelled)
        weighted = jax.tree.map(lambda s, g: root * s + gain * g, state.weighted_gradients, updates)
        norm = optax.tree.norm(weighted, ord=1)
        bound = jnp.where(norm > 0, correlation / jnp.where(norm > 0, norm, 1.0), 0.0)
        steps = jax.tree.map(lambda m, v: -rate * d * m / (jnp.sqrt(v) + d * eps), first, second)
        return steps, ProdigyState(
            state.num_updates + 1,
            state.initial_params,
            jnp.maximum(d, bound),
            first,
            second,
            correlation,
            weighted,
        )

    return optax.GradientTransformation(init_fn, update_fn)


def prodigy_corrected(d0: ArrayLike = 1e-6, period: int = 100) -> optax.GradientTransformation:
    """Prodigy with Adam's bias correction, which the published one and the paper's lack.

    The rate is annealed along a cosine that restarts every ``period`` updates.
    """
    schedule = partial(_cosine_restarts, period=period)
    return ignoring_zero_gradients(contrib.prodigy(schedule, estim_lr0=d0))
