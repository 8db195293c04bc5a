"""Models of the user's own through the command, a run that fails, and sizes that grow."""

import json
import shutil
import textwrap

import numpy as np
import pandas
import pytest

import coremcmc

MODELS = """
    import jax
    import jax.numpy as jnp
    import coremcmc

    location = coremcmc.FunctionModel(
        lambda p: -0.5 * p["mu"] ** 2 / 100,
        lambda p, rows: -0.5 * (rows["hour"] - p["mu"]) ** 2,
        lambda key: {"mu": 10 + jax.random.normal(key)},
    )
    broken = coremcmc.FunctionModel(
        lambda p: -0.5 * p["mu"] ** 2,
        lambda p, rows: jnp.where(rows["late"] == 2, jnp.nan, -(p["mu"] ** 2)),
        lambda key: {"mu": jnp.ones(())},
    )

    def lateness(table):
        import numpyro
        import numpyro.distributions as dist

        def model(hour, late=None):
            slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
            level = numpyro.sample("level", dist.Normal(0.0, 2.0))
            with numpyro.plate("rows", hour.shape[0]):
                eta = level + slope * (hour - 14.0) / 5.0
                numpyro.sample("late", dist.Bernoulli(logits=eta), obs=late)

        return coremcmc.from_numpyro(model, table[["hour", "late"]])
"""
PAPER = ["--preset", "paper", "--coreset-size", "30", "--iterations", "60", "--draws", "20"]


@pytest.fixture
def models(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(textwrap.dedent(MODELS))
    return path


def test_a_model_object_is_fitted_and_drawn_from_without_data(command, csv, models, tmp_path):
    run = tmp_path / "run"
    done = command("fit", csv, "--model", f"{models}:location", *PAPER, "--out", run, "--json")
    assert done.exit_code == 0, done.output
    assert set(json.loads(done.stdout)["posterior"]) == {"mu"}
    coreset = pandas.read_parquet(run / "coreset.parquet")
    assert list(coreset.columns) == ["row", "weight", "hour", "dist", "origin", "late"]
    csv.unlink()
    draw = ["sample", run, "--num-draws", "50", "--kernel", "hit_and_run", "--json"]
    done = command(*draw)
    assert done.exit_code == 0, done.output
    assert coremcmc.Fit.load(run / "checkpoint.npz").sampled["mu"].shape == (4, 50)
    models.write_text(models.read_text().replace("/ 100", "/ 99"))
    done = command(*draw)
    assert done.exit_code == 2
    assert "has changed since" in done.stderr


@pytest.mark.slow
def test_a_numpyro_model_of_a_function_of_the_table(command, csv, models, small_table, tmp_path):
    import statsmodels.api

    run = tmp_path / "run"
    arguments = ["--coreset-size", "100", "--iterations", "500", "--draws", "400"]
    done = command("fit", csv, "--model", f"{models}:lateness", *arguments, "--out", run, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["posterior"]
    features = statsmodels.api.add_constant((small_table["hour"] - 14) / 5)
    reference = statsmodels.api.Logit(small_table["late"], features).fit(disp=0)
    for name, mean, sd in zip(["level", "slope"], reference.params, reference.bse, strict=True):
        assert abs(found[name]["mean"] - mean) < 0.3 * sd  # the priors are wide
    draw = ["sample", run, "--num-draws", "50", "--chains", "2"]
    assert command(*draw).exit_code == 0
    csv.rename(tmp_path / "gone.csv")  # this kind of model is a function of the data
    done = command(*draw)
    assert done.exit_code == 2
    assert "are gone" in done.stderr


def test_a_run_that_fails_says_why(command, csv, models, small_table, tmp_path):
    """A row that is not in the coreset, whose log-likelihood is NaN."""
    small_table.assign(late=small_table["late"].where(small_table.index != 3, 2)).to_csv(csv)
    run = tmp_path / "run"
    done = command("fit", csv, "--model", f"{models}:broken", *PAPER, "--out", run)
    assert done.exit_code == 1, done.output
    assert "log-likelihood of NaN" in done.stderr.splitlines()[-1]
    assert str(run / "checkpoint.npz") in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.output
    assert not (run / "posterior.nc").exists()
    assert coremcmc.Fit.load(run / "checkpoint.npz").stopped == "failed"


@pytest.mark.slow
def test_a_size_that_grows_is_kept_size_by_size(command, csv, tmp_path, monkeypatch):
    run = tmp_path / "run"
    formula = ["--family", "logistic", "--formula", "late ~ hour + dist"]
    grow = ["--coreset-size", "auto", "--iterations", "400"]
    done = command("fit", csv, *formula, *grow, "--out", run, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["coreset_size"] in (100, 200, 400)
    assert [p.name for p in run.glob("checkpoint*")] == ["checkpoint.npz"]

    # As it is after a kill, when this size was done and nothing else.
    killed = shutil.copytree(run, tmp_path / "killed")
    (killed / "checkpoint.npz").rename(killed / f"checkpoint-{found['coreset_size']}.npz")
    (killed / "posterior.nc").unlink()
    monkeypatch.setattr("coremcmc.fitting.growing.SMALLEST", found["coreset_size"])
    monkeypatch.setattr("coremcmc.fitting.run.Run.train", None)  # nothing is trained again
    done = command("resume", killed, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["posterior"] == found["posterior"]
    assert [p.name for p in killed.glob("checkpoint*")] == ["checkpoint.npz"]


def test_ctrl_c_before_the_training_says_how_to_begin_again(command, csv, tmp_path, monkeypatch):
    def pressed(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("coremcmc.fitting.run.Run.train", pressed)
    run = tmp_path / "run"
    formula = ["--family", "logistic", "--formula", "late ~ hour + dist"]
    done = command("fit", csv, *formula, *PAPER, "--out", run)
    assert done.exit_code == 130
    assert done.stderr.splitlines()[-1] == f"error: interrupted. Go on with: coremcmc resume {run}"
    monkeypatch.undo()
    done = command("resume", run, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["iterations"] == 60


def test_what_the_rows_of_a_function_are_not_is_not_mixed_up(command, csv, tmp_path):
    """Where a function makes other rows than the table's, the coreset has the model's columns."""
    path = tmp_path / "fewer.py"
    path.write_text(
        "import coremcmc\n"
        "def half(table):\n"
        "    some = table.iloc[::2]\n"
        "    return coremcmc.LogisticRegression(), {'x': some[['hour']].to_numpy() / 20,\n"
        "                                           'y': some['late'].to_numpy()}\n"
    )
    run = tmp_path / "run"
    done = command("fit", csv, "--model", f"{path}:half", *PAPER, "--out", run)
    assert done.exit_code == 0, done.output
    coreset = pandas.read_parquet(run / "coreset.parquet")
    assert list(coreset.columns) == ["row", "weight", "x_0", "y"]
    np.testing.assert_array_equal(
        coreset["row"], coremcmc.Fit.load(run / "checkpoint.npz").coreset.indices
    )
