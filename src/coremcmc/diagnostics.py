"""Numbers that judge a run."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = [
    "average_squared_z",
    "convergence",
    "coordinate_names",
    "latter_half_means",
    "pareto_smooth",
    "split_rhat",
]

_FEWEST_WEIGHTS = 25  # a fifth of them are the tail, which must have five


def average_squared_z(mean: Any, reference_mean: Any, reference_sd: Any) -> Any:
    """Average over coordinates of ((μ_i − μ̂_i) / σ_i)², the paper's measure of error.

    The last axis runs over coordinates; leading axes of ``mean`` (a trace) remain.
    """
    z = (np.asarray(reference_mean) - np.asarray(mean)) / np.asarray(reference_sd)
    return np.mean(z * z, axis=-1)


def latter_half_means(iteration: np.ndarray, position_sum: np.ndarray) -> np.ndarray:
    """Mean of the latter half of all draws so far, at each record.

    ``position_sum`` holds sums over all iterations up to each record, so that a mean over the
    latter half is a difference of two of them. Where half of t is not itself a record, the half
    begins at the last record before it.
    """
    starts = np.concatenate([[0], iteration])
    sums = np.concatenate([np.zeros((1, position_sum.shape[1])), position_sum])
    begin = np.searchsorted(starts, iteration / 2, side="right") - 1
    return (position_sum - sums[begin]) / (iteration - starts[begin])[:, None]


def coordinate_names(shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    """Name every coordinate of named arrays: ``beta[0]``, ``beta[1]``, …, ``sigma``."""
    names = []
    for name, shape in shapes.items():
        for index in np.ndindex(*shape):
            names.append(f"{name}[{','.join(map(str, index))}]" if shape else name)
    return names


def split_rhat(draws: np.ndarray) -> float:
    """Largest split R-hat over coordinates of draws × chains × coordinates.

    A coordinate that is constant everywhere counts as agreed upon.
    """
    half = draws.shape[0] // 2
    halves = np.concatenate([draws[:half], draws[half : 2 * half]], axis=1)
    within = halves.var(axis=0, ddof=1).mean(axis=0)
    between = halves.mean(axis=0).var(axis=0, ddof=1)
    moving = (within > 0) | (between > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        rhat = np.sqrt((half - 1) / half + between / within)
    return float(np.max(np.where(moving, rhat, 1.0)))


def convergence(draws: np.ndarray) -> tuple[float, float]:
    """Bulk effective sample size and R-hat of chains × draws; NaN where there are too few."""
    if draws.shape[1] < 4 or np.ptp(draws) == 0:
        return float("nan"), float("nan")
    statistics = _array_stats()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that there are more chains than draws
        return float(statistics.ess(draws)), float(statistics.rhat(draws))


def pareto_smooth(log_weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Pareto-smoothed log importance weights, and the k-hat of their tail.

    Where they are few, or the largest all alike, there is no tail to be seen: k-hat is infinite.
    """
    log_weights = np.asarray(log_weights)
    if len(log_weights) < _FEWEST_WEIGHTS:
        return log_weights, float("inf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the caller judges by k-hat
        try:
            # It takes log-likelihoods to leave out: the negative of log weights.
            smoothed, k = _array_stats().psislw(-log_weights)
        except ValueError:  # all alike
            return log_weights, float("inf")
    return np.asarray(smoothed), float(k)


def _array_stats() -> Any:
    """Import ArviZ's statistics of plain arrays: half the time that all of ArviZ takes."""
    from arviz_stats.base import array_stats

    return array_stats
