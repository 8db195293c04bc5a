"""What one iteration costs, in CPU time and memory, measured on this machine.

    python benchmarks/iteration.py [iteration|scaling|memory|all] [--json FILE]

- ``iteration``: µs an iteration of the compiled loop (``coremcmc.algorithm.loop.run_piece``, as
  ``coremcmc.fit`` calls it, once compiled and past the hot start) on the bikes data, with
  M = S = 1,000 and 100, two chains, the hit-and-run slice sampler and Hot DoG; beside it the same
  algorithm as a plain scalar loop in C (``scalar_loop.c``, compiled by ``cc -O2`` on the spot),
  started from the same state. The two take turns; the numbers are medians over the turns.
- ``scaling``: µs an iteration with 10^7 rows in memory against 10^4 (logistic regression, ten
  features, M = S = 1,000). With more rows the weights N/M are larger, the posterior is narrower,
  and the slice sampler needs more evaluations to find it, whatever an evaluation costs. So 10^7
  rows are also run with the weights of 10^4: there, the number of rows alone differs.
- ``memory``: peak resident memory of ``coremcmc.fit`` on 10^7 rows.

CPU time counts every thread of the process. Where XLA has several threads, they hand the small
steps of an iteration to each other and spin while they wait: both CPU and wall time rise, by how
much depends on where the system puts the threads. The environment variable ``NPROC=1`` gives XLA
one thread. The first part is run both ways. Every part runs in a process of its own; nothing else
should run on the machine meanwhile (if so, the C loop's wall time equals its CPU time).
"""

import argparse
import ctypes
import importlib.metadata
import json
import math
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

import coremcmc
from coremcmc.algorithm.loop import init_loop, run_piece
from coremcmc.algorithm.step import CoresetMCMC
from coremcmc.kernels import KERNELS
from coremcmc.optimizers import OPTIMIZERS
from coremcmc.optimizers.hot_dog import HotDogState

HERE = Path(__file__).resolve().parent
BIKES = HERE.parent.parent / "shared" / "data" / "bikes.npz"
THIN, CAPACITY = 100, 256  # what fit uses in a run of 200,000 iterations
TURNS = 7


def bikes_data():
    """Return the paper's Poisson data, or data of that shape, and which of the two."""
    if BIKES.exists():
        with np.load(BIKES) as file:
            return {"x": file["X"], "y": file["y"]}, "bikes"
    rng = np.random.default_rng(0)
    x = rng.standard_normal((15_641, 8))
    mean = np.logaddexp(0.0, 186.0 + x @ np.linspace(-40.0, 40.0, 8))
    return {"x": x, "y": rng.poisson(mean)}, "generated (bikes.npz is not here)"


def logistic_data(num_rows):
    """Generate labels and ten float64 features, in blocks: the peak is the data themselves."""
    rng = np.random.default_rng(0)
    x, y = np.empty((num_rows, 10)), np.empty(num_rows)
    for start in range(0, num_rows, 1 << 16):
        block = slice(start, start + (1 << 16))
        rng.standard_normal(out=x[block])
        probability = 1.0 / (1.0 + np.exp(0.5 - x[block] @ np.linspace(1.0, -1.0, 10)))
        y[block] = rng.random(len(probability)) < probability
    return {"x": x, "y": y}


class Ours:
    """The package's compiled loop, hot, ready to be timed."""

    def __init__(self, model, data, feed, size, weight):
        self.data, self.feed, self.size = data, feed, size
        self.algorithm = CoresetMCMC(
            model, data.num_rows, KERNELS["hit_and_run"](), OPTIMIZERS["hot_dog"]()
        )
        self.key = jax.random.key(0)
        self.indices = np.random.default_rng(0).choice(data.num_rows, size, replace=False)
        self.rows = model.prepare_rows(jax.tree.map(jnp.asarray, data.take(self.indices)))
        keys = jax.random.split(self.key)
        positions = jax.vmap(lambda key: model.initial_position(key, self.rows))(keys)
        start = self.algorithm.init(positions, jnp.full(size, weight), self.rows)
        self.state = init_loop(start, 200_000)
        began = time.process_time()
        self.advance(1, stop=1)
        self.compile_seconds = time.process_time() - began
        while not self.state.coreset.hot_start.is_hot:
            self.advance(THIN)

    def advance(self, iterations, stop=10**9):
        """Run; return the numbers of iterations and of evaluations."""
        before = self.state.coreset
        self.state, *_ = run_piece(
            *(self.algorithm, self.key, self.state, self.rows, self.feed),
            *(jnp.asarray(stop), jnp.asarray(iterations)),
            **{"subsample_size": self.size, "thin": THIN, "capacity": CAPACITY},
        )
        after = self.state.coreset
        if int(self.state.failure):
            raise RuntimeError(f"the run failed with code {int(self.state.failure)}")
        return (
            int(after.iteration - before.iteration),
            int(after.num_evaluations - before.num_evaluations),
        )


SIZES = ("num_rows", "coreset_size", "subsample_size", "dimension", "num_chains")
ARRAYS = ("x", "y", "log_factorial", "core_x", "core_y", "core_log_factorial", "permutation")
ARRAYS += ("weights", "initial_weights", "first_moment", "second_moment", "distance")
ARRAYS += ("position", "loglikelihoods")


class Problem(ctypes.Structure):
    """The struct of the same name in scalar_loop.c."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in SIZES),
        *((name, ctypes.c_void_p) for name in ARRAYS),
        ("count", ctypes.c_int64),
        ("evaluations", ctypes.c_int64),
        ("random", ctypes.c_uint64 * 4),
    )


class Scalar:
    """The C loop, started where ``ours`` stands."""

    def __init__(self, library, ours):
        state, core, num_rows = ours.state.coreset, ours.indices, ours.data.num_rows
        parts = jax.tree.leaves(state.optimizer_state, is_leaf=lambda s: hasattr(s, "distance"))
        hot_dog = next(part for part in parts if isinstance(part, HotDogState))
        x = np.column_stack([np.ones(num_rows), ours.data.rows["x"]])
        y = ours.data.rows["y"].astype(float)
        log_factorial = np.array([math.lgamma(count + 1.0) for count in y])
        position, expected = state.chains.position["beta"], state.chains.loglikelihoods
        values = (x, y, log_factorial, x[core], y[core], log_factorial[core], np.arange(num_rows))
        values += (state.weights, hot_dog.initial_params, hot_dog.first_moment)
        values += (hot_dog.second_moment, hot_dog.distance, position, np.zeros(expected.shape))
        self.arrays = {k: np.array(v, order="C") for k, v in zip(ARRAYS, values, strict=True)}
        self.problem = Problem(
            *(num_rows, ours.size, ours.size, x.shape[1], len(position)),
            *(array.ctypes.data for array in self.arrays.values()),
            *(int(hot_dog.count), 0),
            tuple(np.random.default_rng(0).integers(1, 2**63, 4).tolist()),
        )
        self.run = library.run
        self.run.argtypes = (ctypes.POINTER(Problem), ctypes.c_int64)
        self.run(self.problem, 0)
        np.testing.assert_allclose(self.arrays["loglikelihoods"], expected, rtol=1e-9)

    def advance(self, iterations):
        """Run; return the numbers of iterations and of evaluations."""
        before = self.problem.evaluations
        self.run(self.problem, iterations)
        return iterations, self.problem.evaluations - before


def take_turns(contestants, iterations):
    """Return, for each, the median µs of CPU and wall time and the mean evaluations, and all µs."""
    turns = [[] for _ in contestants]
    for _ in range(TURNS):
        for contestant, record in zip(contestants, turns, strict=True):
            cpu, wall = time.process_time(), time.perf_counter()
            done, evaluations = contestant.advance(iterations)
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            record.append((1e6 * cpu / done, 1e6 * wall / done, evaluations / done))
    for cpu, wall, evaluations in (np.array(record).T for record in turns):
        yield np.median(cpu), np.median(wall), np.mean(evaluations), cpu.tolist()


def judged(value, target):
    """Return the entries of a row that compare with a target."""
    return {"target": f"≤ {target:g}", "verdict": "met" if value <= target else "MISSED"}


def iteration_part():
    columns, name = bikes_data()
    data = coremcmc.MemoryData(columns)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scalar_loop.so"
        command = ("cc", "-O2", "-shared", "-fPIC", "-o", path, HERE / "scalar_loop.c", "-lm")
        subprocess.run(command, check=True)
        library = ctypes.CDLL(str(path))
        for size, iterations, target in ((1000, 400, 900), (100, 2000, 150)):
            model, weight = coremcmc.PoissonRegression(), data.num_rows / size
            ours = Ours(model, data, data.feed(), size, weight)
            first, second = take_turns((ours, Scalar(library, ours)), iterations)
            if abs(first[2] / second[2] - 1) > 0.1:
                raise RuntimeError(
                    "the C loop is no fair baseline: evaluations an iteration are "
                    f"{first[2]:.1f} in ours and {second[2]:.1f} in C"
                )
            rows.append(
                {"M": size, "NPROC": os.environ.get("NPROC", "default"), "CPU µs": first[0]}
                | judged(first[0], target)
                | {"wall µs": first[1], "C CPU µs": second[0], "C wall µs": second[1]}
                | {"CPU ours / C": first[0] / second[0], "evals": first[2], "C evals": second[2]}
                | {"compile s": ours.compile_seconds, "data": name}
                | {"CPU µs turns": first[3], "C CPU µs turns": second[3]}
            )
    return rows


def scaling_part():
    contestants, labels = [], []
    for num_rows, weights in ((10**4, (10.0,)), (10**7, (10.0**4, 10.0))):
        data = coremcmc.MemoryData(logistic_data(num_rows))
        feed = data.feed()
        for weight in weights:
            labels.append({"N": num_rows, "initial weights": weight})
            model = coremcmc.LogisticRegression()
            contestants.append(Ours(model, data, feed, 1000, weight))
    rows = []
    for label, (cpu, wall, evaluations, turns) in zip(
        labels, take_turns(contestants, 400), strict=True
    ):
        row = label | {"CPU µs": cpu, "wall µs": wall, "evals": evaluations}
        ratio = cpu / rows[0]["CPU µs"] if rows else 1.0
        rows.append(row | {"CPU µs / eval": cpu / evaluations, "CPU ratio": ratio})
        rows[-1] |= (judged(ratio, 1.3) if ratio != 1.0 else {}) | {"CPU µs turns": turns}
    return rows


def memory_part():
    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6

    imports, data = peak(), logistic_data(10**7)
    size, before = sum(column.nbytes for column in data.values()) / 1e6, peak()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that so few iterations are no good fit is known
        coremcmc.fit(
            coremcmc.LogisticRegression(),
            data,
            1000,
            preset="paper",
            num_iterations=50,
            progress=False,
        )
    row = {"imports MB": imports, "data MB": size, "peak before fit MB": before}
    return [row | {"peak of fit MB": peak()} | judged(peak(), 2 * size + 500)]


PARTS = {  # what to run, the title, and the values of NPROC to run it with
    "iteration": (iteration_part, "One iteration: K = 2, S = M, Hot DoG, slice", ("1", None)),
    "scaling": (scaling_part, "Rows in memory: logistic, M = S = 1,000, NPROC = 1", ("1",)),
    "memory": (memory_part, "Peak resident memory of fit: 10^7 rows, ten features", (None,)),
}


def in_process(part, nproc):
    """Run a part in a fresh interpreter and return its rows."""
    environment = {k: v for k, v in os.environ.items() if k != "NPROC"}
    environment |= {} if nproc is None else {"NPROC": nproc}
    command = (sys.executable, __file__, part, "--worker")
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def show(title, rows):
    """Print the rows as a table, but for the lists in them."""

    def text(value):
        if not isinstance(value, float):
            return f"{value:,}" if isinstance(value, int) else str(value)
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

    names = list(dict.fromkeys(k for row in rows for k, v in row.items() if type(v) is not list))
    table = Table(*names, title=title, title_justify="left")
    for row in rows:
        table.add_row(*(text(row.get(name, "")) for name in names))
    Console(width=None if sys.stdout.isatty() else 130).print(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", default="all", choices=[*PARTS, "all"])
    parser.add_argument("--json", type=Path, help="write all that was measured to this file")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        with jax.enable_x64(True):
            print(json.dumps(PARTS[arguments.part][0]()))
        return
    versions = {name: importlib.metadata.version(name) for name in ("coremcmc", "jax", "numpy")}
    machine = {"platform": platform.platform(), "cpus": os.cpu_count(), "versions": versions}
    results = {"machine": machine | {"load before": os.getloadavg()}}
    for part in PARTS if arguments.part == "all" else (arguments.part,):
        _, title, settings = PARTS[part]
        results[part] = [row for nproc in settings for row in in_process(part, nproc)]
        show(title, results[part])
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
