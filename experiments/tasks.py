"""The six problems of the paper: a model, its data, how coreset rows are chosen."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

import coremcmc
from experiments.datasets import Dataset, load_dataset
from experiments.errors import StudyError

__all__ = ["TASKS", "Task", "task_named"]


@dataclass(frozen=True)
class Task:
    """A model and its data.

    Attributes
    ----------
    name
        Name in commands and files.
    title
        Name in figures, as the paper has it.
    model
        The prior and the likelihood, with the appendix's constants.
    dataset
        Key of :data:`experiments.datasets.DATASETS`.
    columns
        Which column of the data set feeds each field of the model.
    stratified
        Whether coreset rows are chosen half from each class of ``y`` (all rows of the rare class
        if they are fewer), as the appendix has it for logistic regression.
    judged
        The parameters whose means the error looks at, in their order; None for all of them.
    """

    name: str
    title: str
    model: coremcmc.Model
    dataset: str
    columns: dict[str, str]
    stratified: bool = False
    judged: tuple[str, ...] | None = None

    def load(self, folder: Path | None) -> Dataset:
        """Read the data set."""
        return load_dataset(self.dataset, folder)

    def rows(self, dataset: Dataset) -> dict[str, np.ndarray]:
        """Return the model's columns of a data set, of the rows that have them all.

        (A cancelled flight has no delay.)
        """
        rows = {field: dataset.columns[column] for field, column in self.columns.items()}
        y = rows.get("y")
        if y is None or not np.isnan(y).any():
            return rows
        return {field: column[~np.isnan(y)] for field, column in rows.items()}

    def judge(self, position: dict) -> np.ndarray:
        """Flatten the judged parameters of a position (a mapping of arrays)."""
        names = sorted(position) if self.judged is None else self.judged
        return np.concatenate([np.ravel(position[name]) for name in names])


_XY = {"x": "x", "y": "y"}

TASKS = {
    task.name: task
    for task in (
        Task("gaussian", "Gaussian location", coremcmc.GaussianLocation(), "gaussian", {"x": "x"}),
        Task(
            "sparse",
            "Sparse regression",
            coremcmc.SparseRegression(),
            "sparse",
            _XY,
            # γ is left out: where a feature is always in, its posterior sd is zero.
            judged=("beta", "sigma2"),
        ),
        Task(
            "linear",
            "Linear regression",
            coremcmc.LinearRegression(),
            "flights",
            {"x": "x", "y": "delay"},
        ),
        Task(
            "logistic",
            "Logistic regression",
            coremcmc.LogisticRegression(),
            "flights",
            {"x": "x", "y": "cancelled"},
            stratified=True,
        ),
        Task("poisson", "Poisson regression", coremcmc.PoissonRegression(), "bikes", _XY),
        Task(
            "bradley_terry",
            "Bradley-Terry",
            coremcmc.BradleyTerry(num_teams=30),
            "nba",
            {"home": "home", "away": "away", "y": "y"},
        ),
    )
}
"""The tasks by name, in the order of the paper's figures."""


def task_named(name: str) -> Task:
    """Find a task."""
    if name not in TASKS:
        raise StudyError(f"--task {name}: unknown. The tasks are {', '.join(TASKS)}.")
    return TASKS[name]
