"""More draws from a trained coreset, its weights being fixed."""

import dataclasses
import functools
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from coremcmc.base import Model, Position, PRNGKey, Rows, flat_positions
from coremcmc.data import as_data_source
from coremcmc.diagnostics import split_rhat
from coremcmc.fitting.draws import sample_target
from coremcmc.fitting.result import Fit
from coremcmc.kernels import KERNELS
from coremcmc.posterior.target import Target
from coremcmc.pytrees import named_draws, unflatten

__all__ = ["more_draws"]

_LARGEST_DENSE = 100  # dimensions up to which NUTS learns all covariances
_DISAGREE = 1.05  # R-hat,
_FEWEST = 100  # judged from so many draws a chain on


def more_draws(
    fit: Fit,
    num_draws: int,
    *,
    num_chains: int = 4,
    kernel: Any = None,
    num_warmup: int = 500,
    seed: int = 0,
    model: Model | None = None,
    data: Any = None,
) -> Fit:
    """Return the fit with draws made anew; see :meth:`coremcmc.Fit.sample`."""
    for name, value, least in (
        ("num_draws", num_draws, 1),
        ("num_chains", num_chains, 1),
        ("num_warmup", num_warmup, 1),
    ):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise ValueError(f"{name} must be an integer of at least {least}, not {value!r}.")
    model = _model_of(fit, model)
    if kernel is None:
        kernel = "nuts" if model.is_continuous else model.default_kernel
    if kernel == "nuts" and not model.is_continuous:
        raise ValueError(
            f"kernel='nuts' moves unconstrained reals only, and {type(model).__name__} has other "
            f"parameters. Use kernel={model.default_kernel!r}."
        )
    if isinstance(kernel, str) and kernel not in ("nuts", *KERNELS):
        raise ValueError(f"kernel={kernel!r} is unknown; choose from nuts, {', '.join(KERNELS)}.")
    with jax.enable_x64(True):
        stored = _stored_rows(fit, model, data)
        weights = jnp.asarray(fit.coreset.weights)
        target, like = _prepare(model, stored, weights)
        positions = unflatten(_starts(fit, num_chains, seed), like)
        key = jax.random.key(seed)
        if isinstance(kernel, str) and kernel == "nuts":
            dense = fit.positions.shape[-1] <= _LARGEST_DENSE
            draws, stats = _nuts(key, target, positions, num_draws, num_warmup, dense)
        else:
            chosen = KERNELS[kernel]() if isinstance(kernel, str) else kernel
            draws, *_ = sample_target(
                chosen, key, target, positions, num_draws=num_draws, num_warmup=num_warmup
            )
            stats = {}
        draws = np.asarray(draws)
        densities = _log_densities(target, unflatten(draws.reshape(-1, draws.shape[-1]), like))
        stats["lp"] = np.asarray(densities).reshape(draws.shape[:2])
        named = named_draws(model, draws, like)
    result = dataclasses.replace(
        fit,
        sampled_positions=draws,
        sampled={name: np.swapaxes(x, 0, 1) for name, x in named.items()},
        sample_stats={name: np.swapaxes(np.asarray(x), 0, 1) for name, x in stats.items()},
        model=model,
    )
    _warn(result)
    return result


def _model_of(fit: Fit, model: Model | None) -> Model:
    if model is None:
        model = fit.model
    if model is None:
        raise ValueError(
            "a fit that was loaded from a file does not hold its model. Pass model=, the one that "
            f"it was made with: {fit.config['model']}."
        )
    if model.describe() != fit.config["model"]:
        raise ValueError(
            f"model is not the one that the fit was made with: {model.describe()} here, "
            f"{fit.config['model']} there."
        )
    if not fit.sampled and not len(fit.positions):
        raise ValueError("the fit has no draws to start from. Train it first.")
    return model


def _stored_rows(fit: Fit, model: Model, data: Any) -> Rows:
    """The coreset's rows in the model's own structure, from the data where names do not tell it."""
    if data is not None:
        return as_data_source(data, model).take(fit.coreset.indices)
    rows = fit.coreset.rows
    is_ambiguous = any("." in name or name.isdigit() for name in rows) or set(rows) == {"data"}
    if model.fields or not is_ambiguous:
        return dict(rows)
    raise ValueError(
        "the rows of this model are not a mapping of names to arrays, so that its coreset alone "
        "does not tell their structure. Pass data=, those that the fit was made from."
    )


@functools.partial(jax.jit, static_argnums=0)
def _prepare(model: Model, stored: Rows, weights: Float[Array, " M"]) -> tuple[Target, Position]:
    rows = model.prepare_rows(jax.tree.map(jnp.asarray, stored))
    like = model.initial_position(jax.random.key(0), rows)
    return Target(model, rows, weights), jax.tree.map(lambda x: x.astype(float), like)


def _starts(fit: Fit, num_chains: int, seed: int) -> np.ndarray:
    """Draws of the fit, chosen at random from the latter half."""
    draws = fit.sampled_positions if fit.sampled else fit.positions[len(fit.positions) // 2 :]
    flat = draws.reshape(-1, draws.shape[-1])
    chosen = np.random.default_rng([seed, 4]).choice(
        len(flat), num_chains, replace=len(flat) < num_chains
    )
    return flat[chosen]


@functools.partial(jax.jit, static_argnums=(3, 4, 5))
def _nuts(
    rng_key: PRNGKey,
    target: Target,
    positions: Position,
    num_draws: int,
    num_warmup: int,
    dense: bool,
) -> tuple[Float[Array, "num_draws K D"], dict[str, Array]]:
    """BlackJAX's NUTS: window adaptation for each chain, then draws."""
    import blackjax

    def one_chain(key, position):
        key_warmup, key_draws = jax.random.split(key)
        adaptation = blackjax.window_adaptation(
            blackjax.nuts, target, is_mass_matrix_diagonal=not dense
        )
        (state, parameters), _ = adaptation.run(key_warmup, position, num_warmup)
        sampler = blackjax.nuts(target, **parameters)

        def advance(state, key):
            state, info = sampler.step(key, state)
            stats = {
                "diverging": info.is_divergent,
                "acceptance_rate": info.acceptance_rate,
                "n_steps": info.num_integration_steps,
            }
            return state, (state.position, stats)

        return jax.lax.scan(advance, state, jax.random.split(key_draws, num_draws))[1]

    num_chains = jax.tree.leaves(positions)[0].shape[0]
    drawn, stats = jax.vmap(one_chain)(jax.random.split(rng_key, num_chains), positions)
    flat = jax.vmap(flat_positions)(drawn)
    return jnp.swapaxes(flat, 0, 1), jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), stats)


@jax.jit
def _log_densities(target: Target, positions: Position) -> Float[Array, " draws"]:
    return jax.lax.map(target, positions)


def _warn(fit: Fit) -> None:
    diverging = int(fit.sample_stats.get("diverging", np.zeros(1)).sum())
    if diverging:
        warnings.warn(
            f"{diverging} of the draws diverged: the posterior has corners that NUTS does not get "
            "into. Reparametrise the model, or compare with kernel='whitened_slice'.",
            stacklevel=4,
        )
    draws = fit.sampled_positions
    enough = draws.shape[0] >= _FEWEST and draws.shape[1] > 1
    if enough and (rhat := split_rhat(draws)) > _DISAGREE:
        warnings.warn(
            f"the chains disagree (R-hat {rhat:.2f}). Raise num_warmup or num_draws.", stacklevel=4
        )
