"""The posterior, one entry for each number in it."""

import dataclasses
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coremcmc.certificate.certificate import Certificate, reweighted
from coremcmc.diagnostics import convergence
from coremcmc.fitting.result import Fit
from coremcmc.pytrees import coordinate_names

__all__ = [
    "FEWEST_ESS",
    "MOST_RHAT",
    "Parameter",
    "beside_the_full_posterior",
    "is_worrying",
    "on_their_scale",
    "parameters_of",
    "position_draws",
    "telling",
]

MOST_RHAT, FEWEST_ESS = 1.01, 400  # what Vehtari et al. (2021) ask for
_TOLERANCE = 1e-6  # of a linear relation, in sds of the parameter
_MOST_COORDINATES = 300  # for which combinations are looked for
_FEW_DRAWS = 200  # show that one number is a multiple of another; more would only cost time
_FEWEST_DRAWS = 8


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
    corrected_mean, corrected_sd
        Of the full posterior, by the certificate's importance weights; NaN where nothing is known.
    laplace_mean, laplace_sd
        Of the Gaussian at the full posterior's mode; NaN likewise.
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


def parameters_of(fit: Fit, most: int, *, is_telling: bool = False) -> tuple[list[Parameter], int]:
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


def beside_the_full_posterior(fit: Fit, parameters: Sequence[Parameter]) -> list[Parameter]:
    """Fill in what the certificate says of parameters: corrected and Laplace mean and sd.

    The certificate's importance weights correct any function of its draws. Where the fit has other
    draws by now (``fit.sample``), and for Laplace, its numbers are moved to the parameters' scale.
    """
    found = fit.certificate
    if found is None or not parameters:
        return list(parameters)
    positions = position_draws(fit)
    positions = np.asarray(positions, float).reshape(-1, positions.shape[2])
    named = np.stack([p.draws.T.ravel() for p in parameters], axis=1)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if found.importance is not None and _are_judged(positions, found):
            corrected = reweighted(named, found.importance)
        else:
            corrected = on_their_scale(named, positions, found.corrected_mean, found.corrected_sd)
        laplace = on_their_scale(named, positions, found.laplace_mean, found.laplace_sd)
    names = ("corrected_mean", "corrected_sd", "laplace_mean", "laplace_sd")
    columns = np.stack([*corrected, *laplace], axis=1).tolist()
    return [
        dataclasses.replace(p, **dict(zip(names, values, strict=True)))
        for p, values in zip(parameters, columns, strict=True)
    ]


def position_draws(fit: Fit) -> np.ndarray:
    """Return the draws of ``fit.posterior`` as vectors: draws × chains × coordinates."""
    return fit.sampled_positions if fit.sampled else fit.latter_positions


def _are_judged(positions: np.ndarray, certificate: Certificate) -> bool:
    """Whether these are the draws that the certificate was made from, told by their means."""
    if positions.shape[1:] != certificate.mean.shape:
        return False
    off = np.abs(positions.mean(axis=0) - certificate.mean)
    return bool((off <= 1e-9 * certificate.sd).all())


def on_their_scale(
    named: np.ndarray, positions: np.ndarray, mean: np.ndarray | None, sd: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Move means and sds of coordinates to the scale of named parameters.

    Which parameter is a multiple of a coordinate plus a constant is read off the draws, so that no
    model has to tell; it gets mean and sd. A linear combination of several gets the mean. Others
    (σ of log σ²) get NaN.

    Parameters
    ----------
    named, positions
        The same draws in both forms: draws × parameters, draws × coordinates.
    mean, sd
        Of the coordinates; None where nothing is known.
    """
    unknown, dimension = np.full(named.shape[1], np.nan), positions.shape[1]
    if mean is None or sd is None or mean.shape != (dimension,):
        return unknown, unknown
    can_combine = dimension <= _MOST_COORDINATES
    enough = max(_FEW_DRAWS, 3 * (dimension + 1)) if can_combine else _FEW_DRAWS
    some = np.linspace(0, len(named) - 1, min(len(named), enough)).astype(int)
    some = some[np.isfinite(positions[some]).all(axis=1) & np.isfinite(named[some]).all(axis=1)]
    if len(some) < _FEWEST_DRAWS:
        return unknown, unknown
    x, x_mean, x_sd = _standardized(positions[some])
    y, y_mean, y_sd = _standardized(named[some])
    offset = (mean - x_mean) / x_sd
    correlation = y.T @ x / len(x)
    own = np.argmax(np.abs(correlation), axis=1)
    sign = correlation[np.arange(len(own)), own]
    is_multiple = 1.0 - np.abs(sign) <= 0.5 * _TOLERANCE**2
    moved_mean = np.where(is_multiple, y_mean + y_sd * sign * offset[own], np.nan)
    moved_sd = np.where(is_multiple, y_sd * (sd / x_sd)[own], np.nan)
    if can_combine and len(x) >= 2 * (dimension + 1):
        slopes, *_ = np.linalg.lstsq(x, y, rcond=None)
        is_linear = np.abs(y - x @ slopes).max(axis=0) <= _TOLERANCE
        is_linear &= ~is_multiple & np.any(y, axis=0)
        moved_mean = np.where(is_linear, y_mean + y_sd * (offset @ slopes), moved_mean)
    return moved_mean, moved_sd


def _standardized(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return columns less their means, in sds, with both; what never varies is left at zero."""
    mean, sd = values.mean(axis=0), values.std(axis=0)
    sd = np.where(sd > 0, sd, 1.0)
    return (values - mean) / sd, mean, sd


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
