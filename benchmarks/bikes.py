"""Error of the paper's recipe on the paper's bikes data: ``python benchmarks/bikes.py``.

The average squared z-score of the running posterior mean against the full-data posterior that the
paper's authors published. Needs the data folder beside the checkout (CONTRIBUTING.md).
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

import coremcmc

DATA = Path(__file__).parents[2] / "shared" / "data"


def main(num_iterations=12_500, seeds=range(3)):
    if not DATA.is_dir():
        sys.exit(f"no data folder at {DATA}")
    with np.load(DATA / "bikes.npz") as file:
        data = {"x": file["X"], "y": file["y"]}
    reference = json.loads((DATA / "reference_posteriors.json").read_text())["bikes"]
    mean, sd = reference["mean"], np.sqrt(reference["variance"])
    errors = []
    for seed in seeds:
        began = time.process_time()
        model = coremcmc.PoissonRegression()
        fit = coremcmc.fit(
            model, data, 1000, preset="paper", num_iterations=num_iterations, seed=seed
        )
        trace = fit.squared_z(mean, sd, trace=True)
        errors.append(trace[-1])
        print(
            f"seed {seed}: hot start at {fit.hot_start['passed_at']}, z² {trace[0]:.3g} at first, "
            f"{trace[-1]:.3g} after {fit.iteration:,} iterations, "
            f"{time.process_time() - began:.1f} s of CPU with compilation"
        )
    print(f"median z² {np.median(errors):.3g}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
