"""What a first fit spends on imports and compilation: ``NPROC=1 python benchmarks/first_fit.py``.

Each line is a process of its own: a fit, and a second fit of the same shapes with another seed. The
difference is what the first spends on compilation and on modules that are imported when they are
first needed. ``kept`` is a later process that finds the programs of the first in the cache of
:func:`coremcmc.keep_compiled_programs`.
"""

import os
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np

NUM_ROWS, COLUMNS, SIZE = 20_000, 5, 500


def _model(name):
    import jax
    import jax.numpy as jnp

    import coremcmc

    def loglikelihood(position, rows):
        eta = rows["x"] @ position["beta"]
        return rows["y"] * eta - jnp.logaddexp(0.0, eta)

    return {
        "logistic": coremcmc.LogisticRegression,
        "linear": coremcmc.LinearRegression,
        "poisson": coremcmc.PoissonRegression,
        "negative_binomial": lambda: coremcmc.GLM("negative_binomial"),
        "own_functions": lambda: coremcmc.FunctionModel(
            lambda p: -0.5 * jnp.sum(p["beta"] ** 2),
            loglikelihood,
            lambda key: {"beta": jax.random.normal(key, (COLUMNS,))},
        ),
    }[name]()


def _rows(name):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((NUM_ROWS, COLUMNS))
    eta = x @ np.linspace(-0.5, 0.5, COLUMNS)
    response = {
        "linear": lambda: eta + rng.standard_normal(NUM_ROWS),
        "poisson": lambda: rng.poisson(np.log1p(np.exp(eta))),
        "negative_binomial": lambda: rng.poisson(np.exp(eta) * rng.gamma(2.0, 0.5, NUM_ROWS)),
    }.get(name, lambda: rng.random(NUM_ROWS) < 1 / (1 + np.exp(-eta)))()
    return {"x": x, "y": np.asarray(response, float)}


def run_one(name):
    import coremcmc

    if os.environ.get("XDG_CACHE_HOME"):
        coremcmc.keep_compiled_programs()
    model, rows = _model(name), _rows(name)
    cells = []
    for seed in range(2):
        cpu, wall = time.process_time(), time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            coremcmc.fit(model, rows, SIZE, seed=seed, progress=False)
        cells.append((time.process_time() - cpu, time.perf_counter() - wall))
    (cpu, wall), (cpu_again, wall_again) = cells
    print(
        f"| {cpu:.1f} | {wall:.1f} | {cpu_again:.1f} | {wall_again:.1f} "
        f"| {cpu - cpu_again:.1f} | {wall - wall_again:.1f} |"
    )


def main():
    heads = ("first fit, CPU s", "second, CPU s", "difference, CPU s")
    print("| model | cache | " + " | wall s | ".join(heads) + " | wall s |")
    print("|---|---|---|---|---|---|---|---|")
    for name in ("logistic", "linear", "poisson", "own_functions", "negative_binomial"):
        with tempfile.TemporaryDirectory() as folder:
            for cache in ("none", "filled", "kept"):
                environment = {**os.environ, "NPROC": "1"}
                environment["XDG_CACHE_HOME"] = "" if cache == "none" else folder
                command = [sys.executable, __file__, name]
                done = subprocess.run(
                    command, env=environment, check=True, capture_output=True, text=True
                )
                if cache != "filled":
                    print(f"| {name} | {cache} {done.stdout.strip()}", flush=True)


if __name__ == "__main__":
    run_one(sys.argv[1]) if len(sys.argv) > 1 else main()
