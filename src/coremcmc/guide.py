"""What a few passes over the data teach before training: the guide of the default preset.

The mode and the curvature there, which rows matter, and weights to start from.
"""

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coremcmc.base import DataSource, Model, Position, Rows
from coremcmc.control_variates import ControlVariate, row_spreads
from coremcmc.derivatives import prepared
from coremcmc.flat import unflatten
from coremcmc.laplace import Laplace, NoModeError, laplace_approximation
from coremcmc.least_squares import nonnegative_ridge
from coremcmc.selection import Selected
from coremcmc.settings import Settings, within_bound

__all__ = ["Guide", "consult", "make_guide"]

_FITTED = "least_squares"
_SPREAD_DRAWS, _FEW_SPREAD_DRAWS, _MANY_ROWS = 32, 12, 200_000
_FIT_DRAWS = 600
_CHECK_DRAWS = 200
_NUM_EXACT = 500
_BLOCK_ROWS = 1 << 14
_RIDGE = 1e-7  # relative to the mean square of a row's log-likelihoods


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
    """

    laplace: Laplace
    exact: np.ndarray
    chosen: Selected
    variance_ratio: float

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
        if isinstance(settings.initial_weights, str) and settings.initial_weights == _FITTED:
            rows = data.take(selected.indices)
            weights = self.start_weights(model, rows, rng, selected.weights)
            selected = selected._replace(weights=within_bound(settings, weights))
        positions = self.positions(rng, settings.num_chains) if given is None else given
        use = settings.control_variate and self.variance_ratio > 1.0
        return selected, self.control(model, data) if use else None, positions

    def control(self, model: Model, data: DataSource) -> ControlVariate:
        """Return the control variate, with its exact rows."""
        rows = prepared(model, data.take(self.exact))
        likelihood = self.laplace.likelihood
        return ControlVariate(
            jax.tree.map(jnp.asarray, self.laplace.position),
            jnp.asarray(likelihood.gradient),
            jnp.asarray(likelihood.hessian),
            rows,
            jnp.asarray(self.exact),
        )

    def positions(self, rng: np.random.Generator, size: int) -> Position:
        """Draw starting positions from the Laplace approximation, as a pytree of arrays."""
        return unflatten(self.laplace.draw(rng, size), self.laplace.position)

    def start_weights(
        self, model: Model, stored_rows: Rows, rng: np.random.Generator, weights: np.ndarray
    ) -> np.ndarray:
        """Return least-squares weights, or the given ones where those leave a smaller residual.

        The target is the full-data quadratic at the mode, so that no further pass is needed; the
        residual is judged on draws that the fit has not seen.
        """
        size = _FIT_DRAWS + _CHECK_DRAWS
        flat = self.laplace.draw(rng, size)
        terms = np.asarray(_coreset_terms(model, stored_rows, self.laplace.position, flat))
        step = flat - self.laplace.mean
        likelihood = self.laplace.likelihood
        target = step @ np.asarray(likelihood.gradient)
        target += 0.5 * np.einsum("ji,ik,jk->j", step, np.asarray(likelihood.hessian), step)
        fit, check = slice(0, _FIT_DRAWS), slice(_FIT_DRAWS, size)
        shift = terms[fit].mean(axis=0), target[fit].mean()
        terms, target = terms - shift[0], target - shift[1]
        ridge = _RIDGE * float(np.mean(np.sum(terms[fit] ** 2, axis=0)))
        solved = nonnegative_ridge(terms[fit], target[fit], weights, ridge)

        def residual(w):
            return np.var(terms[check] @ w - target[check])

        return solved if residual(solved) < residual(weights) else weights


def consult(
    model: Model, data: DataSource, settings: Settings, coreset_size: int, seed: int
) -> tuple[Settings, Guide | None]:
    """Make the passes that the settings ask for; without a mode, say so and do without."""
    if not settings.is_guided:
        return settings, None
    few = data.take(np.arange(min(2, data.num_rows)))
    start = _start(model, few, seed)
    try:
        rng = np.random.default_rng([seed, 2])
        return settings, make_guide(model, data, coreset_size, start, rng)
    except NoModeError as error:
        warnings.warn(
            f"{error} Going on without it: uniform rows, plain subsampling, and a kernel that "
            "needs no gradient.",
            stacklevel=3,
        )
        return settings.without_guide(model), None


def make_guide(
    model: Model,
    data: DataSource,
    coreset_size: int,
    start: Position,
    rng: np.random.Generator,
    progress: Callable[[int], None] | None = None,
) -> Guide:
    """Make the passes. Raises :class:`coremcmc.laplace.NoModeError` where there is no mode."""
    laplace = laplace_approximation(model, data, start, progress=progress)
    num_rows = data.num_rows
    num_draws = _SPREAD_DRAWS if num_rows <= _MANY_ROWS else _FEW_SPREAD_DRAWS
    draws = unflatten(laplace.draw(rng, num_draws), laplace.position)
    half = coreset_size // 2
    uniform = np.sort(rng.choice(num_rows, coreset_size - half, replace=False))
    largest = _Largest(min(_NUM_EXACT, num_rows))
    informed, widest = _Largest(half), _Largest(half)
    total = np.zeros(3)  # Σ sd(ℓ_n), Σ var(ℓ_n), Σ var(remainder_n)
    for start_row, rows in data.blocks(min(_BLOCK_ROWS, num_rows)):
        count = len(jax.tree.leaves(rows)[0])
        variance, remainder = _spreads(model, laplace.position, draws, rows, num_rows)
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
    exact = np.sort(largest.index)
    chosen = np.concatenate([uniform, informed.index])
    order = np.argsort(chosen)
    variance, _ = _spreads(model, laplace.position, draws, data.take(chosen), num_rows)
    counts = _expected_counts(np.sqrt(variance), half, total[0], np.sort(widest.values)[::-1])
    weights = 1.0 / np.minimum((coreset_size - half) / num_rows + counts, 1.0)
    left = max(total[2] - largest.values.sum(), 0.0)
    ratio = float(total[1] / left) if left > 0 else np.inf
    return Guide(laplace, exact, Selected(chosen[order], weights[order]), ratio)


class _Largest:
    """The k entries with the largest keys of a stream."""

    def __init__(self, k: int):
        self.k = k
        self.keys = np.zeros(0)
        self.index = np.zeros(0, np.int64)
        self.values = np.zeros(0)

    def add(self, keys: np.ndarray, index: np.ndarray, values: np.ndarray) -> None:
        keys = np.concatenate([self.keys, keys])
        index = np.concatenate([self.index, index])
        values = np.concatenate([self.values, values])
        if len(keys) > self.k:
            kept = np.argpartition(keys, len(keys) - self.k)[len(keys) - self.k :]
            keys, index, values = keys[kept], index[kept], values[kept]
        self.keys, self.index, self.values = keys, index, values


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


def _spreads(
    model: Model, centre: Position, draws: Position, rows: Rows, num_rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Variances over the draws of ℓ_n and of its Taylor remainder; fixed shapes, padded."""
    count = len(jax.tree.leaves(rows)[0])
    size = min(_BLOCK_ROWS, num_rows) if count > 64 else count
    if count < size:
        rows = jax.tree.map(
            lambda x: np.concatenate([x, np.repeat(x[:1], size - count, axis=0)]), rows
        )
    variance, remainder = row_spreads(model, centre, draws, rows)
    return np.array(variance)[:count], np.array(remainder)[:count]


@functools.partial(jax.jit, static_argnums=0)
def _start(model: Model, stored_rows: Rows, seed: Any) -> Position:
    return model.initial_position(jax.random.key(seed), model.prepare_rows(stored_rows))


def _coreset_terms(model: Model, stored_rows: Rows, like: Position, flat: np.ndarray) -> Any:
    return _terms(model, stored_rows, unflatten(flat, like))


def _terms_fn(model: Model, stored_rows: Rows, positions: Position) -> Any:
    rows = model.prepare_rows(jax.tree.map(jnp.asarray, stored_rows))
    return jax.vmap(lambda p: model.loglikelihood_fn(p, rows).astype(float))(positions)


_terms = jax.jit(_terms_fn, static_argnums=0)
