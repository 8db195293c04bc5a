"""Small stand-ins for the study's data and references, and a study that can be stopped.

Run as a module, this is ``python -m experiments`` with the smoke scale replaced by ``LONGER``. It
prints every iteration that is reported and waits for a line of input at ``PAUSE``, so that a test
can break it off there.
"""

import contextlib
import sys
from dataclasses import replace

import jax
import numpy as np
import pytest

from experiments.references import Reference, save_reference
from experiments.scales import SCALES
from experiments.store import Job, Store
from experiments.tasks import TASKS

LONGER = replace(SCALES["smoke"], num_iterations=160, chunk=20)
PAUSE = 80
JOB = Job(TASKS["gaussian"], 20)


def write_data(folder, seed=11):
    """Write the three data files, a few hundred rows each; a cancelled flight has no delay."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    x = rng.standard_normal((300, 3))
    rate = np.log1p(np.exp(2.0 + x @ [0.5, -0.3, 0.2]))
    np.savez(folder / "bikes.npz", X=x, y=rng.poisson(rate))
    home = rng.integers(0, 30, 600)
    away = (home + rng.integers(1, 30, 600)) % 30
    np.savez(folder / "nba.npz", home=home, away=away, y=rng.integers(0, 2, 600))
    x = rng.standard_normal((400, 3))
    cancelled = (rng.random(400) < 1 / (1 + np.exp(1.0 - x @ [1.0, -0.5, 0.3]))).astype(np.int8)
    delay = x @ [1.0, 2.0, -1.0] + rng.standard_normal(400)
    delay[cancelled == 1] = np.nan
    np.savez(folder / "flights.npz", X=x, delay=delay, cancelled=cancelled)
    return folder


def write_reference(task, data, folder):
    """Write a made-up posterior, with mean 0.1, 0.2, … and sd 1, 2, …"""
    dataset = task.load(data)
    shapes = jax.eval_shape(task.model.initial_position, jax.random.key(0), task.rows(dataset))
    size = len(task.judge({name: np.zeros(leaf.shape) for name, leaf in shapes.items()}))
    mean, sd = 0.1 * np.arange(1.0, size + 1), np.arange(1.0, size + 1)
    names = tuple(f"coordinate {i}" for i in range(size))
    provenance = {"checks": ["none: made up"]}
    reference = Reference(task.name, dataset.name, dataset.digest, mean, sd, names, provenance)
    return save_reference(reference, folder)


def call(*arguments):
    """Run a command in this process, and return its exit status."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NPROC", "1")  # the command sets it, for a process of its own
        patch.setattr(sys, "argv", ["experiments", *map(str, arguments)])
        from experiments.__main__ import main

        with pytest.raises(SystemExit) as caught:
            main()
    return caught.value.code or 0


def flip(path, place):
    """Change one byte of a file."""
    content = bytearray(path.read_bytes())
    content[place] ^= 0x10
    path.write_bytes(content)


def truncate(path):
    """Leave the first half of a file."""
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def digests(folder, job=JOB):
    """Return what the three tables of a job hash to."""
    store = Store(folder, LONGER)
    assert store.problem(job) is None
    return store.facts(job)["files"]


@contextlib.contextmanager
def _stoppable(jobs, num_iterations):
    def report(job, iteration, seconds):
        print(iteration, flush=True)  # noqa: T201
        if iteration == PAUSE:
            sys.stdin.readline()

    yield report, lambda line: None


if __name__ == "__main__":
    from experiments import progress
    from experiments.__main__ import main

    SCALES["smoke"] = LONGER
    progress.progress_bar = _stoppable
    main()
