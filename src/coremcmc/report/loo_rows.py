"""Log-likelihoods of rows chosen uniformly from all the data, for ArviZ's ``loo``."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from coremcmc.base import Model, Position, Rows
from coremcmc.data import as_data_source
from coremcmc.fitting.result import Fit
from coremcmc.pytrees import unflatten

__all__ = ["log_likelihoods"]


def log_likelihoods(fit: Fit, data: Any, size: int, model: Model | None, seed: int) -> np.ndarray:
    """Return chains × draws × rows: ℓ of ``size`` rows at each draw of the posterior."""
    model = fit.model if model is None else model
    if model is None:
        raise ValueError(
            "a fit that was loaded from a file does not hold its model. Pass model=, the one that "
            f"it was made with: {fit.config['model']}."
        )
    source = as_data_source(data, model)
    if source.num_rows != fit.coreset.num_rows:
        raise ValueError(
            f"data has {source.num_rows:,} rows, but the fit was made from "
            f"{fit.coreset.num_rows:,}."
        )
    rng = np.random.default_rng([seed, 5])
    size = min(size, source.num_rows)
    chosen = np.sort(rng.choice(source.num_rows, size, replace=False))
    draws = fit.sampled_positions if fit.sampled else fit.positions[len(fit.positions) // 2 :]
    with jax.enable_x64(True):
        rows = source.take(chosen)
        prepared = jax.eval_shape(model.prepare_rows, rows)
        key = jax.eval_shape(lambda: jax.random.key(0))
        like = jax.eval_shape(model.initial_position, key, prepared)
        flat = unflatten(draws.reshape(-1, draws.shape[-1]), like)
        values = np.asarray(_at_draws(model, rows, flat))
    return np.swapaxes(values.reshape(*draws.shape[:2], size), 0, 1)


@functools.partial(jax.jit, static_argnums=0)
def _at_draws(model: Model, stored: Rows, positions: Position) -> Float[Array, "draws rows"]:
    rows = model.prepare_rows(jax.tree.map(jnp.asarray, stored))
    return jax.lax.map(lambda position: model.loglikelihood_fn(position, rows), positions)
