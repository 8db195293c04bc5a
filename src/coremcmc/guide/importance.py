"""Weighted draws near the full posterior, before any chain has run.

The Laplace approximation proposes, an estimate of the full log posterior weighs. Where the two
disagree much, the proposal is fitted anew to the weighted draws.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from coremcmc.posterior.mode import Laplace

__all__ = ["Weighted", "near_posterior"]

_ROUNDS = 4
_ENOUGH = 0.5  # effective share of the draws with which a proposal is kept
_KEPT = 0.2  # effective share that tempering leaves for the next proposal
_DRAWS_A_DIMENSION = 2  # effective draws that a covariance needs at least


class Weighted(NamedTuple):
    """Draws and their weights.

    Attributes
    ----------
    positions
        Flattened, one a row.
    weights
        Importance weights, truncated; they average to one.
    totals
        Σ_n ℓ_n at the positions, as estimated, up to a constant.
    """

    positions: np.ndarray
    weights: np.ndarray
    totals: np.ndarray

    @property
    def share(self) -> float:
        """Effective number of draws over their number."""
        return _share(self.weights)

    def resample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Choose distinct draws, by their weights."""
        possible = int((self.weights > 0).sum())
        chosen = rng.choice(
            len(self.weights),
            size,
            replace=possible < size,
            p=self.weights / self.weights.sum(),
        )
        return self.positions[chosen]


def near_posterior(
    laplace: Laplace,
    sums_and_priors: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    rng: np.random.Generator,
    size: int,
) -> Weighted:
    """Draw ``size`` positions and weigh them by the posterior over the proposal.

    ``sums_and_priors`` takes flattened positions, one a row, and returns Σ_n ℓ_n, up to a constant,
    and the log prior at each. Where these are finite at none of them, they count alike.
    """
    mean, precision = laplace.mean, laplace.precision
    best = None
    for _ in range(_ROUNDS):
        lower = np.linalg.cholesky(precision)
        noise = rng.standard_normal((len(mean), size))
        positions = mean + np.linalg.solve(lower.T, noise).T
        proposal = np.log(np.diag(lower)).sum() - 0.5 * np.square(noise).sum(axis=0)
        totals, priors = sums_and_priors(positions)
        log_ratio = totals + priors - proposal
        log_ratio = np.where(np.isfinite(log_ratio), log_ratio, -np.inf)
        found = Weighted(positions, _truncated(log_ratio), totals)
        if best is None or found.share > best.share:
            best = found
        tempered = _tempered(log_ratio)
        too_few = _share(tempered) * size < _DRAWS_A_DIMENSION * len(mean)
        if best.share > _ENOUGH or too_few:
            break
        mean = np.average(positions, axis=0, weights=tempered)
        step = positions - mean
        precision = np.linalg.inv((tempered * step.T) @ step / tempered.sum())
    assert best is not None
    return best if best.share > 0 else best._replace(weights=np.ones(size))


def _truncated(log_ratio: np.ndarray) -> np.ndarray:
    """Importance weights, none above √J times their mean, for a finite variance."""
    if not np.isfinite(log_ratio).any():
        return np.zeros(len(log_ratio))
    weights = np.exp(log_ratio - log_ratio.max())
    weights = np.minimum(weights, weights.mean() * np.sqrt(len(weights)))
    return weights / weights.mean()


def _tempered(log_ratio: np.ndarray) -> np.ndarray:
    """Weights raised to the largest power up to 1 that leaves enough effective draws."""
    if not np.isfinite(log_ratio).any():
        return np.zeros(len(log_ratio))
    shifted = log_ratio - log_ratio.max()
    power = 1.0
    while _share(np.exp(power * shifted)) < _KEPT and power > 1e-6:
        power *= 0.7
    return np.exp(power * shifted)


def _share(weights: np.ndarray) -> float:
    squares = np.square(weights).sum()
    return float(weights.sum() ** 2 / squares / len(weights)) if squares > 0 else 0.0
