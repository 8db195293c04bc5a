"""Draws from the coreset posterior at fixed weights: those of a fit, and more of them."""

import dataclasses
import functools
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from coremcmc.base import Kernel, Model, Position, PRNGKey, Rows, flat_positions
from coremcmc.data import as_data_source
from coremcmc.diagnostics import effective_draws, split_rhat
from coremcmc.fitting.result import Fit
from coremcmc.kernels.blackjax import nuts_draws
from coremcmc.kernels.given import as_kernel
from coremcmc.posterior.target import Target
from coremcmc.pytrees import named_draws, unflatten

__all__ = ["draw_until_mixed", "more_draws", "sample_enough", "sample_target", "with_draws"]

_ENOUGH, _SHARE = 400, 0.1  # effective draws, or a share of the draws where these are few
_MOST_RHAT = 1.02
_MOST_STEPS = 16  # a draw
_DISAGREE = 1.05  # R-hat that is told of,
_FEWEST = 100  # judged from so many draws a chain on
_NUTS = "nuts"


@functools.partial(jax.jit, static_argnames=("kernel", "num_draws", "num_warmup"))
def sample_target(
    kernel: Kernel,
    rng_key: PRNGKey,
    target: Target,
    positions: Position,
    metric: PyTree = None,
    *,
    num_draws: int,
    num_warmup: int,
) -> tuple[Float[Array, "num_draws K D"], Bool[Array, ""], Float[Array, "num_draws K"]]:
    """Run K chains from ``positions``: flattened draws, whether a chain got stuck, log densities.

    A kernel that learns a metric starts from ``metric``, if given, and learns once more at the end
    of the warm-up, whose draws are dropped: what is kept comes from one fixed kernel.
    """

    def advance(carry: Any, xs: Any) -> Any:
        chains, metric, stuck = carry
        key, is_last_of_warmup = xs
        chains, info, metric = kernel.step_chains(key, chains, target, metric)
        metric = jax.lax.cond(
            is_last_of_warmup,
            lambda: kernel.learn_metric(target, chains.position, metric),
            lambda: metric,
        )
        carry = (chains, metric, stuck | info.is_stuck.any())
        density = jax.vmap(target.logdensity)(chains.position, chains.loglikelihoods)
        return carry, (flat_positions(chains.position), density)

    chains = jax.vmap(kernel.init, in_axes=(0, None))(positions, target)
    if metric is None:
        metric = kernel.learn_metric(target, positions)
    start = (chains, metric, jnp.zeros((), bool))
    length = num_warmup + num_draws
    steps = jax.random.split(rng_key, length), jnp.arange(length) == num_warmup - 1
    (_, _, stuck), (draws, densities) = jax.lax.scan(advance, start, steps)
    return draws[num_warmup:], stuck, densities[num_warmup:]


def draw_until_mixed(
    kernel: Kernel,
    rng_key: PRNGKey,
    target: Target,
    positions: Position,
    metric: PyTree,
    *,
    num_draws: int,
    num_warmup: int,
    advanced: Callable[[int], None],
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Run chains on until :func:`sample_enough` has enough: draws, log densities, who got stuck.

    ``advanced`` is told of every so many steps.
    """
    is_stuck, like = False, jax.tree.map(lambda x: np.empty(x.shape[1:]), positions)

    def run_on(call: int) -> tuple[np.ndarray, np.ndarray]:
        nonlocal positions, is_stuck
        draws, stuck, densities = sample_target(
            kernel,
            jax.random.fold_in(rng_key, 2**31 + call),
            target,
            positions,
            metric,
            num_draws=num_draws,
            num_warmup=num_warmup,
        )
        draws, is_stuck = np.asarray(draws), is_stuck or bool(stuck)
        positions = unflatten(draws[-1], like)
        advanced(len(draws))
        return draws, np.asarray(densities)

    return *sample_enough(run_on, num_draws), is_stuck


def sample_enough(
    run_on: Callable[[int], tuple[np.ndarray, np.ndarray]], num_draws: int
) -> tuple[np.ndarray, np.ndarray]:
    """Run chains until they have mixed, and keep ``num_draws`` of each, evenly spaced.

    ``run_on(i)`` continues the chains for ``num_draws`` steps after i calls, and returns draws
    (draws × chains × coordinates) and log densities. While their effective number is too small, or
    the chains disagree, these run on for as long again, up to 16 steps a draw.
    """
    draws, densities = run_on(0)
    steps = 1
    while steps < _MOST_STEPS and not _have_mixed(draws):
        kept = [(draws[1::2], densities[1::2])]
        for call in range(steps, 2 * steps):
            done = np.arange(call * num_draws + 1, (call + 1) * num_draws + 1)
            kept.append(tuple(x[done % (2 * steps) == 0] for x in run_on(call)))
        draws, densities = (np.concatenate(parts) for parts in zip(*kept, strict=True))
        steps *= 2
    return draws, densities


def _have_mixed(draws: np.ndarray) -> bool:
    enough = min(_ENOUGH, _SHARE * draws.shape[0] * draws.shape[1])
    agree = draws.shape[0] < 4 or split_rhat(draws) <= _MOST_RHAT
    return agree and effective_draws(draws) >= enough


def with_draws(
    fit: Fit, model: Model, draws: np.ndarray, like: Position, stats: dict[str, Any]
) -> Fit:
    """Return the fit with these draws and statistics (both draws × chains) in place of its own."""
    named = named_draws(model, draws, like)
    return dataclasses.replace(
        fit,
        sampled_positions=draws,
        sampled={name: np.swapaxes(x, 0, 1) for name, x in named.items()},
        sample_stats={name: np.swapaxes(np.asarray(x), 0, 1) for name, x in stats.items()},
        model=model,
    )


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
    chosen = _kernel_of(model, kernel)
    with jax.enable_x64(True):
        stored = _stored_rows(fit, model, data)
        weights = jnp.asarray(fit.coreset.weights)
        target, like = _prepare(model, stored, weights)
        positions = unflatten(_starts(fit, num_chains, seed), like)
        key = jax.random.key(seed)
        if chosen is None:
            draws, stats = nuts_draws(key, target, positions, num_draws, num_warmup)
        else:
            draws, *_ = sample_target(
                chosen, key, target, positions, num_draws=num_draws, num_warmup=num_warmup
            )
            stats = {}
        draws = np.asarray(draws)
        densities = _log_densities(target, unflatten(draws.reshape(-1, draws.shape[-1]), like))
        stats["lp"] = np.asarray(densities).reshape(draws.shape[:2])
        result = with_draws(fit, model, draws, like, stats)
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


def _kernel_of(model: Model, kernel: Any) -> Kernel | None:
    """Return the kernel that is asked for; None for NUTS, which has a warm-up of its own."""
    if kernel is None:
        kernel = _NUTS if model.is_continuous else model.default_kernel
    if not (isinstance(kernel, str) and kernel == _NUTS):
        return as_kernel(kernel, also=(_NUTS,))
    if not model.is_continuous:
        raise ValueError(
            f"kernel='nuts' moves unconstrained reals only, and {type(model).__name__} has other "
            f"parameters. Use kernel={model.default_kernel!r}."
        )
    return None


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
