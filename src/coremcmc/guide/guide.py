"""What a few passes over the data teach before training: the guide of the default preset.

The mode and the curvature there, which rows matter, and weights to start from.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import jax
import numpy as np

from coremcmc.base import DataSource, Model, Position
from coremcmc.fitting.settings import Settings, within_bound
from coremcmc.gradient.control_passes import BLOCK_ROWS, NUM_EXACT, Largest, make_control, spreads
from coremcmc.gradient.control_variate import ControlVariate, EstimatedSums
from coremcmc.guide.importance import near_posterior
from coremcmc.guide.least_squares_weights import NUM_DRAWS, enough_rows, fitted_weights
from coremcmc.posterior.mode import (
    Laplace,
    NoModeError,
    first_position,
    is_too_large,
    laplace_approximation,
)
from coremcmc.pytrees import flatten, unflatten
from coremcmc.selection import Selected

__all__ = ["Guide", "consult", "make_guide"]

_FITTED = "least_squares"
_SPREAD_DRAWS, _FEW_SPREAD_DRAWS, _MANY_ROWS = 32, 12, 200_000


@dataclass(frozen=True)
class Guide:
    """What the passes taught.

    Attributes
    ----------
    laplace
        The mode of the full posterior and the curvature there.
    exact
        Indices, ascending, of the rows with the largest Taylor remainders.
    chosen
        The coreset's rows: half of them uniform, half in proportion to how much their
        log-likelihood varies over the posterior.
    variance_ratio
        Variance of a row's log-likelihood over that of what the control variate leaves of it,
        exact rows excluded: the factor by which the estimate of the total improves.
    remaining_variance
        Σ over all rows but the exact ones of the latter variance.
    """

    laplace: Laplace
    exact: np.ndarray
    chosen: Selected
    variance_ratio: float
    remaining_variance: float

    def begin(
        self,
        model: Model,
        data: DataSource,
        settings: Settings,
        selected: Selected,
        seed: int,
        given: Position | None,
    ) -> tuple[Selected, ControlVariate | None, Position]:
        """Return the weights to start from, the control variate, and where the chains start."""
        rng = np.random.default_rng([seed, 3])
        control = self.control(model, data)
        size = enough_rows(data.num_rows, self.remaining_variance)
        some = np.sort(rng.choice(data.num_rows, size, replace=False))
        sums = EstimatedSums(model, data, control, some)
        draws = near_posterior(self.laplace, sums.with_priors, rng, NUM_DRAWS)
        if isinstance(settings.initial_weights, str) and settings.initial_weights == _FITTED:
            rows = data.take(selected.indices)
            like = self.laplace.position
            weights = fitted_weights(model, rows, draws, like, selected.weights)
            selected = selected._replace(weights=within_bound(settings, weights))
        if given is None:
            given = unflatten(draws.resample(rng, settings.num_chains), self.laplace.position)
        return selected, control if settings.control_variate else None, given

    def control(self, model: Model, data: DataSource) -> ControlVariate:
        """Return the control variate, with its exact rows, off where it would not help."""
        return make_control(
            model,
            data,
            self.laplace.position,
            self.laplace.likelihood,
            self.exact,
            self.variance_ratio,
        )


def consult(
    model: Model,
    data: DataSource,
    settings: Settings,
    coreset_size: int,
    seed: int,
    progress: Callable[[int], None] | None = None,
) -> tuple[Settings, Guide | None]:
    """Make the passes that the settings ask for; without a mode, say so and do without."""
    if not settings.is_guided:
        return settings, None
    few = data.take(np.arange(min(2, data.num_rows)))
    start = first_position(model, few, seed)
    try:
        rng = np.random.default_rng([seed, 2])
        return settings, make_guide(model, data, coreset_size, start, rng, progress)
    except NoModeError as error:
        warnings.warn(
            f"{error} Going on without it: uniform rows, plain subsampling, and a kernel that "
            "needs no gradient.",
            stacklevel=3,
        )
        return settings.without_guide(model, is_too_large(len(flatten(start)))), None


def make_guide(
    model: Model,
    data: DataSource,
    coreset_size: int,
    start: Position,
    rng: np.random.Generator,
    progress: Callable[[int], None] | None = None,
) -> Guide:
    """Make the passes; :class:`coremcmc.posterior.mode.NoModeError` where there is no mode."""
    laplace = laplace_approximation(model, data, start, progress=progress)
    num_rows = data.num_rows
    num_draws = _SPREAD_DRAWS if num_rows <= _MANY_ROWS else _FEW_SPREAD_DRAWS
    draws = unflatten(laplace.draw(rng, num_draws), laplace.position)
    half = coreset_size // 2
    uniform = np.sort(rng.choice(num_rows, coreset_size - half, replace=False))
    largest = Largest(min(NUM_EXACT, num_rows))
    informed, widest = Largest(half), Largest(half)
    total = np.zeros(3)  # Σ sd(ℓ_n), Σ var(ℓ_n), Σ var(remainder_n)
    for start_row, rows in data.blocks(min(BLOCK_ROWS, num_rows)):
        count = len(jax.tree.leaves(rows)[0])
        variance, remainder = spreads(model, laplace.position, draws, rows, num_rows)
        sd = np.sqrt(variance)
        index = np.arange(start_row, start_row + count)
        total += sd.sum(), variance.sum(), remainder.sum()
        largest.add(remainder, index, remainder)
        widest.add(sd, index, sd)
        # Efraimidis and Spirakis: the largest of log(u)/s are a draw without replacement in
        # proportion to s. Rows of the uniform half are passed over.
        keys = np.log(rng.random(count)) / np.maximum(sd, 1e-150)
        others = ~np.isin(index, uniform, assume_unique=True)
        informed.add(keys[others], index[others], sd[others])
        if progress is not None:
            progress(start_row + count)
    exact = np.sort(largest.index)
    chosen = np.concatenate([uniform, informed.index])
    order = np.argsort(chosen)
    variance, _ = spreads(model, laplace.position, draws, data.take(chosen), num_rows)
    counts = _expected_counts(np.sqrt(variance), half, total[0], np.sort(widest.values)[::-1])
    weights = 1.0 / np.minimum((coreset_size - half) / num_rows + counts, 1.0)
    left = max(total[2] - largest.values.sum(), 0.0)
    ratio = float(total[1] / left) if left > 0 else np.inf
    return Guide(laplace, exact, Selected(chosen[order], weights[order]), ratio, left)


def _expected_counts(sd: np.ndarray, size: int, total: float, widest: np.ndarray) -> np.ndarray:
    """Expected counts of rows in a draw of ``size`` in proportion to their sd, without replacement.

    A row whose share would exceed one is taken once, and the others share what is left. ``widest``
    holds the largest sds, descending, ``total`` the sum of all.
    """
    certain = 0
    for value in widest:
        if total <= 0 or (size - certain) * value < total:
            break
        certain, total = certain + 1, total - value
    sure = sd >= widest[certain - 1] if certain else np.zeros(sd.shape, bool)
    rest = (size - certain) * sd / total if total > 0 else np.zeros_like(sd)
    return np.where(sure, 1.0, np.minimum(rest, 1.0))
