"""Is the certificate right? ``NPROC=1 python benchmarks/calibration.py``

Coresets from excellent to ruined, each with the certificate's verdict and the true error against
the full-data posterior. Writes ``docs/benchmarks/calibration.csv`` and ``calibration.png`` and
prints the table. With ``--problem NAME ...`` only these run; ``--table`` runs nothing.
"""

import argparse
import csv
import itertools
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "docs" / "benchmarks"
TABLE = FOLDER / "calibration.csv"
COLUMNS = [
    *("problem", "M", "setting", "seed", "verdict", "z2", "sd_min", "sd_max"),
    *("estimated_z2", "residual", "pareto_k", "note"),
]
NAMES = ("bikes", "flights_logistic", "flights_linear", "synthetic_1e5", "banana")
VERDICTS = ("good", "usable", "poor")
BASE = 200  # rows of the coresets that are spoilt


def read():
    if not TABLE.exists():
        return []
    with TABLE.open(newline="") as file:
        return list(csv.DictReader(file))


def judge(problem, certificate, draws):
    from comparison_methods import of_draws

    return {
        "verdict": certificate.verdict,
        "estimated_z2": certificate.squared_z,
        "residual": certificate.residual_variance,
        "pareto_k": certificate.pareto_k,
        **of_draws(problem, draws),
    }


def fits(problem):
    """Whole fits: several sizes, and runs that are far too short from a poor start."""
    import coremcmc

    short = {"initial_weights": "uniform", "selection": "uniform"}
    plans = [(size, "default", {}) for size in (BASE, 50)]
    for length in (50, 200):
        plans.append(
            (BASE, f"uniform start, {length} iterations", short | {"num_iterations": length})
        )
    for size, setting, options in plans:
        for seed in (0, 1):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fit = coremcmc.fit(
                    problem.model,
                    problem.rows,
                    size,
                    preset="default",
                    seed=seed,
                    progress=False,
                    **options,
                )
            row = judge(problem, fit.certificate, fit.sampled_positions)
            yield {"M": size, "setting": setting, "seed": seed, **row}, fit


def spoilt(fit, seed):
    """Wrong weights and corrupted rows, of a good coreset: (setting, rows, weights)."""
    import numpy as np

    rng = np.random.default_rng([seed, 5])
    weights, rows = fit.coreset.weights, fit.coreset.rows
    size = len(weights)
    for scale in (0.001, 0.003, 0.006, 0.01, 0.03, 0.1, 0.3, 1.0):
        factors = np.exp(scale * rng.standard_normal(size))
        yield f"weights × exp({scale} N(0, 1))", rows, weights * factors
    for factor in (0.5, 0.8, 0.9, 0.96, 1.04, 1.2, 4.0):
        yield f"weights × {factor}", rows, weights * factor
    yield "weights permuted", rows, rng.permutation(weights)
    yield "weights all equal", rows, np.full(size, weights.sum() / size)
    cut = weights.copy()
    cut[np.argsort(weights)[-size // 20 :]] = 0.0
    yield "largest 5% of the weights 0", rows, cut
    for share in (0.01, 0.1):
        order = np.arange(size)
        some = rng.choice(size, max(2, int(share * size)), replace=False)
        order[some] = np.roll(some, 1)
        mixed = {**rows, "y": np.asarray(rows["y"])[order]}
        yield f"y of {share:.0%} of the rows swapped", mixed, weights


def spoilt_coresets(problem, fit, seed):
    import jax
    import jax.numpy as jnp
    import numpy as np
    from comparison_problems import start_of
    from jax.flatten_util import ravel_pytree

    from coremcmc.certificate.certify import certify
    from coremcmc.data import as_data_source
    from coremcmc.fitting.draws import sample_target
    from coremcmc.kernels.whitened_hmc import WhitenedHMC
    from coremcmc.posterior.target import Target

    with jax.enable_x64(True):
        model, data = problem.model, as_data_source(problem.rows, problem.model)
        like = start_of(model, problem.rows)
        like = jax.tree.map(lambda x: jnp.asarray(x, float), like)
        unravel = ravel_pytree(like)[1]
        starts = jax.vmap(unravel)(jnp.asarray(fit.sampled_positions[-1]))
        for setting, rows, weights in spoilt(fit, seed):
            prepared = model.prepare_rows(jax.tree.map(jnp.asarray, rows))
            target = Target(model, prepared, jnp.asarray(weights))
            lengths = {"num_draws": 1000, "num_warmup": 500}
            draws, *_ = sample_target(
                WhitenedHMC(), jax.random.key(seed), target, starts, **lengths
            )
            draws = np.asarray(draws)
            found = certify(model, data, rows, weights, draws, fit.position_names)
            row = judge(problem, found, draws)
            yield {"M": len(weights), "setting": setting, "seed": seed, **row}


def cases(problem):
    good = {}
    for row, fit in fits(problem):
        yield row
        if row["M"] == BASE and row["setting"] == "default":
            good[row["seed"]] = fit
            yield from spoilt_coresets(problem, fit, row["seed"])


def run_one(name):
    from comparison_problems import PROBLEMS

    problem = PROBLEMS[name]()
    rows = [row for row in read() if row["problem"] != name]
    began = time.process_time()
    for row in cases(problem):
        row["problem"] = name
        rows.append({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()})
        print(f"{time.process_time() - began:.0f} s", rows[-1], flush=True)
        FOLDER.mkdir(parents=True, exist_ok=True)
        with TABLE.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def table(rows):
    """Counts of verdicts by the true error, and what breaks the rule."""
    edges = (0.0, 1e-3, 1e-2, 0.1, 0.5, float("inf"))
    heads = [f"{low:g} to {high:g}" for low, high in itertools.pairwise(edges)]
    lines = ["| verdict | " + " | ".join(f"z² {head}" for head in heads) + " | sd ratios |"]
    lines.append("|---" * (len(heads) + 2) + "|")
    for verdict in VERDICTS:
        some = [row for row in rows if row["verdict"] == verdict]
        errors = [float(row["z2"]) for row in some]
        counts = [
            str(sum(low <= e < high for e in errors)) for low, high in itertools.pairwise(edges)
        ]
        if some:
            low, high = min(float(r["sd_min"]) for r in some), max(float(r["sd_max"]) for r in some)
            counts.append(f"{low:.2g} to {high:.2g}")
        lines.append(f"| {verdict} | " + " | ".join(counts) + " |")
    broken = [r for r in rows if r["verdict"] == "good" and not float(r["z2"]) <= 0.5]
    lines.append(f"\n{len(rows)} coresets; called good with z² above 0.5: {len(broken)}")
    return "\n".join(lines + [str(row) for row in broken])


def plot(rows):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for verdict, colour in zip(VERDICTS, ("C2", "C1", "C3"), strict=True):
        some = [row for row in rows if row["verdict"] == verdict]
        if some:
            x = [max(float(row["residual"]), 1e-8) for row in some]
            axes.scatter(x, [float(row["z2"]) for row in some], s=14, c=colour, label=verdict)
    axes.axhline(0.5, color="k", lw=0.7)
    axes.set(xscale="log", yscale="log", xlabel="residual variance", ylabel="true z²")
    axes.legend()
    figure.savefig(FOLDER / "calibration.png", dpi=90)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", nargs="*", default=NAMES)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--table", action="store_true", help="only print and plot what is there")
    arguments = parser.parse_args()
    if arguments.one:
        return run_one(arguments.one)
    for name in () if arguments.table else arguments.problem:
        command = [sys.executable, __file__, "--one", name]
        subprocess.run(command, env={**os.environ, "NPROC": "1"}, check=False)
    plot(read())
    print(table(read()))


if __name__ == "__main__":
    main()
