"""The six problems of the paper: a model, its data, how coreset rows are chosen."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import coremcmc
from experiments.datasets import Dataset, load_dataset
from experiments.errors import StudyError
from experiments.starts import Start, in_the_starting_posterior, near_least_squares

__all__ = ["TASKS", "VARIANTS", "Task", "task_named"]


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
    start
        Where the chains start; None for the model's own start.
    variant_of
        The task that this one differs from in one respect; it has the same data, reference
        posterior, coresets and random numbers.
    """

    name: str
    title: str
    model: coremcmc.Model
    dataset: str
    columns: dict[str, str]
    stratified: bool = False
    judged: tuple[str, ...] | None = None
    start: Start | None = None
    variant_of: str | None = None

    @property
    def problem(self) -> str:
        """Return the name that seeds and reference posteriors go by."""
        return self.variant_of or self.name

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
        Task(
            "gaussian",
            "Gaussian location",
            coremcmc.GaussianLocation(),
            "gaussian",
            {"x": "x"},
            start=in_the_starting_posterior,
        ),
        Task(
            "sparse",
            "Sparse regression",
            coremcmc.SparseRegression(),
            "sparse",
            _XY,
            # γ is left out: where a feature is always in, its posterior sd is zero.
            judged=("beta", "sigma2"),
            start=near_least_squares,
        ),
        Task(
            "linear",
            "Linear regression",
            coremcmc.LinearRegression(),
            "delays",
            {"x": "x", "y": "delay"},
        ),
        Task(
            "logistic",
            "Logistic regression",
            coremcmc.LogisticRegression(),
            "cancellations",
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


VARIANTS = {
    f"{name}_far": replace(
        TASKS[name],
        name=f"{name}_far",
        title=f"{TASKS[name].title}, θ₀ ~ N(0, I)",
        start=None,
        variant_of=name,
    )
    for name in ("gaussian", "sparse")
}
"""The two models whose authors' start is close, from a start like the other models'."""


def task_named(name: str) -> Task:
    """Find a task."""
    known = TASKS | VARIANTS
    if name not in known:
        raise StudyError(f"--task {name}: unknown. The tasks are {', '.join(known)}.")
    return known[name]
