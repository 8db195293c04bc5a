"""Do two commits give the same numbers, to the last bit?

python benchmarks/same_numbers.py HEAD~3 HEAD     # or one commit, against the working tree

Each commit is checked out into a folder of its own. There a default fit, a fit of the paper's
preset and a formula fit through the command are made and saved; rows, weights, traces and draws
are then compared. Descriptions of models are not: they name modules, which may move.
"""

import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import numpy as np

REPOSITORY = Path(__file__).resolve().parents[1]

FITS = """
import sys
from pathlib import Path
import numpy as np
import coremcmc

out = Path(sys.argv[1])
rng = np.random.default_rng(1)
x = rng.standard_normal((20_000, 4))
y = rng.poisson(np.log1p(np.exp(1.0 + x @ np.array([0.5, -0.3, 0.2, 0.0]))))
for preset, size in (("default", 200), ("paper", 100)):
    extra = {} if preset == "default" else {"num_iterations": 3_000}
    model, rows = coremcmc.PoissonRegression(), {"x": x, "y": y}
    fit = coremcmc.fit(model, rows, size, preset=preset, seed=3, progress=False, **extra)
    fit.save(out / f"{preset}.npz")
"""

TABLE = """
import sys
import numpy as np, pandas as pd
rng = np.random.default_rng(2)
n = 10_000
table = pd.DataFrame({"a": rng.standard_normal(n), "b": rng.gamma(2.0, size=n)})
table["c"] = rng.choice(["u", "v", "w"], n)
eta = 0.4 * table["a"] - 0.5 * np.log(table["b"]) + (table["c"] == "v")
table["y"] = (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(int)
table.to_parquet(sys.argv[1])
"""


def fits_of(tree: Path, out: Path) -> None:
    """Make the three fits with the source in ``tree``."""
    env = {**os.environ, "PYTHONPATH": str(tree / "src"), "JAX_PLATFORMS": "cpu", "NPROC": "1"}

    def python(code: str, *arguments: object) -> None:
        command = [sys.executable, "-c", code, *map(str, arguments)]
        subprocess.run(command, env=env, check=True, cwd=out, stdout=subprocess.DEVNULL)

    python(FITS, out)
    python(TABLE, out / "table.parquet")
    project = tomllib.loads((tree / "pyproject.toml").read_text())
    module, name = project["project"]["scripts"]["coremcmc"].split(":")
    command = f"from {module} import {name}; {name}()"
    formula = ["--formula", "y ~ a + log(b) + C(c)", "--family", "logistic"]
    sizes = ["--coreset-size", "150", "--quiet", "--out", out / "run"]
    python(command, "fit", out / "table.parquet", *formula, *sizes)


def differences(first: Path, second: Path) -> list[str]:
    """Name the arrays of a saved fit that are not the same."""
    with np.load(first) as one, np.load(second) as two:
        names = {name for name in (*one.files, *two.files) if name != "meta.json"}
        return [
            name
            for name in sorted(names)
            if name not in one.files
            or name not in two.files
            or one[name].tobytes() != two[name].tobytes()
        ]


def main() -> None:
    commits = sys.argv[1:] or ["HEAD"]
    with tempfile.TemporaryDirectory() as folder:
        outs = []
        for number, commit in enumerate([*commits, None][:2]):
            tree, out = Path(folder) / f"tree{number}", Path(folder) / f"out{number}"
            out.mkdir()
            if commit is None:
                tree = REPOSITORY
            else:
                tree.mkdir()
                archive = subprocess.Popen(
                    ["git", "archive", commit], cwd=REPOSITORY, stdout=subprocess.PIPE
                )
                subprocess.run(["tar", "x", "-C", tree], stdin=archive.stdout, check=True)
            fits_of(tree, out)
            outs.append(out)
        found = False
        for name in ("default.npz", "paper.npz", "run/checkpoint.npz"):
            changed = differences(outs[0] / name, outs[1] / name)
            with np.load(outs[1] / name) as arrays:
                count = len(arrays.files)
            told = f"these differ: {', '.join(changed)}" if changed else "all equal"
            print(f"{name}, {count} arrays: {told}")
            found |= bool(changed)
    sys.exit(found)


if __name__ == "__main__":
    main()
