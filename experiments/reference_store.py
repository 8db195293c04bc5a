"""Reference posteriors on disk: one JSON file a task and data set."""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.datasets import Dataset
from experiments.errors import StudyError
from experiments.tasks import Task

__all__ = ["REFERENCES", "Reference", "load_reference", "save_reference"]

REFERENCES = Path(__file__).parent / "references"
"""The folder of those that come with the study."""


@dataclass(frozen=True)
class Reference:
    """Mean and sd of the judged parameters, in the order of ``Task.judge``.

    Attributes
    ----------
    task, dataset, dataset_digest
        What it is the posterior of.
    mean, sd, names
        One entry a coordinate.
    provenance
        Sampler, settings, what the checks found, versions.
    """

    task: str
    dataset: str
    dataset_digest: str
    mean: np.ndarray
    sd: np.ndarray
    names: tuple[str, ...]
    provenance: dict[str, Any]

    @property
    def digest(self) -> str:
        """Return what tells this posterior from any other."""
        return hashlib.blake2b(self.mean.tobytes() + self.sd.tobytes(), digest_size=6).hexdigest()


def save_reference(reference: Reference, folder: Path) -> Path:
    """Write ``<task>-<data set>.json``, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{reference.task}-{reference.dataset}.json"
    content = {
        **vars(reference),
        "mean": reference.mean.tolist(),
        "sd": reference.sd.tolist(),
    }
    partial = path.with_suffix(".json.partial")
    partial.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n")
    os.replace(partial, path)
    return path


def _read(path: Path, task: Task) -> Reference:
    """Read one file."""
    try:
        content = json.loads(path.read_text())
        arrays = {key: np.array(content.pop(key), np.float64) for key in ("mean", "sd")}
        reference = Reference(**content | arrays | {"names": tuple(content["names"])})
        shape = (len(reference.names),)
        if not all(a.shape == shape and np.isfinite(a).all() for a in arrays.values()):
            raise ValueError("mean, sd and names do not go together")
        if (reference.sd <= 0).any():
            raise ValueError("not every sd is positive")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StudyError(
            f"{path}: not a reference posterior ({error}). Delete the file and run "
            f"`python -m experiments reference --task {task.problem}`."
        ) from None
    return reference


def load_reference(task: Task, dataset: Dataset, folders: list[Path]) -> Reference:
    """Find the posterior of these very numbers in the first folder that has it."""
    for folder in folders:
        path = folder / f"{task.problem}-{dataset.name}.json"
        if path.is_file():
            reference = _read(path, task)
            if reference.dataset_digest == dataset.digest:
                return reference
    raise StudyError(
        f"--task {task.name}: no reference posterior for these data ({dataset.name}, digest "
        f"{dataset.digest}). Run `python -m experiments reference --task {task.problem}`."
    )
