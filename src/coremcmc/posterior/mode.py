"""The mode of the full posterior, and the Gaussian around it."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from coremcmc.base import DataSource, LinearPredictorModel, Model, Position, Rows
from coremcmc.data.memory import MemoryData
from coremcmc.data.passes import full_pass
from coremcmc.posterior.derivatives import Derivatives, SumDerivatives, SumGradient
from coremcmc.pytrees import flatten, prepared, unflatten

__all__ = [
    "Laplace",
    "ModeSearch",
    "NoModeError",
    "first_position",
    "laplace_approximation",
    "newton",
]

_MAX_PASSES = 150
_MAX_HALVINGS = 30
_TOLERANCE = 1e-6  # of a Newton step, in posterior standard deviations
_TOO_FLAT = 100.0  # the smallest posterior sd, relative to the mode
_FLOOR = 1e-10  # of the curvature's eigenvalues, relative to the largest


class NoModeError(ValueError):
    """The posterior has no mode that Newton's method finds.

    ``is_large`` tells that it was not looked for: the parameters are too many for a matrix.
    """

    def __init__(self, message: str, *, is_large: bool = False):
        super().__init__(message)
        self.is_large = is_large


@dataclass(frozen=True)
class ModeSearch:
    """Settings of the search for a mode.

    Parameters
    ----------
    pilot_rows
        Where there are more than four times as many rows, so many give a start for all.
    costly_hessian
        Parameters above which L-BFGS comes before Newton's method, unless a linear predictor makes
        the Hessian one matrix product.
    most_parameters
        Above so many a matrix with a row and a column for each is too large, and no mode is
        looked for.
    """

    pilot_rows: int = 1 << 14
    costly_hessian: int = 50
    most_parameters: int = 2_000


@dataclass(frozen=True)
class Laplace:
    """N(θ̂, H⁻¹), H being the negative Hessian of the full log posterior at its mode θ̂.

    Attributes
    ----------
    position
        θ̂.
    likelihood
        Σ ℓ_n and its derivatives at θ̂, exactly.
    precision
        H, with its small or negative eigenvalues raised.
    num_passes
        Full passes over the data with second derivatives that it took.
    """

    position: Position
    likelihood: Derivatives
    precision: np.ndarray
    num_passes: int

    @property
    def mean(self) -> np.ndarray:
        """Return θ̂, flattened."""
        return flatten(self.position)

    @property
    def sd(self) -> np.ndarray:
        """Return the standard deviation of each coordinate."""
        return np.sqrt(np.diag(np.linalg.inv(self.precision)))

    def draw(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draw flattened positions."""
        lower = np.linalg.cholesky(self.precision)
        noise = rng.standard_normal((len(self.mean), size))
        return self.mean + np.linalg.solve(lower.T, noise).T


def laplace_approximation(
    model: Model,
    data: DataSource,
    start: Position,
    *,
    search: ModeSearch = ModeSearch(),
    progress: Callable[[int], None] | None = None,
) -> Laplace:
    """Find the mode by Newton's method, on some of the rows first, then on all of them.

    Raises
    ------
    NoModeError
        Where there is none: the model has discrete parameters, or the iteration runs off to
        infinity, as under a flat prior on separable data.
    """
    if not model.is_continuous:
        raise NoModeError(f"{type(model).__name__} has discrete parameters, and so no mode.")
    dimension = len(flatten(start))
    if dimension > search.most_parameters:
        raise NoModeError(
            f"{type(model).__name__} has {dimension:,} parameters, too many for a matrix of second "
            f"derivatives (at most {search.most_parameters:,}).",
            is_large=True,
        )
    function = SumDerivatives(model)
    _require_derivatives(function, data, start)
    is_costly = dimension > search.costly_hessian and not isinstance(model, LinearPredictorModel)
    num_rows = data.num_rows
    if (
        num_rows > 4 * search.pilot_rows
    ):  # every so many-th row: a good start for a few small passes
        chosen = np.unique(np.linspace(0, num_rows - 1, search.pilot_rows).astype(np.int64))
        pilot, scale = MemoryData(data.take(chosen)), num_rows / len(chosen)
        if is_costly:
            start = climb_without_hessian(model, _sums(SumGradient(model), pilot, scale), start)
        else:
            start, *_ = newton(model, _sums(function, pilot, scale), start, tolerance=0.1)
    if is_costly:
        gradient_at = _sums(SumGradient(model), data, progress=progress)
        start = climb_without_hessian(model, gradient_at, start)
    likelihood_at = _sums(function, data, progress=progress)
    position, likelihood, precision, passes = newton(model, likelihood_at, start, _TOLERANCE)
    return Laplace(position, likelihood, precision, passes)


@functools.partial(jax.jit, static_argnums=0)
def first_position(model: Model, few_rows: Rows, seed: Any) -> Position:
    """Where the model itself starts; of the rows, as stored, only the shapes matter."""
    return model.initial_position(jax.random.key(seed), prepared(model, few_rows))


def _sums(
    function: Callable[..., Any],
    data: DataSource,
    scale: float = 1.0,
    progress: Callable[[int], None] | None = None,
) -> Callable[[Position], Any]:
    def at(position: Position) -> Any:
        found = full_pass(data, function, position, progress=progress)
        return jax.tree.map(lambda x: scale * x, found)

    return at


def climb_without_hessian(
    model: Model, gradient_at: Callable[[Position], Any], start: Position
) -> Position:
    """Climb to near the mode by L-BFGS, for models whose Hessian costs many gradients.

    ``gradient_at`` gives Σ ℓ_n and its gradient. Newton's method then has a step or two left to do.
    """
    from scipy.optimize import minimize

    def negative(flat: Any) -> Any:
        position = unflatten(flat, start)
        try:
            value, gradient = gradient_at(position)
        except ValueError:  # not finite there: the climb ends, and Newton's method goes on
            return np.inf, np.zeros_like(flat)
        prior, prior_gradient = _prior_gradient(model, position)
        return -float(value + prior), -np.asarray(gradient + prior_gradient)

    options = {"maxfun": _MAX_PASSES, "maxcor": 20}
    found = minimize(negative, flatten(start), jac=True, method="L-BFGS-B", options=options)
    return unflatten(found.x, start)


def _require_derivatives(function: SumDerivatives, data: DataSource, start: Position) -> None:
    """Trace the derivatives, without computing anything."""
    rows = data.take(np.arange(min(2, data.num_rows)))
    try:
        jax.eval_shape(function, start, rows, np.ones(len(jax.tree.leaves(rows)[0]), bool))
    except Exception as error:
        reason = str(error).split("\n")[0]
        raise NoModeError(
            f"{type(function.model).__name__} has no second derivatives ({reason})."
        ) from None


def newton(
    model: Model,
    likelihood_at: Callable[[Position], Derivatives],
    start: Position,
    tolerance: float,
) -> tuple[Position, Derivatives, np.ndarray, int]:
    """Safeguarded Newton ascent: (mode, likelihood there, precision, evaluations).

    ``likelihood_at`` gives Σ ℓ_n and its derivatives. Stops when a step is shorter than the
    tolerance, in posterior standard deviations; raises NoModeError when that does not come about.
    """
    flat = flatten(start)

    def unravel(vector: np.ndarray) -> Position:
        return unflatten(vector, start)

    passes = 1
    try:
        likelihood = likelihood_at(unravel(flat))
    except ValueError as error:
        raise NoModeError(f"the search for a mode cannot start: {error}") from None
    while passes < _MAX_PASSES:
        value, gradient, hessian = _posterior(model, unravel, flat, likelihood)
        if not np.isfinite(hessian).all():
            break
        values, vectors = np.linalg.eigh(-0.5 * (hessian + hessian.T))
        largest = float(np.abs(values).max())
        if largest == 0.0:
            break
        raised = np.maximum(np.abs(values), _FLOOR * largest)
        step = vectors @ ((vectors.T @ gradient) / raised)
        decrement = float(np.sqrt(np.maximum(gradient @ step, 0.0)))  # length in posterior sds
        if not np.isfinite(decrement):
            break
        if decrement < tolerance and largest**-0.5 > _TOO_FLAT * (1.0 + np.abs(flat).max()):
            break  # flat in every direction: on the way to infinity
        is_top = values[0] > -1e-8 * largest
        if decrement < tolerance and is_top:
            return unravel(flat), likelihood, (vectors * raised) @ vectors.T, passes
        if decrement < tolerance:  # a saddle: leave it along the steepest way up
            step = vectors[:, 0] / np.sqrt(raised[0])
        for halving in range(_MAX_HALVINGS):
            moved = flat + step * 0.5**halving
            try:
                candidate = likelihood_at(unravel(moved))
                passes += 1
            except ValueError:  # not finite there: too far
                passes += 1
                continue
            new_value = _posterior(model, unravel, moved, candidate)[0]
            # A step of a millionth of a sd is below what the sum's rounding lets us see.
            if new_value >= value - 1e-9 * abs(value) * (decrement < 1e-3):
                break
        else:
            break
        flat, likelihood = moved, candidate
    raise NoModeError(
        "no mode of the full posterior was found: Newton's method did not settle in "
        f"{passes} passes (it stands at {np.array2string(flat[:5], precision=3)} …). The posterior "
        "may be improper or nearly flat in some direction: give a proper prior, or rescale the "
        "features."
    )


def _posterior(
    model: Model, unravel: Callable, flat: np.ndarray, likelihood: Derivatives
) -> tuple[float, np.ndarray, np.ndarray]:
    value, gradient, hessian = _prior_derivatives(model, unravel(flat))
    return (
        float(value + likelihood.value),
        np.asarray(gradient + likelihood.gradient),
        np.asarray(hessian + likelihood.hessian),
    )


@functools.partial(jax.jit, static_argnums=0)
def _prior_gradient(model: Model, position: Position) -> Any:
    flat, unravel = ravel_pytree(position)
    return jax.value_and_grad(lambda x: model.logprior_fn(unravel(x)))(flat)


@functools.partial(jax.jit, static_argnums=0)
def _prior_derivatives(model: Model, position: Position) -> Any:
    flat, unravel = ravel_pytree(position)

    def logprior(x: Any) -> Any:
        return model.logprior_fn(unravel(x))

    return logprior(flat), jax.grad(logprior)(flat), jax.hessian(logprior)(flat)
