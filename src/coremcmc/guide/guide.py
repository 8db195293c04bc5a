"""What a few passes over the data teach before training: the guide of the default preset.

The mode and the curvature there, which rows matter, and weights to start from.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import numpy as np

from coremcmc.base import DataSource, Model, Position
from coremcmc.gradient.control_passes import ControlPasses, Largest, make_control, spreads
from coremcmc.gradient.control_variate import ControlVariate, EstimatedSums
from coremcmc.guide.importance import near_posterior
from coremcmc.guide.informed_rows import InformedRows
from coremcmc.guide.least_squares_weights import NUM_DRAWS, enough_rows, fitted_weights
from coremcmc.posterior.mode import (
    Laplace,
    ModeSearch,
    first_position,
    laplace_approximation,
)
from coremcmc.pytrees import unflatten
from coremcmc.selection import Selected

__all__ = ["Guide", "consult", "make_guide"]

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
        control: ControlVariate,
        selected: Selected,
        num_chains: int,
        seed: int,
        *,
        fits_weights: bool,
    ) -> tuple[np.ndarray, Position]:
        """Return the weights to start from, and where the chains start."""
        rng = np.random.default_rng([seed, 3])
        size = enough_rows(data.num_rows, self.remaining_variance)
        some = np.sort(rng.choice(data.num_rows, size, replace=False))
        sums = EstimatedSums(model, data, control, some)
        draws = near_posterior(self.laplace, sums.with_priors, rng, NUM_DRAWS)
        weights = selected.weights
        if fits_weights:
            rows = data.take(selected.indices)
            weights = fitted_weights(model, rows, draws, self.laplace.position, weights)
        positions = unflatten(draws.resample(rng, num_chains), self.laplace.position)
        return weights, positions

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
    coreset_size: int,
    seed: int,
    progress: Callable[[int], None] | None = None,
    *,
    search: ModeSearch = ModeSearch(),
    passes: ControlPasses = ControlPasses(),
) -> Guide:
    """Make the passes; :class:`coremcmc.posterior.mode.NoModeError` where there is no mode."""
    few = data.take(np.arange(min(2, data.num_rows)))
    start = first_position(model, few, seed)
    rng = np.random.default_rng([seed, 2])
    return make_guide(model, data, coreset_size, start, rng, progress, search=search, passes=passes)


def make_guide(
    model: Model,
    data: DataSource,
    coreset_size: int,
    start: Position,
    rng: np.random.Generator,
    progress: Callable[[int], None] | None = None,
    *,
    search: ModeSearch = ModeSearch(),
    passes: ControlPasses = ControlPasses(),
) -> Guide:
    """Make the passes; :class:`coremcmc.posterior.mode.NoModeError` where there is no mode."""
    laplace = laplace_approximation(model, data, start, search=search, progress=progress)
    num_rows = data.num_rows
    num_draws = _SPREAD_DRAWS if num_rows <= _MANY_ROWS else _FEW_SPREAD_DRAWS
    draws = unflatten(laplace.draw(rng, num_draws), laplace.position)
    size = min(passes.block_rows, num_rows)
    choice = InformedRows(rng, coreset_size, num_rows)
    largest = Largest(min(passes.num_exact, num_rows))
    total = np.zeros(2)  # Σ var(ℓ_n), Σ var(remainder_n)
    for start_row, rows in data.blocks(size):
        count = len(jax.tree.leaves(rows)[0])
        variance, remainder = spreads(model, laplace.position, draws, rows, size)
        index = np.arange(start_row, start_row + count)
        total += variance.sum(), remainder.sum()
        largest.add(remainder, index, remainder)
        choice.add(index, np.sqrt(variance))
        if progress is not None:
            progress(start_row + count)
    chosen = choice.indices
    variance, _ = spreads(model, laplace.position, draws, data.take(chosen), size)
    left = max(total[1] - largest.values.sum(), 0.0)
    ratio = float(total[0] / left) if left > 0 else np.inf
    exact, selected = np.sort(largest.index), choice.selected(np.sqrt(variance))
    return Guide(laplace, exact, selected, ratio, left)
