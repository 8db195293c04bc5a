"""Positions as vectors and back, on the host: JAX would compile a program for every small step."""

import jax
import numpy as np

from coremcmc.base import Position

__all__ = ["flatten", "unflatten"]


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
