"""Error against CPU time, ours beside its rivals: ``NPROC=1 python benchmarks/comparison.py``.

Writes ``docs/benchmarks/comparison.csv``, a plot for each problem, and prints the table. Every
problem runs in a process of its own, so that memory is its own. With ``--problem NAME ...`` only
these run, and take the place of their old rows; ``--table`` only prints and plots what is there.
"""

import argparse
import csv
import os
import statistics
import subprocess
import sys
import time
import traceback
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "docs" / "benchmarks"
TABLE = FOLDER / "comparison.csv"
COLUMNS = [
    *("problem", "N", "method", "M", "seed", "z2", "sd_min", "sd_max", "residual", "pareto_k"),
    *("verdict", "cpu", "cpu_with", "peak_gb", "reference", "note"),
]

METHODS = ("laplace", "ours", "subsample", "nuts", "nuts_plain", "hmcecs", "paper")


def read():
    if not TABLE.exists():
        return []
    with TABLE.open(newline="") as file:
        return list(csv.DictReader(file))


def write(rows):
    FOLDER.mkdir(parents=True, exist_ok=True)
    with TABLE.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def plain(value):
    return f"{value:.4g}" if isinstance(value, float) else value


def run_one(name, only):
    import comparison_methods
    from comparison_problems import PROBLEMS

    began = time.process_time()
    problem = PROBLEMS[name]()
    print(f"{name}: N = {problem.num_rows:,}, {problem.reference}", flush=True)
    print(f"  data and reference: {time.process_time() - began:.0f} s of CPU", flush=True)
    for method in only or problem.methods:
        rows = [r for r in read() if (r["problem"], r["method"]) != (name, method)]
        try:
            for row in comparison_methods.METHODS[method](problem):
                row |= {"problem": name, "N": problem.num_rows, "method": method}
                row["reference"] = problem.reference
                rows.append({key: plain(value) for key, value in row.items()})
                write(rows)
                print("  " + ", ".join(f"{k} {plain(v)}" for k, v in row.items()), flush=True)
        except Exception:
            traceback.print_exc()
            note = f"FAILED: {traceback.format_exc().splitlines()[-1]}"[:200]
            rows.append({"problem": name, "N": problem.num_rows, "method": method, "note": note})
            write(rows)


def groups(rows):
    """Rows of one problem, method and size together, in the order of their names."""
    found = {}
    for row in sorted(rows, key=lambda row: (row["problem"], METHODS.index(row["method"]))):
        key = (row["problem"], row["method"], row["M"] if row["method"] != "hmcecs" else "")
        found.setdefault(key, []).append(row)
    return found


def numbers(rows, column):
    return [float(row[column]) for row in rows if row[column]]


def cell(rows, column, with_worst=False):
    """Median of a column, and the largest in brackets."""
    values = numbers(rows, column)
    if not values:
        return ""
    middle = f"{statistics.median(values):.2g}"
    return f"{middle} ({max(values):.2g})" if with_worst and len(values) > 1 else middle


def table(rows):
    lines = [
        "| problem | method | M | z² median (worst) | sd ratio, all seeds | residual | verdicts |"
        " CPU s | with compilation |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for (problem, method, size), some in groups(rows).items():
        lows, highs = numbers(some, "sd_min"), numbers(some, "sd_max")
        spread = f"{min(lows):.2f}-{max(highs):.2f}" if lows else ""
        verdicts = [row["verdict"] for row in some if row["verdict"]]
        counted = ", ".join(f"{verdicts.count(v)} {v}" for v in sorted(set(verdicts)))
        marked = "*" if any("EXTRAPOLATED" in row["note"] for row in some) else ""
        failed = "failed" if any("FAILED" in row["note"] for row in some) else ""
        cells = (
            problem,
            method,
            size,
            cell(some, "z2", with_worst=True) or failed,
            spread,
            cell(some, "residual"),
            counted,
            cell(some, "cpu") + marked,
            cell(some, "cpu_with"),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def plot(rows):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    for name in dict.fromkeys(row["problem"] for row in rows):
        figure, axes = plt.subplots(figsize=(5, 3.6), layout="constrained")
        for (_, method, size), some in groups([r for r in rows if r["problem"] == name]).items():
            points = [(float(r["cpu"]), float(r["z2"])) for r in some if r["cpu"] and r["z2"]]
            if points:
                label = f"{method} {size}".strip()
                marker = {"ours": "o", "laplace": "*", "subsample": "s"}.get(method, "D")
                axes.scatter(*zip(*points, strict=True), s=24, marker=marker, label=label)
        axes.set(
            xscale="log",
            yscale="log",
            title=name,
            xlabel="CPU seconds without compilation",
            ylabel="z² of the posterior mean",
        )
        if axes.collections:
            axes.legend(fontsize=7)
        figure.savefig(FOLDER / f"{name}.png", dpi=90)
        plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", nargs="*", help="names; all by default")
    parser.add_argument("--method", nargs="*", help="names; all that the problem has by default")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--table", action="store_true", help="only print and plot what is there")
    arguments = parser.parse_args()
    if arguments.one:
        return run_one(arguments.one, arguments.method)
    if not arguments.table:
        from comparison_problems import PROBLEMS

        for name in arguments.problem or PROBLEMS:
            command = [sys.executable, __file__, "--one", name]
            if arguments.method:
                command += ["--method", *arguments.method]
            subprocess.run(command, env={**os.environ, "NPROC": "1"}, check=False)
    plot(read())
    print(table(read()))


if __name__ == "__main__":
    main()
