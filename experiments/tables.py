"""From what the device recorded to the tables that are stored."""

from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
import pyarrow as pa

from coremcmc.algorithm.hot_start import hot_start_statistic
from coremcmc.diagnostics import average_squared_z, latter_half_means
from experiments.engine import NUM_CHAINS, Carry, Recorded
from experiments.methods import Config, configs
from experiments.references import Reference
from experiments.scales import Scale
from experiments.store import SCHEMAS, Job

__all__ = ["REPLAYED", "Records", "log_potential_evaluations", "tables_of"]

_HELD = 0  # the first configuration has the hot start; until it passes, all that have it agree
_HELD_POINTS = 400

REPLAYED = 200
"""Iterations by which a replay is compared with what is stored."""


@dataclass
class Records:
    """What was recorded so far: pieces, each with a first axis of iterations.

    ``position_sum``, ``num_evaluations`` and ``gradient_norm`` belong to ``iteration``;
    ``held_gradient_norm`` and ``held_statistic`` (trials) to ``held_iteration``, every iteration
    at which some trial still holds its weights.
    """

    pieces: dict[str, list[np.ndarray]] = field(default_factory=dict)

    def _append(self, **arrays: np.ndarray) -> None:
        for name, array in arrays.items():
            self.pieces.setdefault(name, []).append(array)

    def add(self, iterations: np.ndarray, rows: Recorded) -> None:
        """Append recorded iterations."""
        self._append(
            iteration=iterations,
            position_sum=rows.position_sum,
            num_evaluations=rows.num_evaluations,
            gradient_norm=rows.gradient_norm,
        )

    def add_held(self, before: int, recorded: Recorded, carry: Carry) -> None:
        """Append a whole chunk of the held phase, unless it was over before the chunk began."""
        passed_at = np.asarray(carry.state.hot_start.passed_at)[:, _HELD]
        if np.all((passed_at >= 0) & (passed_at <= before)):
            return
        length = recorded.gradient_norm.shape[0]
        self._append(
            held_iteration=np.arange(before + 1, before + length + 1),
            held_gradient_norm=np.asarray(recorded.gradient_norm[:, :, _HELD]),
            held_statistic=np.asarray(recorded.statistic[:, :, _HELD]),
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """Return everything, joined, to be saved."""
        return {f"record_{name}": np.concatenate(list_) for name, list_ in self.pieces.items()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "Records":
        """Rebuild from what :meth:`arrays` returned."""
        prefix = "record_"
        found = {n[len(prefix) :]: [a] for n, a in arrays.items() if n.startswith(prefix)}
        return cls(found)

    def __getitem__(self, name: str) -> np.ndarray:
        return np.concatenate(self.pieces[name])


def log_potential_evaluations(
    num_evaluations: np.ndarray, iteration: Any, passed_at: Any, coreset_size: int
) -> np.ndarray:
    """Cost as the paper counts it: evaluations of ℓ_n(θ), one for each row and each θ.

    A log density of the coreset posterior costs M of them, the chains' first ones included; an
    estimate of the gradient costs S = M for each chain, and is made once the weights may move.
    """
    updates = np.where(passed_at >= 0, np.maximum(iteration - passed_at, 0), 0)
    return coreset_size * (num_evaluations + NUM_CHAINS * (1 + updates))


def tables_of(
    job: Job, scale: Scale, carry: Carry, records: Records, reference: Reference
) -> dict[str, pa.Table]:
    """Make the three tables of a job."""
    runs = configs(scale)
    hot_start = carry.state.hot_start
    passed_at = np.asarray(hot_start.passed_at)
    iteration, sums = records["iteration"], records["position_sum"]
    shape = sums.shape  # records, trials, configurations, judged parameters
    means = latter_half_means(iteration, sums.reshape(len(iteration), -1)).reshape(shape)
    z2 = average_squared_z(means, reference.mean, reference.sd)
    evaluations = log_potential_evaluations(
        records["num_evaluations"], iteration[:, None, None], passed_at, job.coreset_size
    )
    weights = np.asarray(carry.state.weights)
    with np.errstate(divide="ignore", invalid="ignore"):
        ess = np.square(weights.sum(-1)) / np.square(weights).sum(-1)
    trials = range(scale.num_trials)
    pairs = [(trial, column) for trial in trials for column in range(len(runs))]

    def per_run(array: Any) -> np.ndarray:
        return np.asarray(array).reshape(len(pairs), *np.shape(array)[2:])

    final = {
        **_labels(runs, pairs),
        "z2": per_run(z2[-1]),
        "evaluations": per_run(evaluations[-1]),
        "passed_at": per_run(passed_at).astype(np.int32),
        "is_forced": per_run(hot_start.is_forced),
        "failure": per_run(carry.failure).astype(np.int8),
        "failed_at": per_run(carry.failed_at).astype(np.int32),
        "weights_sum": per_run(weights.sum(-1)),
        "weights_ess": per_run(ess),
        "mean": list(per_run(means[-1])),
    }

    def per_record(array: np.ndarray) -> np.ndarray:
        return array.reshape(len(iteration), len(pairs)).T.ravel()

    traces = {
        **{name: np.repeat(x, len(iteration)) for name, x in _labels(runs, pairs).items()},
        "iteration": np.tile(iteration, len(pairs)).astype(np.int32),
        "z2": per_record(_shortened(z2, iteration)),
        "evaluations": per_record(evaluations),
        "gradient_norm": per_record(_shortened(records["gradient_norm"], iteration)),
    }
    log_potentials = np.asarray(hot_start.log_potentials[:, _HELD])
    gate = _gate(records, passed_at[:, _HELD], log_potentials)
    columns = {"traces": traces, "runs": final, "gate": gate}
    return {name: pa.table(columns[name], schema=SCHEMAS[name]) for name in SCHEMAS}


def _labels(runs: list[Config], pairs: list[tuple[int, int]]) -> dict[str, np.ndarray]:
    return {
        "method": np.array([runs[column].method for _, column in pairs]),
        "parameter": np.array([runs[column].parameter for _, column in pairs]),
        "hot_start": np.array([runs[column].hot_start for _, column in pairs]),
        "trial": np.array([trial for trial, _ in pairs], np.int16),
    }


def _shortened(values: np.ndarray, iteration: np.ndarray) -> np.ndarray:
    """Round to single precision, which packs well, what no replay is compared by."""
    kept = (iteration <= REPLAYED)[:, None, None]
    return np.where(kept, values, values.astype(np.float32).astype(np.float64))


def _gate(
    records: Records, passed_at: np.ndarray, log_potentials: np.ndarray
) -> dict[str, np.ndarray]:
    """The held phase of each trial, thinned evenly to some hundred iterations.

    ``log_potentials`` (trials, iterations, chains) are those that the test looks at.
    """
    iteration = records["held_iteration"]
    parts, statistics = [], []
    statistic = jax.jit(jax.vmap(hot_start_statistic, (None, 0)))
    for trial, last in enumerate(passed_at):
        held = iteration <= (last if last >= 0 else iteration[-1])
        stride = -(-held.sum() // _HELD_POINTS)
        kept = np.flatnonzero(held & ((iteration % stride == 0) | (iteration == last)))
        parts.append((np.full(len(kept), trial), kept))
        with jax.enable_x64(True):
            statistics.append(np.asarray(statistic(log_potentials[trial], iteration[kept])))
    trial = np.concatenate([t for t, _ in parts])
    kept = np.concatenate([k for _, k in parts])
    return {
        "trial": trial.astype(np.int16),
        "iteration": iteration[kept].astype(np.int32),
        "gradient_norm": records["held_gradient_norm"][kept, trial].astype(np.float32),
        "statistic": records["held_statistic"][kept, trial].astype(np.float32),
        "every_statistic": np.concatenate(statistics).astype(np.float32),
    }
