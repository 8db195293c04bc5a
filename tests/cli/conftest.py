"""The command, in this process and as a program of its own."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from coremcmc.cli.app import app

PROGRAM = Path(sys.executable).with_name("coremcmc")


@pytest.fixture
def command():
    """Run the command in this process: ``command("fit", path, …)``."""

    def invoke(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return invoke


@pytest.fixture(scope="session")
def environment(tmp_path_factory):
    """The environment of the installed program, with a cache folder of its own."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "COREMCMC_"))}
    return {**inherited, "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache")), "COLUMNS": "200"}


@pytest.fixture(scope="session")
def program(environment):
    """Run the installed console script: ``program("fit", path, …)``."""

    def run(*arguments, **options):
        return subprocess.run(
            [PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False,
            **{"env": environment, "timeout": 300, **options},
        )  # fmt: skip

    return run


@pytest.fixture(scope="session")
def small_table():
    """600 rows of a logistic regression, with a category."""
    import pandas

    rng = np.random.default_rng(0)
    table = pandas.DataFrame(
        {
            "hour": rng.uniform(5, 23, 600).round(2),
            "dist": rng.lognormal(6.5, 0.5, 600).round(),
            "origin": rng.choice(["EWR", "JFK", "LGA"], 600),
        }
    )
    eta = 0.15 * (table["hour"] - 14) - 0.001 * (table["dist"] - 700) + (table["origin"] == "LGA")
    return table.assign(late=(rng.random(600) < 1 / (1 + np.exp(-eta))).astype(int))


@pytest.fixture
def csv(small_table, tmp_path):
    """The same as a file."""
    path = tmp_path / "flights.csv"
    small_table.to_csv(path, index=False)
    return path
