"""The command line."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

import coremcmc
from coremcmc.cli import app

RUNNER = CliRunner()
SMALL = ["--num-rows", "2000", "--coreset-size", "30", "--num-iterations", "200"]


def test_version_and_help():
    assert RUNNER.invoke(app, ["--version"]).output.strip() == f"coremcmc {coremcmc.__version__}"
    assert "demo" in RUNNER.invoke(app, ["--help"]).output


def test_demo_leaves_a_summary_a_plot_and_a_fit(tmp_path):
    result = RUNNER.invoke(app, ["demo", "--out", str(tmp_path / "new"), *SMALL])
    assert result.exit_code == 0, result.output
    fit = coremcmc.Fit.load(tmp_path / "new" / "fit.npz")
    assert fit.iteration == 200
    assert fit.summary() in result.output
    assert (tmp_path / "new" / "fit.png").stat().st_size > 20_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--coreset-size", "1"], "coreset_size must be at least 2"),
        (["--seed", "-1"], "must lie in 0 to"),
        (["--num-rows", "10"], "coreset_size must be at most 10"),
    ],
)
def test_bad_arguments_get_a_clear_line_and_an_exit_code(tmp_path, arguments, message):
    result = RUNNER.invoke(app, ["demo", "--out", str(tmp_path), *SMALL, *arguments])
    assert result.exit_code == 2
    assert message in " ".join(result.output.replace("│", " ").split())


def test_importing_the_package_sets_no_environment():
    """NPROC is for our own process, the command's, never for a user's."""
    code = "import os, coremcmc; assert 'NPROC' not in os.environ; print('clean')"
    environment = {"PATH": "", "HOME": "/"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert done.stdout.strip() == "clean", done.stderr
