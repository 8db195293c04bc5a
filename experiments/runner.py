"""Runs jobs: chunk after chunk, with checkpoints, until the iterations asked for are done."""

import contextlib
import json
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

import coremcmc
from experiments.datasets import Dataset
from experiments.engine import Carry, Program, Recorded, build_program
from experiments.errors import StudyError
from experiments.methods import METHODS
from experiments.references import Reference
from experiments.replay import Replay, replay
from experiments.scales import Scale, record_iterations
from experiments.sources import program_digest
from experiments.store import Job, Store
from experiments.tables import Records, tables_of

__all__ = ["Plan", "is_of_program", "replay_finished", "run_jobs"]

_COMPILED_AHEAD = 3
_OF_PROGRAM = ("program", "coremcmc")

Report = Callable[[Job, int, float], None]


@dataclass
class Plan:
    """What is to be run, and where to.

    Attributes
    ----------
    jobs
        In this order.
    num_iterations
        T; a job that has done more already is left alone.
    data
        The folder of data files.
    reference
        Finds the reference posterior of a job's data.
    checkpoint_seconds
        Time between two checkpoints.
    """

    jobs: list[Job]
    store: Store
    num_iterations: int
    data: Path | None
    reference: Callable[[Job, Dataset], Reference]
    seed: int = 0
    checkpoint_seconds: float = 120.0
    say: Callable[[str], None] = field(default=lambda line: None)

    @property
    def scale(self) -> Scale:
        """Return the sizes of the study."""
        return self.store.scale

    def identity(self, job: Job) -> str:
        """Return what a checkpoint must agree with to be continued."""
        facts = {
            "job": job.name,
            "scale": repr(self.scale),
            "model": job.task.model.describe(),
            "start": getattr(job.task.start, "__name__", None),
            "methods": {name: method.grid for name, method in METHODS.items()},
            "data": job.task.load(self.data).digest,
            "seed": self.seed,
            "program": program_digest(job.task),
        }
        return json.dumps(facts, sort_keys=True)


def run_jobs(plan: Plan, report: Report = lambda job, iteration, seconds: None) -> list[Job]:
    """Run what is not finished, and return those jobs.

    While one job runs on the device, the next ones are compiled on the host. Ctrl-C ends the job
    at hand in good order, with what it has, and raises ``KeyboardInterrupt``.
    """
    todo = [job for job in plan.jobs if not _is_finished(plan, job)]
    for job in todo:  # before any long work
        plan.reference(job, job.task.load(plan.data))
    if todo:
        plan.store.make()
    with ThreadPoolExecutor(_COMPILED_AHEAD) as background, _interrupts() as interrupted:
        programs = [background.submit(_build, plan, job) for job in todo[:_COMPILED_AHEAD]]
        for k, job in enumerate(todo):
            program = programs[k].result()
            programs[k] = None  # frees its memory when the job is done
            if k + _COMPILED_AHEAD < len(todo):
                programs.append(background.submit(_build, plan, todo[k + _COMPILED_AHEAD]))
            with jax.enable_x64(True):
                _run(plan, job, program, report, interrupted)
            del program
            if interrupted():
                background.shutdown(cancel_futures=True)
                raise KeyboardInterrupt
    return todo


@contextlib.contextmanager
def _interrupts() -> Iterator[Callable[[], bool]]:
    """Note Ctrl-C (and a polite kill) instead of breaking off; gives a function that tells."""
    seen = threading.Event()
    signals = (signal.SIGINT, signal.SIGTERM)
    if threading.current_thread() is not threading.main_thread():
        yield seen.is_set
        return
    before = {number: signal.signal(number, lambda *_: seen.set()) for number in signals}
    try:
        yield seen.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _build(plan: Plan, job: Job) -> Program:
    with jax.enable_x64(True):
        return build_program(job, plan.scale, job.task.load(plan.data), plan.seed)


def _is_finished(plan: Plan, job: Job) -> bool:
    problem = plan.store.problem(job)
    if problem:
        plan.say(f"{problem}; job {job.name} runs again.")
        plan.store.discard(job)
        return False
    facts = plan.store.facts(job)
    if facts is None:
        return False
    identity = plan.identity(job)
    if not _same_study(facts.get("identity"), identity):
        raise StudyError(
            f"--results {plan.store.folder}: the job {job.name} there is of another version, seed "
            "or data set. Give another folder."
        )
    if facts["num_iterations"] < plan.num_iterations:
        return False
    if not is_of_program(facts, identity):
        replay_finished(plan, job)
    return True


def _same_study(stored: Any, now: str) -> bool:
    """Whether two identities differ in the program alone, by its digest or its older version."""
    try:
        parts = json.loads(stored), json.loads(now)
        kept = [{k: v for k, v in part.items() if k not in _OF_PROGRAM} for part in parts]
    except (TypeError, ValueError, AttributeError):
        return False
    return kept[0] == kept[1]


def is_of_program(facts: dict[str, Any], identity: str) -> bool:
    """Whether results are of this very program, or have been replayed with it."""
    program = json.loads(identity)["program"]
    if (facts.get("replayed") or {}).get("program") == program:
        return True
    try:
        return json.loads(facts["identity"]).get("program") == program
    except (KeyError, TypeError, ValueError, AttributeError):
        return False


def replay_finished(plan: Plan, job: Job, trials: Sequence[int] | None = None) -> Replay:
    """Replay the beginning of a finished job, and note in its record that it agrees.

    All trials where the device is the one that ran them, whose roundings depend on the company;
    else the first, if not told otherwise.
    """
    facts = plan.store.facts(job) or {}
    if trials is None and jax.devices()[0].device_kind != facts.get("device"):
        trials = [0]
    dataset = job.task.load(plan.data)
    reference = plan.reference(job, dataset)
    found = replay(job, plan.store, dataset, reference, seed=plan.seed, trials=trials)
    if not found.agrees:
        raise StudyError(
            f"--results {plan.store.folder}: the job {job.name} there is stale: the program has "
            f"changed since, and in a replay {found}. Delete its folder to run it again, or give "
            "another folder."
        )
    program = program_digest(job.task)
    plan.store.amend(job, replayed={"program": program, **found.facts()})
    plan.say(f"job {job.name} is of another program, but counts as done: {found}.")
    return found


def _run(
    plan: Plan, job: Job, program: Program, report: Report, interrupted: Callable[[], bool]
) -> None:
    """Take one job to the iterations asked for."""
    scale = plan.scale
    due = np.array(record_iterations(scale.num_iterations))
    carry, records, iteration, earlier = _resume(plan, job, program)
    saved = started = time.monotonic()
    first = iteration
    while iteration < plan.num_iterations and not (interrupted() and records.pieces):
        carry, recorded = program.advance(carry)
        inside = due[(due > iteration) & (due <= iteration + scale.chunk)]
        if len(inside):
            records.add(inside, _rows(recorded, inside - iteration - 1))
        records.add_held(iteration, recorded, carry)
        iteration += scale.chunk
        report(job, iteration, time.monotonic() - started)
        if time.monotonic() - saved > plan.checkpoint_seconds:
            _save(plan, job, carry, records, earlier + time.monotonic() - started)
            saved = time.monotonic()
    seconds = earlier + time.monotonic() - started
    if iteration < scale.num_iterations:  # someone may want more of it
        _save(plan, job, carry, records, seconds)
    dataset = job.task.load(plan.data)
    reference = plan.reference(job, dataset)
    facts = {
        "identity": plan.identity(job),
        "task": job.task.name,
        "coreset_size": job.coreset_size,
        "scale": scale.name,
        "num_iterations": iteration,
        "num_trials": scale.num_trials,
        "num_rows": len(next(iter(job.task.rows(dataset).values()))),
        "dataset": dataset.name,
        "dataset_origin": dataset.origin,
        "dataset_digest": dataset.digest,
        "reference_digest": reference.digest,
        "seconds": seconds,
        "microseconds_per_iteration_and_run": (
            1e6 * (time.monotonic() - started) / max(iteration - first, 1) / carry.failure.size
        ),
        "device": jax.devices()[0].device_kind,
        "versions": {
            "coremcmc": coremcmc.__version__,
            "jax": jax.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    }
    plan.store.write(job, tables_of(job, scale, carry, records, reference), facts)
    if iteration == scale.num_iterations:
        plan.store.drop_checkpoint(job)


def _rows(recorded: Recorded, offsets: np.ndarray) -> Recorded:
    """Fetch the chosen iterations of a chunk from the device."""
    return jax.tree.map(lambda x: np.asarray(x)[offsets], recorded)


def _save(plan: Plan, job: Job, carry: Carry, records: Records, seconds: float) -> None:
    leaves = {f"leaf{i}": np.asarray(x) for i, x in enumerate(jax.tree.leaves(carry))}
    facts = {"identity": np.array(plan.identity(job)), "seconds": np.array(seconds)}
    plan.store.save_checkpoint(job, {**leaves, **records.arrays(), **facts})


def _resume(plan: Plan, job: Job, program: Program) -> tuple[Carry, Records, int, float]:
    """Return the last checkpoint of a job, or its beginning."""
    begun = program.begin()
    try:
        arrays = plan.store.load_checkpoint(job)
    except StudyError as error:
        plan.say(f"{error}; job {job.name} starts anew.")
        arrays = None
    if arrays is not None and str(arrays.get("identity")) != plan.identity(job):
        plan.say(f"the checkpoint of {job.name} is of another study; the job starts anew.")
        arrays = None
    if arrays is None:
        return begun, Records(), 0, 0.0
    leaves, structure = jax.tree.flatten(begun)
    restored: Any = [jax.numpy.asarray(arrays[f"leaf{i}"]) for i in range(len(leaves))]
    carry = jax.tree.unflatten(structure, restored)
    records = Records.from_arrays(arrays)
    return carry, records, int(carry.state.iteration), float(arrays["seconds"])
