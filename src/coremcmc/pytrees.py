"""Positions as vectors, as named arrays, and back.

On the host, where nothing has to be compiled: JAX would make a program of every small step.
"""

import functools
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from coremcmc.base import Model, Position

__all__ = [
    "coordinate_names",
    "flatten",
    "named_draws",
    "pack_tree",
    "unflatten",
    "unpack_tree",
]


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


def coordinate_names(shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    """Name every coordinate of named arrays: ``beta[0]``, ``beta[1]``, …, ``sigma``."""
    names = []
    for name, shape in shapes.items():
        for index in np.ndindex(*shape):
            names.append(f"{name}[{','.join(map(str, index))}]" if shape else name)
    return names


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


def pack_tree(prefix: str, tree: Any) -> dict[str, np.ndarray]:
    """Turn a pytree of arrays into named arrays."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {f"{prefix}{jax.tree_util.keystr(path)}": np.asarray(leaf) for path, leaf in leaves}


def unpack_tree(prefix: str, arrays: dict[str, np.ndarray], like: Any) -> Any:
    """Turn named arrays back into a pytree of the structure, shapes and dtypes of ``like``."""

    def find(path, leaf):
        name = f"{prefix}{jax.tree_util.keystr(path)}"
        found = arrays.get(name)
        if found is None or found.shape != leaf.shape or found.dtype != leaf.dtype:
            what = "is missing" if found is None else f"has shape {found.shape}, {found.dtype}"
            raise ValueError(f"{name} {what}; expected shape {leaf.shape}, {leaf.dtype}.")
        return found

    return jax.tree_util.tree_map_with_path(find, like)
