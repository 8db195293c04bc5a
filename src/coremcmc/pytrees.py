"""Positions as vectors, as named arrays, and back; rows as a model wants them.

On the host, where nothing has to be compiled: JAX would make a program of every small step.
"""

import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from coremcmc.base import Model, Position, Rows

__all__ = [
    "aligned",
    "coordinate_names",
    "example_position",
    "flatten",
    "named_draws",
    "pack_tree",
    "prepared",
    "unflatten",
    "unpack_tree",
]


@functools.partial(jax.jit, static_argnums=0, inline=True)
def prepared(model: Model, stored_rows: Rows) -> Rows:
    """Return stored rows as the model computes with them.

    In one compiled program, or as a part of the one that is being traced.
    """
    return model.prepare_rows(jax.tree.map(jnp.asarray, stored_rows))


def example_position(model: Model, stored_rows: Rows) -> Position:
    """Return the shapes of a position; nothing is computed, and of the rows two are enough."""

    def first(rows: Rows) -> Position:
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


def coordinate_names(shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    """Name every coordinate of named arrays: ``beta[0]``, ``beta[1]``, …, ``sigma``."""
    names = []
    for name, shape in shapes.items():
        for index in np.ndindex(*shape):
            names.append(f"{name}[{','.join(map(str, index))}]" if shape else name)
    return names


def aligned(
    shapes: Mapping[str, tuple[int, ...]], mean: Any, sd: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return which coordinates a reference's mean and sd speak of, and both as vectors of these.

    They are vectors of all coordinates, or mappings of some of the names to arrays.
    """
    names = coordinate_names(shapes)
    if not isinstance(mean, Mapping):
        mean, sd = np.asarray(mean, float), np.asarray(sd, float)
        if mean.shape != (len(names),) or sd.shape != mean.shape:
            raise ValueError(
                f"mean and sd must have {len(names)} entries, in the order of "
                f"position_names; got {mean.shape} and {sd.shape}."
            )
        return np.arange(mean.size), mean, sd
    unknown = set(mean) - set(shapes)
    if unknown or set(mean) != set(sd):
        raise ValueError(
            f"mean and sd must have the same keys, from {list(shapes)}; got "
            f"{sorted(mean)} and {sorted(sd)}."
        )
    sizes = {name: int(np.prod(shape)) for name, shape in shapes.items()}
    ends = dict(zip(sizes, np.cumsum(list(sizes.values())), strict=True))
    columns = [np.arange(ends[name] - sizes[name], ends[name]) for name in mean]
    for name in mean:
        found = {np.shape(mean[name]), np.shape(sd[name])}
        if found != {shapes[name]}:
            raise ValueError(
                f"mean and sd of {name!r} must have shape {shapes[name]}; got "
                f"{' and '.join(map(str, found))}."
            )
    flat = [np.concatenate([np.ravel(x[name]) for name in mean]) for x in (mean, sd)]
    return np.concatenate(columns), flat[0], flat[1]


def named_draws(model: Model, draws: np.ndarray, like: Position) -> dict[str, np.ndarray]:
    """Turn flattened draws (draws × chains × coordinates) into named ones of the same axes.

    JAX would sort the names of a mapping; a model's own order is worth more to its reader.
    """
    names: list[str] = []

    def note_names(position: Position) -> tuple[()]:
        names[:] = model.constrain_fn(position)
        return ()

    jax.eval_shape(note_names, like)
    values = _values(model, unflatten(np.asarray(draws), like))
    return dict(zip(names, map(np.asarray, values), strict=True))


@functools.partial(jax.jit, static_argnums=0)
def _values(model: Model, positions: Position) -> tuple[Array, ...]:
    def one(position: Position) -> tuple[Array, ...]:
        return tuple(model.constrain_fn(position).values())

    return jax.vmap(jax.vmap(one))(positions)


def pack_tree(prefix: str, tree: Any) -> dict[str, np.ndarray]:
    """Turn a pytree of arrays into named arrays."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {f"{prefix}{jax.tree_util.keystr(path)}": np.asarray(leaf) for path, leaf in leaves}


def unpack_tree(prefix: str, arrays: dict[str, np.ndarray], like: Any) -> Any:
    """Turn named arrays back into a pytree of the structure, shapes and dtypes of ``like``."""

    def find(path: Any, leaf: Any) -> np.ndarray:
        name = f"{prefix}{jax.tree_util.keystr(path)}"
        found = arrays.get(name)
        if found is None or found.shape != leaf.shape or found.dtype != leaf.dtype:
            what = "is missing" if found is None else f"has shape {found.shape}, {found.dtype}"
            raise ValueError(f"{name} {what}; expected shape {leaf.shape}, {leaf.dtype}.")
        return found

    return jax.tree_util.tree_map_with_path(find, like)
