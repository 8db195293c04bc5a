"""Hot DoG: coordinate-wise distance over gradients with exponential averages (Algorithm 2)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.typing import ArrayLike
from jaxtyping import Array, Int

__all__ = ["HotDogState", "hot_dog"]


class HotDogState(NamedTuple):
    """State of :func:`coremcmc.hot_dog`.

    Attributes
    ----------
    count
        c, the number of updates made.
    initial_params
        w_0.
    first_moment, second_moment, distance
        The averages m, v and d of gradients, squared gradients and distances travelled.
    """

    count: Int[Array, ""]  # type: ignore[assignment]  # it hides tuple.count, as in optax
    initial_params: optax.Params
    first_moment: optax.Params
    second_moment: optax.Params
    distance: optax.Params


def hot_dog(
    r: ArrayLike = 1e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8
) -> optax.GradientTransformation:
    r"""Gradient descent with nothing to tune, coordinate by coordinate.

    An optax transformation that can be used on any problem. It is Algorithm 2 of the paper
    without its hot start, which :func:`coremcmc.optimizers.gated` adds to any optimizer:

    .. math::

        v_c &= β_2 v_{c-1} + (1 - β_2) g_c^2, \qquad \hat v_c = v_c / (1 - β_2^c) \\
        m_c &= β_1 m_{c-1} + (1 - β_1) g_c, \qquad \hat m_c = m_c / (1 - β_1^c) \\
        d_c &= β_1 d_{c-1} + (1 - β_1) \max(|w_{c-1} - w_0|, d_{c-1}) \\
        \hat d_c &= r \text{ if } c = 1 \text{ or } d_c = 0 \text{ else } d_c / (1 - β_1^{c-1}) \\
        w_c &= w_{c-1} - \hat d_c \, \hat m_c / \sqrt{c\,(\hat v_c + ε)}

    The paper writes "r if t = 1", which a late hot start would turn into 0/0; c counts updates.
    The case d = 0 is ours: it frees a coordinate that a zero gradient or the constraint kept in
    place at its first update, where the paper's would never move again.

    Parameters
    ----------
    r
        Length of the first step of a coordinate. The result hardly depends on it.
    beta1, beta2
        Decay rates β_1 and β_2, in [0, 1).
    eps
        ε.
    """

    def init_fn(params: Any) -> Any:
        zeros = optax.tree.zeros_like(params)
        return HotDogState(jnp.zeros([], jnp.int32), params, zeros, zeros, zeros)

    def update_fn(updates: Any, state: Any, params: Any = None) -> Any:
        if params is None:
            raise ValueError(optax.NO_PARAMS_MSG)
        count = optax.safe_increment(state.count)
        first_moment = optax.tree.update_moment(updates, state.first_moment, beta1, 1)
        second_moment = optax.tree.update_moment(updates, state.second_moment, beta2, 2)
        distance = jax.tree.map(
            lambda w, w0, d: beta1 * d + (1 - beta1) * jnp.maximum(jnp.abs(w - w0), d),
            params,
            state.initial_params,
            state.distance,
        )

        def step(m: Any, v: Any, d: Any) -> Any:
            c = count.astype(d.dtype)
            first = (count == 1) | (d == 0)
            corrected = jnp.where(first, r, d / jnp.where(first, 1.0, 1 - beta1 ** (c - 1)))
            m_hat, v_hat = m / (1 - beta1**c), v / (1 - beta2**c)
            return -corrected * m_hat / jnp.sqrt(c * (v_hat + eps))

        updates = jax.tree.map(step, first_moment, second_moment, distance)
        return updates, HotDogState(
            count, state.initial_params, first_moment, second_moment, distance
        )

    return optax.GradientTransformation(init_fn, update_fn)
