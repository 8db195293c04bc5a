"""The first iterations of a finished job again, against what is stored of it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import jax
import numpy as np
import pandas as pd

from coremcmc.diagnostics import average_squared_z, latter_half_means
from experiments.datasets import Dataset
from experiments.engine import build_program
from experiments.methods import Config, configs
from experiments.references import Reference
from experiments.scales import record_iterations
from experiments.store import Job, Store
from experiments.tables import REPLAYED

__all__ = ["TOLERANCE", "Replay", "replay"]

TOLERANCE = 1e-8
"""How far an error may be from the stored one, relatively."""

_NOISE_FREE = 20
"""Iterations over which another kind of device must agree; later its roundings may have grown."""

_KEY = ["trial", "method", "parameter", "hot_start", "iteration"]


@dataclass(frozen=True)
class Replay:
    """How a replay compares.

    Attributes
    ----------
    num_runs
        Runs that were replayed.
    num_iterations
        The last recorded iteration that was compared.
    agree_until
        The last recorded iteration up to which every run's error is within ``TOLERANCE``.
    agree_throughout
        Runs that agree at all recorded iterations.
    largest_difference
        The largest relative difference of an error, at any recorded iteration.
    device, stored_device
        What replayed it, and what ran it.
    """

    num_runs: int
    num_iterations: int
    agree_until: int
    agree_throughout: int
    largest_difference: float
    device: str
    stored_device: str

    @property
    def agrees(self) -> bool:
        """Whether the stored results are what this program would give."""
        if self.device == self.stored_device:
            return self.agree_throughout == self.num_runs
        return self.agree_until >= min(_NOISE_FREE, self.num_iterations)

    def __str__(self) -> str:
        """Tell it in a line."""
        return (
            f"{self.agree_throughout} of {self.num_runs} runs agree to {TOLERANCE:g} over their "
            f"first {self.num_iterations} iterations, all of them over the first "
            f"{self.agree_until}, on {self.device} (stored: {self.stored_device})"
        )

    def facts(self) -> dict[str, Any]:
        """Return it for job.json."""
        return asdict(self)


def replay(
    job: Job,
    store: Store,
    dataset: Dataset,
    reference: Reference,
    *,
    seed: int = 0,
    trials: Sequence[int] | None = None,
    runs: Sequence[Config] | None = None,
) -> Replay:
    """Run the first iterations of a job and compare the errors.

    Parameters
    ----------
    job, store, dataset, reference, seed
        What was run, and where its results are.
    trials, runs
        Which of them; all if not given.
    """
    scale = store.scale
    facts = store.facts(job) or {}
    last = int(facts["num_iterations"])
    due = np.array([t for t in record_iterations(scale.num_iterations) if t <= min(REPLAYED, last)])
    trials = range(scale.num_trials) if trials is None else trials
    runs = configs(scale) if runs is None else runs
    short = replace(scale, chunk=int(due[-1]))
    with jax.enable_x64(True):
        program = build_program(job, short, dataset, seed, trials=trials, runs=runs)
        _, recorded = program.advance(program.begin())
        sums = np.asarray(recorded.position_sum)[due - 1]
    means = latter_half_means(due, sums.reshape(len(due), -1)).reshape(sums.shape)
    errors = average_squared_z(means, reference.mean, reference.sd)
    found = pd.concat(
        pd.DataFrame({"trial": t, **vars(run), "iteration": due, "z2": errors[:, a, b]})
        for a, t in enumerate(trials)
        for b, run in enumerate(runs)
    )
    stored = store.read(job, "traces").to_pandas()
    both = found.merge(stored, on=_KEY, suffixes=("", "_stored"), validate="one_to_one")
    if len(both) != len(found):
        raise ValueError(f"{job.name}: {len(found) - len(both)} of its iterations are not stored")
    same = (both["z2"] == both["z2_stored"]) | (both["z2"].isna() & both["z2_stored"].isna())
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = np.abs(both["z2"] / both["z2_stored"] - 1).where(~same, 0.0)
    difference = difference.fillna(np.inf)
    disagrees = difference > TOLERANCE
    at_fault = both.loc[disagrees, "iteration"]
    before = due[due < at_fault.min()] if len(at_fault) else due
    return Replay(
        num_runs=len(trials) * len(runs),
        num_iterations=int(due[-1]),
        agree_until=int(before[-1]) if len(before) else 0,
        agree_throughout=int((~disagrees.groupby([both[k] for k in _KEY[:-1]]).any()).sum()),
        largest_difference=float(difference.max()),
        device=jax.devices()[0].device_kind,
        stored_device=str(facts.get("device")),
    )
