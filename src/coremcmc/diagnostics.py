"""Numbers that judge a run."""

import warnings
from typing import Any

import numpy as np

__all__ = [
    "average_squared_z",
    "convergence",
    "effective_draws",
    "latter_half_means",
    "pareto_smooth",
    "split_rhat",
]

_WORST_COORDINATES = 4
_ALIKE = 1e-6  # of log weights, which are differences of large numbers
_LOG_TINY = float(np.log(np.finfo(float).tiny))
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


def effective_draws(positions: np.ndarray) -> float:
    """Effective number of draws × chains × coordinates, of the coordinates that agree least."""
    if positions.shape[0] < 4:  # too few to tell how they depend on one another
        return float(positions.shape[0] * positions.shape[1])
    chains = np.swapaxes(positions, 0, 1)
    spread = chains.mean(axis=1).std(axis=0) / np.maximum(chains.std(axis=(0, 1)), 1e-300)
    worst = np.argsort(spread)[-_WORST_COORDINATES:]
    found = [convergence(chains[:, :, i])[0] for i in worst]
    return float(np.nanmin(found)) if np.isfinite(found).any() else 0.0


def pareto_smooth(log_weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Pareto-smoothed log importance weights, and the k-hat of their tail.

    Where they are few, or the largest all alike, or one is all there is, no tail is to be seen:
    k-hat is infinite. Where all are alike, it is zero.
    """
    # Weights that underflow to zero would make the fit of the tail a fit to nothing.
    log_weights = np.maximum(log_weights - np.max(log_weights), _LOG_TINY)
    if len(log_weights) < _FEWEST_WEIGHTS:
        return log_weights, float("inf")
    if np.min(log_weights) > -_ALIKE:
        return log_weights, 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the caller judges by k-hat
        try:
            # It takes log-likelihoods to leave out: the negative of log weights.
            smoothed, k = _array_stats().psislw(-log_weights)
        except ValueError:  # all alike
            return log_weights, float("inf")
    is_sound = np.isfinite(smoothed).all() and np.isfinite(k)
    return (np.asarray(smoothed), float(k)) if is_sound else (log_weights, float("inf"))


def _array_stats() -> Any:
    """Import ArviZ's statistics of plain arrays: half the time that all of ArviZ takes."""
    from arviz_stats.base import array_stats

    return array_stats
