"""The beginning of a run: keys, rows, first positions, and checks of the user's model."""

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float

from coremcmc.algorithm.loop import LoopState, init_loop
from coremcmc.algorithm.step import CoresetMCMC
from coremcmc.base import Position, PRNGKey, Rows
from coremcmc.gradient.control_variate import ControlVariate
from coremcmc.posterior.target import Target
from coremcmc.selection import Selected

__all__ = ["Start", "begin"]


class Start(NamedTuple):
    """What a run starts from.

    Attributes
    ----------
    selected
        The coreset's rows and their first weights.
    control
        The control variate, or None for plain subsampling.
    positions
        Where the chains start, with a leading axis of them; None for the model's own start.
    """

    selected: Selected
    control: ControlVariate | None = None
    positions: Position | None = None


def begin(
    algorithm: CoresetMCMC,
    stored_rows: Rows,
    weights: np.ndarray,
    seed: int,
    *,
    num_chains: int,
    planned_length: int,
    given: Position | None,
) -> tuple[PRNGKey, Rows, LoopState]:
    """Return the run's key, the coreset's rows as the model wants them, and the first state.

    Raises where the model's shapes are off or a chain would start outside the support. All in
    one compiled program: dozens of small ones would take seconds and 150 MB.
    """
    if given is not None:
        given = jax.tree.map(lambda x: np.asarray(x, np.float64), given)
    _check_shapes(algorithm, stored_rows, num_chains, given)
    key, rows, state, density = _begin(
        algorithm, stored_rows, weights, seed, given, num_chains, planned_length
    )
    finite = np.isfinite(np.asarray(density))
    if not finite.all():
        chain = int(np.argmin(finite))
        raise ValueError(
            f"the log density is {float(density[chain])} where chain {chain} starts. Give "
            "initial_positions inside the support, or check the model for overflow."
        )
    return key, rows, state


@functools.partial(jax.jit, static_argnums=(0, 5, 6))
def _begin(
    algorithm: CoresetMCMC,
    stored_rows: Rows,
    weights: Float[Array, " M"],
    seed: Any,
    given: Position | None,
    num_chains: int,
    planned_length: int,
) -> tuple[PRNGKey, Rows, LoopState, Float[Array, " K"]]:
    key_start, key = jax.random.split(jax.random.key(seed))
    rows = algorithm.model.prepare_rows(stored_rows)
    positions = _draw(algorithm, key_start, rows, num_chains) if given is None else given
    density = jax.vmap(Target(algorithm.model, rows, weights))(positions)
    state = init_loop(algorithm.init(positions, weights, rows), planned_length)
    return key, rows, state, density


def _draw(algorithm: CoresetMCMC, key: PRNGKey, rows: Rows, num_chains: int) -> Position:
    keys = jax.random.split(key, num_chains)
    drawn = jax.vmap(lambda k: algorithm.model.initial_position(k, rows))(keys)
    return jax.tree.map(lambda x: x.astype(float), drawn)


def _check_shapes(
    algorithm: CoresetMCMC, stored_rows: Rows, num_chains: int, given: Position | None
) -> None:
    """Trace the model abstractly, without compiling anything."""
    model = algorithm.model
    rows = jax.eval_shape(model.prepare_rows, stored_rows)
    key = jax.eval_shape(lambda: jax.random.key(0))
    drawn = jax.eval_shape(lambda k, r: _draw(algorithm, k, r, num_chains), key, rows)
    if given is not None:
        shapes, expected = (jax.tree.map(lambda x: x.shape, tree) for tree in (given, drawn))
        if shapes != expected:
            raise ValueError(
                f"initial_positions must have the shapes {expected} (chains first), but has "
                f"{shapes}."
            )
    first = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), drawn)
    prior = jax.eval_shape(model.logprior_fn, first)
    if prior.shape != ():
        raise ValueError(f"the model's log prior must be a scalar, but has shape {prior.shape}.")
    named = jax.eval_shape(model.constrain_fn, first)
    if not isinstance(named, Mapping):
        raise ValueError(
            "the model's constrain function must return a mapping of names to arrays, not a "
            f"{type(named).__name__}."
        )
    terms = jax.eval_shape(model.loglikelihood_fn, first, rows)
    num_rows = jax.tree.leaves(stored_rows)[0].shape[0]
    if terms.shape != (num_rows,):
        raise ValueError(
            f"the model's log-likelihood must have one value per row, shape {(num_rows,)} for the "
            f"coreset, but has shape {terms.shape}."
        )
