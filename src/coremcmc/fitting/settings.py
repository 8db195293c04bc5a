"""What can be set, what the presets set, and what is refused before any long work."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import optax

from coremcmc.algorithm.hot_start import HotStart
from coremcmc.algorithm.stopping import LONGEST
from coremcmc.base import DataSource, Kernel, Model
from coremcmc.identity import describe
from coremcmc.kernels.given import as_kernel
from coremcmc.optimizers import OPTIMIZERS
from coremcmc.selection import Selected, Selection, Uniform

__all__ = [
    "PRESETS",
    "Settings",
    "check_seed",
    "choose_rows",
    "is_informed",
    "resolve",
    "wants_estimate",
    "within_bound",
]

_MAX_RECORDS = 2000
_DEAR_ROWS = 200_000_000  # a pass over more than so many is too dear for a certificate


@dataclass(frozen=True)
class Settings:
    """Settings of a fit. The defaults are the paper's recipe.

    ``None`` for ``subsample_size`` means M, for ``kernel`` the model's own, for ``thin`` about
    2,000 records in all; for ``hot_start`` it means no test.
    """

    num_iterations: Any = 200_000
    num_chains: int = 2
    subsample_size: int | None = None
    kernel: Any = None
    optimizer: Any = "hot_dog"
    hot_start: HotStart | None = HotStart()
    selection: Any = "uniform"
    initial_weights: Any = "uniform"
    returned_weights: str = "last"
    max_weight_sum: float | int | None = None
    thin: int | None = None
    control_variate: bool = False
    stops_early: bool = False
    num_draws: int = 0
    certificate: bool | str = False

    @property
    def is_guided(self) -> bool:
        """Whether passes over the data come before training."""
        return (
            self.control_variate
            or _is(self.selection, "informed")
            or _is(self.initial_weights, "least_squares")
        )

    def without_guide(self, model: Model, is_large: bool = False) -> "Settings":
        """Return the settings for a model whose posterior has no mode to be found.

        The kernel is then one without gradients, and for a large model one without a matrix.
        """
        whitens = model.default_kernel == "hit_and_run" and not is_large
        own = "whitened_slice" if whitens else None
        return dataclasses.replace(
            self,
            control_variate=False,
            selection="uniform" if _is(self.selection, "informed") else self.selection,
            initial_weights=(
                "selection" if _is(self.initial_weights, "least_squares") else self.initial_weights
            ),
            kernel=own if _is(self.kernel, "whitened_hmc") else self.kernel,
        )

    def describe(self) -> dict[str, Any]:
        """Return the settings as plain values, for files and messages."""
        plain = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        simple = (int, float, str, type(None))
        return {k: v if isinstance(v, simple) else describe(v) for k, v in plain.items()}

    def make_kernel(self, model: Model) -> Kernel:
        """Return the kernel that ``kernel`` names or is."""
        return as_kernel(model.default_kernel if self.kernel is None else self.kernel)

    def make_optimizer(self) -> optax.GradientTransformation:
        """Return the optimizer that ``optimizer`` names or is."""
        optimizer = self.optimizer
        if isinstance(optimizer, str):
            return _lookup("optimizer", optimizer, OPTIMIZERS)()
        if not isinstance(optimizer, optax.GradientTransformation):
            raise ValueError(
                f"optimizer must be a name ({', '.join(OPTIMIZERS)}) or an optax transformation, "
                f"not {optimizer!r}."
            )
        return optimizer


def within_bound(settings: Settings, weights: np.ndarray) -> np.ndarray:
    """Scale weights that were not given by the user down to ``max_weight_sum``."""
    bound = settings.max_weight_sum
    return weights if bound is None else weights * min(1.0, bound / weights.sum())


def is_informed(settings: Settings) -> bool:
    """Whether the passes over the data choose the coreset's rows."""
    return _is(settings.selection, "informed")


def wants_estimate(settings: Settings, data: DataSource) -> bool:
    """Whether the certificate should do without a pass, where a control variate lets it."""
    return _is(settings.certificate, "estimate") or data.num_rows > _DEAR_ROWS


def _is(value: Any, name: str) -> bool:
    return isinstance(value, str) and value == name


PRESETS = {
    "default": Settings(
        num_iterations="auto",
        num_chains=8,
        subsample_size=200,
        kernel="whitened_hmc",
        selection="informed",
        initial_weights="least_squares",
        returned_weights="auto",
        control_variate=True,
        num_draws=2_000,
        certificate=True,
    ),
    "paper": Settings(),
}
"""Settings by name; ``fit(preset=…)``."""


def resolve(
    model: Model, data: DataSource, coreset_size: int, preset: str, options: dict[str, Any]
) -> Settings:
    """Take a preset, put the user's options (those not ``None``) over it, and check the whole."""
    settings = _lookup("preset", preset, PRESETS)
    options = {name: value for name, value in options.items() if value is not None}
    hot_start = options.get("hot_start")
    if isinstance(hot_start, bool):
        options["hot_start"] = (settings.hot_start or HotStart()) if hot_start else None
    elif hot_start is not None and not isinstance(hot_start, HotStart):
        raise ValueError(f"hot_start must be True, False or a HotStart, not {hot_start!r}.")
    settings = dataclasses.replace(settings, **options)

    num_rows = data.num_rows
    coreset_size = _count("coreset_size", coreset_size, 2, num_rows, "the number of rows of data")
    if not model.is_continuous and "kernel" not in options:
        settings = settings.without_guide(model)
    subsample_size = coreset_size if settings.subsample_size is None else settings.subsample_size
    if "subsample_size" not in options:
        subsample_size = min(subsample_size, num_rows)
    stops_early = _is(settings.num_iterations, "auto")
    num_iterations = LONGEST if stops_early else settings.num_iterations
    num_iterations = _count("num_iterations", num_iterations, 1, 2**53)
    thin = settings.thin
    if thin is None:
        thin = math.ceil(num_iterations / _MAX_RECORDS)
    bound = settings.max_weight_sum
    if bound is not None:
        bound = _positive("max_weight_sum", bound)
    if settings.returned_weights not in ("last", "average", "auto"):
        raise ValueError(
            "returned_weights must be 'last', 'average' or 'auto', not "
            f"{settings.returned_weights!r}."
        )
    if not isinstance(settings.certificate, bool) and not _is(settings.certificate, "estimate"):
        raise ValueError(
            "certificate must be True (one pass over the data), 'estimate' (no pass) or False, "
            f"not {settings.certificate!r}."
        )
    if _is(settings.certificate, "estimate") and not settings.control_variate:
        raise ValueError(
            "certificate='estimate' needs the control variate, which this fit does without. Pass "
            "certificate=True (one pass over the data) or, where it may be, control_variate=True."
        )
    settings = dataclasses.replace(
        settings,
        num_iterations=num_iterations,
        stops_early=stops_early,
        num_chains=_count("num_chains", settings.num_chains, 2, 10_000),
        subsample_size=_count(
            "subsample_size", subsample_size, 1, num_rows, "the number of rows of data"
        ),
        thin=_count("thin", thin, 1, num_iterations, "num_iterations"),
        max_weight_sum=bound,
        num_draws=_count("num_draws", settings.num_draws, 0, 10**9),
    )
    settings.make_kernel(model)
    settings.make_optimizer()
    return settings


def choose_rows(
    settings: Settings,
    data: DataSource,
    coreset_size: int,
    seed: int,
    informed: Selected | None = None,
) -> Selected:
    """Choose the coreset's rows and their initial weights.

    ``informed`` is what the passes over the data have chosen, for ``selection="informed"``.
    """
    selection = settings.selection
    if _is(selection, "informed") and informed is not None:
        bounded = informed._replace(weights=within_bound(settings, informed.weights))
        return bounded._replace(weights=_initial_weights(settings, bounded, data.num_rows))
    if isinstance(selection, str):
        selection = _lookup("selection", selection, {"uniform": Uniform})()
    if isinstance(selection, list) or hasattr(selection, "__array__"):
        selected = _given_rows(np.asarray(selection), data.num_rows, coreset_size)
    elif isinstance(selection, Selection) and not isinstance(selection, type):
        selected = selection(np.random.default_rng([seed, 1]), data, coreset_size)
    else:
        raise ValueError(
            "selection must be 'uniform', a selection such as Stratified('y'), or an array of "
            f"row indices, not {selection!r}."
        )
    return selected._replace(weights=_initial_weights(settings, selected, data.num_rows))


def _initial_weights(settings: Settings, selected: Selected, num_rows: int) -> np.ndarray:
    given, size = settings.initial_weights, len(selected.indices)
    if isinstance(given, str):
        if given not in ("uniform", "selection", "least_squares"):
            raise ValueError(
                "initial_weights must be 'uniform' (N/M each), 'selection' (what the selection "
                "gives), 'least_squares' (fitted at the mode) or an array, not "
                f"{given!r}."
            )
        weights = np.full(size, num_rows / size) if given == "uniform" else selected.weights
    else:
        try:
            weights = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError("initial_weights must be numbers.") from None
        if weights.shape != (size,) or not np.isfinite(weights).all() or (weights < 0).any():
            raise ValueError(
                f"initial_weights must be {size} finite numbers, none negative; got an array of "
                f"shape {weights.shape} with minimum {weights.min() if weights.size else 'none'}."
            )
    bound = settings.max_weight_sum
    if bound is not None and weights.sum() > bound * (1 + 1e-12):
        raise ValueError(
            f"the initial weights sum to {weights.sum():,.6g}, more than max_weight_sum = "
            f"{bound:,.6g}. Raise the bound (the paper's choice is the number of rows, "
            f"{num_rows:,}) or give smaller initial_weights."
        )
    return weights.astype(np.float64)


def _given_rows(indices: np.ndarray, num_rows: int, coreset_size: int) -> Selected:
    if indices.shape != (coreset_size,) or indices.dtype.kind not in "iu":
        raise ValueError(
            f"selection as an array must hold coreset_size = {coreset_size} integers; got shape "
            f"{indices.shape} and dtype {indices.dtype}."
        )
    if indices.min() < 0 or indices.max() >= num_rows or len(np.unique(indices)) < coreset_size:
        raise ValueError(f"selection must hold distinct row indices from 0 to {num_rows - 1:,}.")
    return Selected(indices, np.full(coreset_size, num_rows / coreset_size))


def check_seed(seed: Any) -> int:
    """Accept an integer from 0 to 2³² − 1."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        raise ValueError(f"seed must be an integer, not {seed!r}.")
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed must lie in 0 to 2**32 - 1 = 4294967295, but is {seed}.")
    return int(seed)


def _positive(name: str, value: Any) -> float:
    """Accept a positive number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not value > 0:
        raise ValueError(f"{name} must be positive, but is {value!r}.")
    return float(value)


def _count(name: str, value: Any, low: int, high: int, what: str = "") -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ValueError(f"{name} must be an integer, not {value!r}.")
    if value < low:
        raise ValueError(f"{name} must be at least {low}, but is {value}.")
    if value > high:
        because = f" ({what})" if what else ""
        raise ValueError(f"{name} must be at most {high:,}{because}, but is {value:,}.")
    return int(value)


def _lookup(argument: str, name: Any, known: dict) -> Any:
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"{argument}={name!r} is unknown; choose from {', '.join(known)}.")
    return known[name]
