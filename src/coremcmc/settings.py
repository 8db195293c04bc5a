"""What can be set, what the presets set, and what is refused before any long work."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import optax

from coremcmc.base import DataSource, Kernel, Model
from coremcmc.hot_start import HotStart
from coremcmc.kernels import KERNELS
from coremcmc.optimizers import OPTIMIZERS
from coremcmc.selection import Selected, Selection, Uniform

__all__ = ["PRESETS", "Settings", "check_seed", "choose_rows", "resolve"]

_MAX_RECORDS = 2000


@dataclass(frozen=True)
class Settings:
    """Settings of a fit. The defaults are the paper's recipe.

    ``None`` for ``subsample_size`` means M, for ``kernel`` the model's own, for ``thin`` about
    2,000 records in all; for ``hot_start`` it means no test.
    """

    num_iterations: int = 200_000
    num_chains: int = 2
    subsample_size: int | None = None
    kernel: Any = None
    optimizer: Any = "hot_dog"
    hot_start: HotStart | None = HotStart()
    selection: Any = "uniform"
    initial_weights: Any = "uniform"
    returned_weights: str = "last"
    max_weight_sum: float | None = None
    thin: int | None = None

    def describe(self) -> dict[str, Any]:
        """Return the settings as plain values, for files and messages."""
        plain: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, optax.GradientTransformation):
                value = f"optax transformation {value.update.__qualname__}"
            elif isinstance(value, np.ndarray):
                value = f"array of {value.shape}"
            elif not isinstance(value, (int, float, str, type(None))):
                value = repr(value)
            plain[field.name] = value
        return plain


PRESETS = {"paper": Settings()}
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
    _check_count("coreset_size", coreset_size, 2, num_rows, "the number of rows of data")
    _check_count("num_chains", settings.num_chains, 2, 10_000)
    _check_count("num_iterations", settings.num_iterations, 1, 2**53)
    subsample_size = coreset_size if settings.subsample_size is None else settings.subsample_size
    _check_count("subsample_size", subsample_size, 1, num_rows, "the number of rows of data")
    thin = settings.thin
    if thin is None:
        thin = math.ceil(settings.num_iterations / _MAX_RECORDS)
    _check_count("thin", thin, 1, settings.num_iterations, "num_iterations")
    bound = settings.max_weight_sum
    if bound is not None and not bound > 0:
        raise ValueError(f"max_weight_sum must be positive, but is {bound}.")
    if settings.returned_weights not in ("last", "average"):
        raise ValueError(
            f"returned_weights must be 'last' or 'average', not {settings.returned_weights!r}."
        )
    kernel, optimizer = settings.kernel, settings.optimizer
    if kernel is None or isinstance(kernel, str):
        kernel = _lookup("kernel", kernel or model.default_kernel, KERNELS)()
    elif not isinstance(kernel, Kernel):
        raise ValueError(f"kernel must be a name or have init and step, not {kernel!r}.")
    if isinstance(optimizer, str):
        optimizer = _lookup("optimizer", optimizer, OPTIMIZERS)()
    elif not isinstance(optimizer, optax.GradientTransformation):
        raise ValueError(f"optimizer must be a name or an optax transformation, not {optimizer!r}.")
    return dataclasses.replace(
        settings, subsample_size=subsample_size, thin=thin, kernel=kernel, optimizer=optimizer
    )


def choose_rows(settings: Settings, data: DataSource, coreset_size: int, seed: int) -> Selected:
    """Choose the coreset's rows and their initial weights."""
    selection = settings.selection
    if isinstance(selection, str):
        selection = _lookup("selection", selection, {"uniform": Uniform})()
    if isinstance(selection, (list, np.ndarray)):
        selected = _given_rows(np.asarray(selection), data.num_rows, coreset_size)
    elif isinstance(selection, Selection):
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
        if given not in ("uniform", "selection"):
            raise ValueError(
                "initial_weights must be 'uniform' (N/M each), 'selection' (what the selection "
                f"gives) or an array, not {given!r}."
            )
        weights = np.full(size, num_rows / size) if given == "uniform" else selected.weights
    else:
        weights = np.asarray(given, dtype=np.float64)
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


def _check_count(name: str, value: Any, low: int, high: int, what: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ValueError(f"{name} must be an integer, not {value!r}.")
    if value < low:
        raise ValueError(f"{name} must be at least {low}, but is {value}.")
    if value > high:
        because = f" ({what})" if what else ""
        raise ValueError(f"{name} must be at most {high:,}{because}, but is {value:,}.")


def _lookup(argument: str, name: Any, known: dict) -> Any:
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"{argument}={name!r} is unknown; choose from {', '.join(known)}.")
    return known[name]
