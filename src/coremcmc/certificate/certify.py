"""The certificate of a coreset, from draws of its posterior and one pass over the data."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coremcmc.base import DataSource, Model, Position, Rows
from coremcmc.certificate.certificate import Certificate, evenly_spaced, judge, reweighted
from coremcmc.certificate.other_modes import unvisited_mode
from coremcmc.data.passes import full_pass
from coremcmc.diagnostics import effective_draws, pareto_smooth, split_rhat
from coremcmc.gradient.control_variate import ControlVariate, EstimatedSums
from coremcmc.posterior.derivatives import SumOfLogLikelihoods
from coremcmc.posterior.mode import Laplace, ModeSearch
from coremcmc.posterior.target import Target
from coremcmc.pytrees import example_position, prepared, unflatten

__all__ = ["Judging", "certify"]

_MOST_OF_ALL = 0.9


@dataclass(frozen=True)
class Judging:
    """Settings of the certificate.

    Parameters
    ----------
    num_draws, fewest_draws, evaluations
        Draws at which the sums are taken: so many, or as many as keep the pass to so many
        evaluations of a row's log-likelihood, but not fewer than the second number.
    most_rhat
        R-hat above which the chains disagree.
    estimate_rows
        Rows of each of the two subsamples that an estimate in place of the pass takes.
    """

    num_draws: int = 400
    fewest_draws: int = 100
    evaluations: float = 1e8
    most_rhat: float = 1.1
    estimate_rows: int = 1 << 15


def certify(
    model: Model,
    data: DataSource,
    stored_rows: Rows,
    weights: np.ndarray,
    positions: np.ndarray,
    names: list[str],
    laplace: Laplace | None = None,
    *,
    control: ControlVariate | None = None,
    judging: Judging = Judging(),
    search: ModeSearch = ModeSearch(),
    progress: Callable[[int], None] | None = None,
) -> Certificate:
    """Judge a coreset by draws of its posterior and one full pass.

    Parameters
    ----------
    stored_rows, weights
        The coreset.
    positions
        Draws from the coreset posterior: draws × chains × coordinates.
    names
        Of the coordinates.
    laplace
        The Laplace approximation, if there is one.
    judging, search
        Settings.
    control
        A control variate: then the sums are estimated from some rows, and no pass is made.
    progress
        Called with the number of rows done.
    """
    with jax.enable_x64(True):
        return _certify(
            model,
            data,
            stored_rows,
            weights,
            positions,
            names,
            laplace,
            control=control,
            judging=judging,
            search=search,
            progress=progress,
        )


def _certify(
    model: Model,
    data: DataSource,
    stored_rows: Rows,
    weights: np.ndarray,
    positions: np.ndarray,
    names: list[str],
    laplace: Laplace | None,
    *,
    control: ControlVariate | None,
    judging: Judging,
    search: ModeSearch,
    progress: Callable[[int], None] | None,
) -> Certificate:
    shapes = example_position(model, stored_rows)
    like = jax.tree.map(lambda x: jnp.zeros(x.shape), shapes)
    flat = positions.reshape(-1, positions.shape[-1])
    num_draws = int(
        np.clip(judging.evaluations / data.num_rows, judging.fewest_draws, judging.num_draws)
    )
    chosen = flat[evenly_spaced(len(flat), min(num_draws, len(flat)))]
    draws = unflatten(chosen, like)
    if control is None:
        totals = full_pass(data, SumOfLogLikelihoods(model), draws, progress=progress)
        noise_variance = 0.0
    else:
        totals, noise_variance = _estimated(model, data, control, chosen, judging.estimate_rows)
    rows = prepared(model, stored_rows)
    potentials = _potentials(Target(model, rows, jnp.asarray(weights)), draws)
    log_ratio = np.asarray(totals) - np.asarray(potentials)
    log_ratio = log_ratio - log_ratio.mean()
    log_weights, pareto_k = pareto_smooth(log_ratio)
    importance = np.exp(log_weights - log_weights.max())
    importance /= importance.sum()
    if importance.max() > _MOST_OF_ALL:  # one draw has all the weight, and corrects nothing
        pareto_k = float("inf")
    corrected_mean, corrected_sd = reweighted(flat, importance)
    found = Certificate(
        "",
        [],
        float(np.var(log_ratio, ddof=1)),
        float(pareto_k),
        names,
        flat.mean(axis=0),
        flat.std(axis=0, ddof=1),
        corrected_mean,
        corrected_sd,
        None if laplace is None else laplace.mean,
        None if laplace is None else laplace.sd,
        len(chosen),
        noise_variance,
        effective_draws(positions),
        importance,
    )
    if positions.shape[1] > 1 and positions.shape[0] > 3:
        disagreement = split_rhat(positions)
        if disagreement > judging.most_rhat:
            text = (
                f"the chains disagree (R-hat {disagreement:.2f}), so the draws are not those of "
                "one posterior. Draw more (num_draws), train longer (num_iterations), or give the "
                "chains another kernel."
            )
            return dataclasses.replace(found, verdict="poor", reasons=[text])
    other_mode = unvisited_mode(model, stored_rows, weights, flat, search=search)
    verdict, reasons = judge(found, other_mode)
    return dataclasses.replace(found, verdict=verdict, reasons=reasons)


def _estimated(
    model: Model, data: DataSource, control: ControlVariate, flat: np.ndarray, num_rows: int
) -> tuple[np.ndarray, float]:
    """Sums from two subsamples, and the variance over the draws that their difference shows."""
    size = min(num_rows, data.num_rows // 2)
    some = np.random.default_rng(0).choice(data.num_rows, 2 * size, replace=False)
    first, second = (
        EstimatedSums(model, data, control, np.sort(rows))(flat) for rows in np.split(some, 2)
    )
    share = 1.0 - 2 * size / data.num_rows  # of a finite number of rows
    return 0.5 * (first + second), share * float(np.var(first - second, ddof=1)) / 4.0


@jax.jit
def _potentials(target: Target, draws: Position) -> Any:
    return jax.lax.map(
        lambda position: target.log_potential(target.loglikelihoods(position)), draws
    )
