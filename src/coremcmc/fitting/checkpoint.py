"""Whether a checkpoint belongs to the problem at hand."""

import importlib.metadata
from typing import Any

import numpy as np

from coremcmc.fitting.result import Fit
from coremcmc.version import __version__

__all__ = ["check_same_problem", "versions"]


def check_same_problem(saved: Fit, current: dict[str, Any], indices: np.ndarray) -> None:
    """Compare everything that shapes the result, but the number of iterations and versions."""
    different = []
    for key in ("model", "data", "coreset_size", "seed", "initial_positions"):
        if saved.config[key] != current[key]:
            different.append(f"{key}: {saved.config[key]} there, {current[key]} here")
    for key, value in current["settings"].items():
        there = saved.config["settings"].get(key)
        if key != "num_iterations" and there != value:
            different.append(f"{key}: {there} there, {value} here")
    if not different and not np.array_equal(saved.coreset.indices, indices):
        different.append("selection: other rows there")
    if different:
        raise ValueError(
            f"checkpoint belongs to another problem ({'; '.join(different)}). Name another file, "
            "or restore those arguments."
        )
    if saved.iteration > current["settings"]["num_iterations"]:
        raise ValueError(
            f"checkpoint is at iteration {saved.iteration:,}, beyond num_iterations = "
            f"{current['settings']['num_iterations']:,}. Raise num_iterations, or load it with "
            "Fit.load."
        )


def versions() -> dict[str, str]:
    """Return the versions that a result depends on."""
    others = {name: importlib.metadata.version(name) for name in ("jax", "optax", "numpy")}
    return {"coremcmc": __version__, **others}
