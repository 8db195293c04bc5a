"""Draws as named parameters on a person's scale, in the model's own order."""

import functools

import jax
import numpy as np
from jaxtyping import Array

from coremcmc.base import Model, Position
from coremcmc.pytrees import unflatten

__all__ = ["named_draws"]


def named_draws(model: Model, draws: np.ndarray, like: Position) -> dict[str, np.ndarray]:
    """Turn flattened draws (draws × chains × coordinates) into named ones of the same axes.

    JAX would sort the names of a mapping; a model's own order is worth more to its reader.
    """
    names: list[str] = []

    def note_names(position):
        names[:] = model.constrain_fn(position)
        return ()

    jax.eval_shape(note_names, like)
    values = _values(model, unflatten(np.asarray(draws), like))
    return dict(zip(names, map(np.asarray, values), strict=True))


@functools.partial(jax.jit, static_argnums=0)
def _values(model: Model, positions: Position) -> tuple[Array, ...]:
    def one(position):
        return tuple(model.constrain_fn(position).values())

    return jax.vmap(jax.vmap(one))(positions)
