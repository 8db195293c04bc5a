"""Positions as vectors and back, an example of a position, and rows as a model wants them.

Vectors are made on the host: JAX would compile a program for every small step.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from coremcmc.base import Model, Position, Rows

__all__ = ["example_position", "flatten", "prepared", "unflatten"]


@functools.partial(jax.jit, static_argnums=0, inline=True)
def prepared(model: Model, stored_rows: Rows) -> Rows:
    """Return stored rows as the model computes with them.

    In one compiled program, or as a part of the one that is being traced.
    """
    return model.prepare_rows(jax.tree.map(jnp.asarray, stored_rows))


def example_position(model: Model, stored_rows: Rows) -> Position:
    """Return the shapes of a position; nothing is computed, and of the rows two are enough."""

    def first(rows):
        return model.initial_position(jax.random.key(0), model.prepare_rows(rows))

    return jax.eval_shape(first, stored_rows)


def flatten(position: Position) -> np.ndarray:
    """Return a position as a vector of float64, in the order of the pytree's leaves."""
    leaves = jax.tree.leaves(position)
    return np.concatenate([np.ravel(np.asarray(x, np.float64)) for x in leaves])


def unflatten(flat: np.ndarray, like: Position) -> Position:
    """Turn vectors along the last axis into positions of the shapes of ``like``.

    Leading axes, of draws or chains, stay in front of every leaf.
    """
    leaves, structure = jax.tree.flatten(like)
    sizes = [int(np.prod(np.shape(x))) for x in leaves]
    parts = np.split(np.asarray(flat), np.cumsum(sizes)[:-1], axis=-1)
    shaped = [
        part.reshape((*part.shape[:-1], *np.shape(x)))
        for part, x in zip(parts, leaves, strict=True)
    ]
    return jax.tree.unflatten(structure, shaped)
