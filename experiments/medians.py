"""Results as medians and quartiles over trials.

A run that failed, or whose error is not a finite number, counts with an infinite error and is
never left out. In a trace it counts so from the first recorded iteration where its error or its
gradient norm is not finite; a failed run that shows no such iteration counts so throughout.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from experiments.errors import StudyError
from experiments.store import Job, Store
from experiments.tasks import TASKS, VARIANTS

__all__ = ["JobResults", "Results", "load_results", "quantiles", "ratio"]

CONFIG = ["method", "parameter", "hot_start"]
_FINAL = ["task", "coreset_size", *CONFIG, "z2", "z2_q25", "z2_q75"]
_FINAL += ["num_trials", "num_failed", "num_iterations"]


def quantiles(values: Any, levels: tuple[float, ...] = (0.5, 0.25, 0.75)) -> np.ndarray:
    """Quantiles over the last axis, linear between neighbours; infinities allowed.

    Whatever is not a number makes the result not a number.
    """
    values = np.sort(np.asarray(values, float), axis=-1)
    if values.shape[-1] == 0:
        return np.full((len(levels), *values.shape[:-1]), np.nan)
    found = []
    for level in levels:
        place = level * (values.shape[-1] - 1)
        low, high = values[..., int(place)], values[..., int(np.ceil(place))]
        with np.errstate(invalid="ignore"):
            between = low + (high - low) * (place - int(place))
        found.append(np.where(low == high, low, between))
    return np.where(np.isnan(values).any(axis=-1), np.nan, np.array(found))


def ratio(above: Any, below: Any) -> Any:
    """Divide errors: infinite over finite is infinite, infinite over infinite undefined."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.divide(above, below)


@dataclass(frozen=True)
class JobResults:
    """The tables of one job as data frames, failures already infinite."""

    job: Job
    facts: dict[str, Any]
    runs: pd.DataFrame
    traces: pd.DataFrame
    gate: pd.DataFrame

    @property
    def num_iterations(self) -> int:
        """Return the last recorded iteration, at which the final errors are taken."""
        if len(self.traces):
            return int(self.traces["iteration"].max())
        return int(self.facts.get("num_iterations") or 0)

    def final(self, method: str, parameter: float, hot_start: bool) -> pd.Series:
        """Return the errors at the last iteration, indexed by trial."""
        nothing = pd.Series(dtype=float, name="z2")
        return self._final.get((method, parameter, hot_start), nothing)

    def weights_sum(self, method: str, parameter: float | None, hot_start: bool) -> pd.Series:
        """Return Σw at the end, indexed by trial."""
        rows = _of(self.runs, method, parameter, hot_start)
        return rows.set_index("trial")["weights_sum"].sort_index()

    @cached_property
    def _final(self) -> dict[tuple, pd.Series]:
        return {
            config: runs.set_index("trial")["z2"].sort_index()
            for config, runs in self.runs.groupby(CONFIG)
        }

    def parameters(self, method: str, hot_start: bool) -> list[float]:
        """Return the values of a method's parameter that were run."""
        return sorted(v for name, v, hot in self._final if (name, hot) == (method, hot_start))

    def tuned(self, method: str = "adam", hot_start: bool = False) -> float | None:
        """Return the parameter with the lowest median error at the end; of equals, the smallest."""
        values = self.parameters(method, hot_start)
        medians = [quantiles(self.final(method, v, hot_start))[0] for v in values]
        return values[int(np.argmin(medians))] if values else None

    def curve(self, method: str, parameter: float, hot_start: bool) -> pd.DataFrame:
        """Medians and quartiles over trials at each recorded iteration."""
        rows = _of(self.traces, method, parameter, hot_start)
        wide = rows.pivot_table(index="iteration", columns="trial", values="z2", aggfunc="max")
        cost = rows.groupby("iteration")["evaluations"].median()
        median, low, high = quantiles(wide.fillna(np.inf))
        return pd.DataFrame(
            {
                "iteration": wide.index.to_numpy(),
                "evaluations": cost.to_numpy(),
                "z2": median,
                "z2_q25": low,
                "z2_q75": high,
                "num_trials": wide.shape[1],
            }
        )

    def finals(self) -> pd.DataFrame:
        """One row a configuration: median and quartiles of the error at the last iteration."""
        rows = []
        for config, errors in self._final.items():
            median, low, high = quantiles(errors)
            failed = int(np.isinf(errors).sum())
            rows.append([self.job.task.name, self.job.coreset_size, *config, median, low, high])
            rows[-1] += [len(errors), failed, self.num_iterations]
        return pd.DataFrame(rows, columns=_FINAL)


@dataclass(frozen=True)
class Results:
    """Every job that has results, by task name and coreset size; variants apart."""

    store: Store
    jobs: dict[tuple[str, int], JobResults]
    variants: dict[tuple[str, int], JobResults] = field(default_factory=dict)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the coreset sizes of the study, ascending."""
        return tuple(sorted(self.store.scale.coreset_sizes))

    def missing(self) -> list[Job]:
        """Return the jobs of the study without results."""
        every = (Job(task, size) for task in TASKS.values() for size in self.sizes)
        return [job for job in every if (job.task.name, job.coreset_size) not in self.jobs]


def load_results(store: Store) -> Results:
    """Read all that is there."""
    jobs, variants = (
        {
            (task.name, size): _load(store, Job(task, size))
            for task in tasks.values()
            for size in sorted(store.scale.coreset_sizes)
            if store.path(Job(task, size), "job.json").is_file()
        }
        for tasks in (TASKS, VARIANTS)
    )
    if not jobs:
        raise StudyError(
            f"--results {store.folder}: holds no results of a job. Make some first: "
            "python -m experiments run."
        )
    return Results(store, jobs, variants)


def _load(store: Store, job: Job) -> JobResults:
    runs, traces, gate = (store.read(job, n).to_pandas() for n in ("runs", "traces", "gate"))
    for table in (runs, traces):  # 0.001 stays 0.001 even if single precision was in between
        table["parameter"] = [float(f"{value:.6g}") for value in table["parameter"]]
    bad = (runs["failure"] != 0) | ~np.isfinite(runs["z2"])
    runs["z2"] = runs["z2"].astype(float).where(~bad, np.inf)
    key = [*CONFIG, "trial"]
    traces = traces.sort_values([*key, "iteration"], ignore_index=True)
    traces["z2"] = traces["z2"].astype(float)
    finite = np.isfinite(traces["z2"]) & np.isfinite(traces["gradient_norm"])
    is_failed = pd.MultiIndex.from_frame(traces[key]).isin(
        pd.MultiIndex.from_frame(runs.loc[runs["failure"] != 0, key])
    )
    broken = (~finite).groupby([traces[c] for c in key]).cummax()
    never_shown = ~(~finite).groupby([traces[c] for c in key]).transform("any")
    infinite = ~np.isfinite(traces["z2"]) | (is_failed & (broken | never_shown))
    traces["z2"] = traces["z2"].where(~infinite, np.inf)
    return JobResults(job, store.facts(job) or {}, runs, traces, gate)


def _of(table: pd.DataFrame, method: str, parameter: float | None, hot_start: bool) -> pd.DataFrame:
    return table[
        (table["method"] == method)
        & (table["parameter"] == parameter)
        & (table["hot_start"] == hot_start)
    ]
