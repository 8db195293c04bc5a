"""Every example runs at a reduced size, and finds what is in its data."""

import importlib
from pathlib import Path

import jax
import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
ROWS = ["--rows", "5000", "--coreset-size", "250"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS"),
]


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the script of a name as from the shell; returns what its ``main`` returns."""
    monkeypatch.syspath_prepend(str(EXAMPLES))

    def run_script(name, *arguments, **options):
        with jax.enable_x64(False):
            returned = importlib.import_module(name).main([*ROWS, *arguments], **options)
        assert capsys.readouterr().out.strip()
        return returned

    return run_script


def _is_above(draws, value):
    """Whether a posterior lies clearly above a value: by three sds."""
    return draws.mean() - 3 * draws.std() > value


def test_cancelled_flights(run):
    fit = run("cancelled_flights")
    assert fit.certificate.verdict == "good"
    assert fit.coreset.rows["y"].mean() > 0.1  # of the data it is 0.02
    total = (fit.coreset.rows["y"] * fit.coreset.weights).sum() / fit.coreset.weights.sum()
    assert 0.015 < total < 0.03
    assert _is_above(-fit.posterior["visib"], 0.0)


def test_count_regression_agrees_with_statsmodels(run):
    fit, compared = run("count_regression")
    assert fit.certificate.verdict == "good"
    difference = compared["posterior mean"] - compared["statsmodels"]
    assert (difference.abs() < 0.3 * compared["standard error"]).all()
    ratio = compared["posterior sd"] / compared["standard error"]
    assert ratio.between(0.85, 1.15).all()


def test_own_model(run):
    fit = run("own_model")
    assert fit.certificate.verdict == "good"
    assert 430 < fit.posterior["miles_per_hour"].mean() < 520  # an airliner's speed
    assert _is_above(fit.posterior["fixed_minutes"], 5.0)


def test_numpyro_model(run):
    fit = run("numpyro_model")
    assert fit.certificate.verdict == "good"
    diseases = 5
    assert _is_above(-fit.posterior["on_never"][..., diseases], 0.0)  # the ill do see a doctor,
    assert _is_above(fit.posterior["on_rate"][..., diseases], 0.0)  # and more often


def test_pymc_model(run):
    fit = run("pymc_model", "--rows", "15000")  # with fewer the levels' spread may be zero
    assert fit.certificate.verdict in ("good", "usable")
    assert _is_above(fit.posterior["slope"][..., 0], 0.2)  # delays pile up over the day
    assert fit.posterior["level"].shape[-1] >= 14


def test_hot_dog_needs_no_learning_rate(run):
    errors = run("hot_dog_optimizer", num_steps=2_000)
    others = [error for name, error in errors.items() if name != "hot_dog()"]
    assert errors["hot_dog()"] < 1.5 * min(others)
    assert max(others) > 5 * min(others)
    assert np.isfinite(list(errors.values())).all()


def test_the_list_of_examples_is_complete():
    listed = (EXAMPLES / "README.md").read_text()
    scripts = {path.name for path in EXAMPLES.glob("*.py")} - {"example_data.py"}
    assert len(scripts) == 6
    assert all(f"`{name}`" in listed for name in scripts)
