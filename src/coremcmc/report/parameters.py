"""The posterior, one entry for each number in it."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coremcmc.diagnostics import convergence
from coremcmc.pytrees import coordinate_names
from coremcmc.report.comparisons import Comparison, compare, draws_needed

__all__ = ["MOST_RHAT", "Parameter", "is_worrying", "parameters_of", "telling"]

MOST_RHAT, FEWEST_ESS = 1.01, 400  # what Vehtari et al. (2021) ask for


@dataclass(frozen=True, eq=False)
class Parameter:
    """A number of the posterior.

    Attributes
    ----------
    name
        ``beta[0]``, ``sigma``, …
    draws
        Chains × draws.
    mean, sd, low, high
        Of the coreset posterior; the last two hold 90 % of it.
    ess, rhat
        Bulk effective sample size and R-hat; NaN where there are too few draws.
    corrected_mean, corrected_sd, laplace_mean, laplace_sd
        See :class:`coremcmc.report.comparisons.Comparison`; NaN where nothing is known.
    coordinate
        The coordinate of the certificate that this is a multiple of, or −1.
    """

    name: str
    draws: np.ndarray
    mean: float
    sd: float
    low: float
    high: float
    ess: float
    rhat: float
    corrected_mean: float = math.nan
    corrected_sd: float = math.nan
    laplace_mean: float = math.nan
    laplace_sd: float = math.nan
    coordinate: int = -1


def parameters_of(fit: Any, most: int, *, is_telling: bool = False) -> tuple[list[Parameter], int]:
    """Return some parameters of a fit's posterior, and how many there are in all.

    Parameters
    ----------
    most
        How many to return.
    is_telling
        Whether to return those that lie furthest from zero in sds, and not the first ones, where
        there are more.
    """
    posterior = fit.posterior
    flat = [
        np.asarray(x, float).reshape(*x.shape[:2], math.prod(x.shape[2:]))
        for x in posterior.values()
    ]
    total = sum(x.shape[2] for x in flat)
    if not flat or flat[0].shape[1] == 0:
        return [], total
    chosen = np.arange(total)[:most]
    if is_telling and total > most:
        mean = np.concatenate([x.mean(axis=(0, 1)) for x in flat])
        sd = np.concatenate([x.std(axis=(0, 1)) for x in flat])
        chosen = _furthest(mean, sd, most)
    all_names = coordinate_names({name: x.shape[2:] for name, x in posterior.items()})
    names, columns = [all_names[i] for i in chosen], _columns(flat, chosen)
    found = _comparison(fit, columns)
    parameters = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of draws that are not finite; the report says so
        for i, name in enumerate(names):
            draws = columns[:, :, i]
            low, high = np.quantile(draws, [0.05, 0.95])
            own_sd = draws.std(ddof=1) if draws.size > 1 else math.nan
            ess, rhat = convergence(draws)
            parameters.append(
                Parameter(
                    name,
                    draws,
                    float(draws.mean()),
                    float(own_sd),
                    float(low),
                    float(high),
                    ess,
                    rhat,
                    float(found.corrected_mean[i]),
                    float(found.corrected_sd[i]),
                    float(found.laplace_mean[i]),
                    float(found.laplace_sd[i]),
                    int(found.coordinate[i]),
                )
            )
    return parameters, total


def _columns(parts: Sequence[np.ndarray], chosen: np.ndarray) -> np.ndarray:
    """Take some of the columns of chains × draws × columns that lie behind each other."""
    found, start = [], 0
    for part in parts:
        inside = (chosen >= start) & (chosen < start + part.shape[2])
        found.append(part[:, :, chosen[inside] - start])
        start += part.shape[2]
    return np.concatenate(found, axis=2)


def _comparison(fit: Any, columns: np.ndarray) -> Comparison:
    """Compare with the certificate, by some draws, evenly spaced over all chains."""
    positions = fit.sampled_positions if fit.sampled else fit.positions[len(fit.positions) // 2 :]
    num_chains, num_draws, _ = columns.shape
    size = num_chains * num_draws
    some = np.linspace(0, size - 1, min(size, draws_needed(positions.shape[2]))).astype(int)
    chain, draw = np.divmod(some, num_draws)
    return compare(columns[chain, draw], np.asarray(positions[draw, chain], float), fit.verdict)


def is_worrying(parameter: Parameter) -> bool:
    """Whether the chains say too little about it."""
    return parameter.rhat > MOST_RHAT or parameter.ess < FEWEST_ESS


def telling(parameters: Sequence[Parameter], most: int) -> list[Parameter]:
    """Choose what to draw: all, or those that lie furthest from zero in sds, in their order."""
    if len(parameters) <= most:
        return list(parameters)
    mean, sd = (np.array([getattr(p, name) for p in parameters]) for name in ("mean", "sd"))
    return [parameters[i] for i in _furthest(mean, sd, most)]


def _furthest(mean: np.ndarray, sd: np.ndarray, most: int) -> np.ndarray:
    """Return the places with the largest |mean|/sd, in their order."""
    with np.errstate(all="ignore"):
        distance = np.where(sd > 0, np.abs(mean) / np.where(sd > 0, sd, 1.0), 0.0)
    distance = np.where(np.isfinite(distance), distance, 0.0)
    return np.sort(np.argsort(-distance, kind="stable")[:most])
