"""Every command on a small run: what it prints, writes and leaves alone."""

import errno
import json
import os
import shutil

import numpy as np
import pandas
import pytest
from typer.testing import CliRunner

import coremcmc
from coremcmc.cli.app import app
from coremcmc.models.families import FAMILIES, LINKS

FORMULA = "late ~ hour + dist + C(origin)"
LOGISTIC = ["--family", "logistic", "--formula", FORMULA]
SHORT = ["--coreset-size", "50", "--iterations", "300", "--draws", "100"]
NAMES = ["Intercept", "hour", "dist", "C(origin)[T.JFK]", "C(origin)[T.LGA]"]


@pytest.fixture(scope="module")
def made(tmp_path_factory, small_table):
    """A finished run, and what the command printed."""
    folder = tmp_path_factory.mktemp("made")
    small_table.to_csv(folder / "flights.csv", index=False)
    arguments = ["fit", folder / "flights.csv", *LOGISTIC, *SHORT, "--out", folder / "run"]
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return folder / "run", done


@pytest.fixture
def run(made, tmp_path):
    """A copy of it, without the data beside it."""
    return shutil.copytree(made[0], tmp_path / "run")


# -- fit ------------------------------------------------------------------------------------------


def test_a_run_holds_coreset_posterior_report_checkpoint_and_config(made, small_table):
    import arviz

    run, _ = made
    files = {"coreset.parquet", "posterior.nc", "report.html", "checkpoint.npz", "config.json"}
    assert {p.name for p in run.iterdir()} == {*files, ".lock"}
    fit = coremcmc.Fit.load(run / "checkpoint.npz")
    coreset = pandas.read_parquet(run / "coreset.parquet")
    assert list(coreset.columns) == ["row", "weight", *small_table.columns]
    original = small_table.iloc[coreset["row"]].reset_index(drop=True)
    pandas.testing.assert_frame_equal(coreset[small_table.columns], original, check_dtype=False)
    np.testing.assert_array_equal(coreset["weight"], fit.coreset.weights)
    posterior = arviz.from_netcdf(run / "posterior.nc")["posterior"]
    assert [str(name) for name in posterior.data_vars] == NAMES
    assert posterior["hour"].shape == (8, 100)
    assert FORMULA in (run / "report.html").read_text()
    config = json.loads((run / "config.json").read_text())
    assert config["request"]["formula"] == FORMULA
    assert config["num_rows"] == 600
    assert config["versions"]["coremcmc"] == coremcmc.__version__
    assert config["data"][0]["bytes"] == os.path.getsize(config["request"]["data"])


def test_a_person_reads_the_verdict_then_the_posterior_then_the_files(made):
    run, done = made
    places = [done.stdout.index(text) for text in ("verdict: ", "C(origin)[T.JFK]", "report.html")]
    assert places == sorted(places)
    assert "600 rows" in done.stderr
    assert str(run / "posterior.nc") in done.stdout


def test_the_run_is_not_overwritten_without_leave(made, command, small_table, tmp_path):
    run, _ = made
    before = {p.name: p.stat().st_mtime_ns for p in run.iterdir()}
    data = json.loads((run / "config.json").read_text())["request"]["data"]
    done = command("fit", data, *LOGISTIC, *SHORT, "--out", run)
    assert done.exit_code == 2
    assert "--overwrite" in done.stderr
    wrong = command("fit", data, "--family", "logistic", "--formula", "x ~ y", "--out", run,
                    "--overwrite")  # fmt: skip
    assert wrong.exit_code == 2
    assert {p.name: p.stat().st_mtime_ns for p in run.iterdir()} == before


def test_overwriting_replaces_the_run(run, command, small_table, tmp_path):
    data = tmp_path / "other.parquet"
    small_table.to_parquet(data)
    arguments = ["--preset", "paper", "--coreset-size", "20", "--iterations", "10"]
    done = command("fit", data, *LOGISTIC, *arguments, "--out", run, "--overwrite", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["coreset_size"], found["iterations"], found["verdict"]) == (20, 10, None)
    assert len(pandas.read_parquet(run / "coreset.parquet")) == 20
    assert any("hot-start" in text for text in found["warnings"])


def test_rows_with_missing_values_are_left_out_when_told(command, small_table, tmp_path):
    table = small_table.assign(hour=small_table["hour"].where(small_table.index % 10 != 0))
    table.to_csv(tmp_path / "gaps.csv", index=False)
    arguments = ["--preset", "paper", "--coreset-size", "20", "--iterations", "10", "--quiet"]
    done = command(
        "fit", tmp_path / "gaps.csv", *LOGISTIC, *arguments, "--drop-missing", "--out",
        tmp_path / "run",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert done.output == ""  # --quiet
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (config["num_rows"], config["num_dropped"]) == (540, 60)
    coreset = pandas.read_parquet(tmp_path / "run" / "coreset.parquet")
    assert (coreset["row"] % 10 != 0).all()
    np.testing.assert_array_equal(coreset["dist"], small_table["dist"].iloc[coreset["row"]])


def test_constant_and_collinear_columns_are_named_in_a_warning(command, small_table, tmp_path):
    table = small_table.assign(one=1.0, twice=2 * small_table["hour"])
    table.to_csv(tmp_path / "data.csv", index=False)
    done = command(
        "fit", tmp_path / "data.csv", "--family", "logistic", "--formula",
        "late ~ hour + one + twice", "--preset", "paper", "--coreset-size", "20", "--iterations",
        "10", "--out", tmp_path / "run",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    warned = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
    assert any("one" in line for line in warned)
    assert any("twice" in line for line in warned)


def test_a_dry_run_says_what_to_expect_and_writes_nothing(command, csv, tmp_path):
    arguments = [*LOGISTIC, "--preset", "paper", "--coreset-size", "20", "--iterations", "1234"]
    before = sorted(tmp_path.iterdir())
    done = command("fit", csv, *arguments, "--dry-run")
    assert done.exit_code == 0, done.output
    for text in ("600", "hour, dist, origin, late", "GB", "about", "1,234 iterations"):
        assert text in done.stdout
    found = json.loads(command("fit", csv, *arguments, "--dry-run", "--json").stdout)
    assert found["num_rows"] == 600
    assert found["num_parameters"] == 5
    assert 0 < found["seconds"]["low"] <= found["seconds"]["high"] < 600
    assert found["memory_bytes"] > found["data_bytes"] > 0
    assert sorted(tmp_path.iterdir()) == before


def test_the_help_names_all_families_and_links(command):
    text = " ".join(command("fit", "--help").stdout.replace("│", " ").split())
    assert f"One of {', '.join(FAMILIES)}." in text
    assert f"One of {', '.join(LINKS)}." in text


@pytest.mark.parametrize(
    ("arguments", "name", "text"),
    [
        (["--prior", "normal(1.5, location=1)"], "beta", "normal(1.5, location=1)"),
        (["--intercept-prior", "cauchy(2)"], "Intercept", "cauchy(2)"),
        (["--scale-prior", "exponential(1)"], "sigma", "exponential(1)"),
        (["--df-prior", "gamma(3)"], "df", "gamma(3)"),
    ],
)
def test_options_of_before_say_on_stderr_how_they_are_spelled_now(
    command, csv, tmp_path, arguments, name, text
):
    rest = ["--family", "student_t", "--formula", "hour ~ dist", "--coreset-size", "20"]
    short = ["--preset", "paper", "--iterations", "2", "--draws", "10"]
    done = command("fit", csv, *rest, *short, *arguments, "--out", tmp_path / "run")
    assert done.exit_code == 0, done.output
    assert f'goes in the next release; write --prior {name}="{text}".' in done.stderr
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["request"]["terms"]["priors"] == {name: text}


def test_priors_by_the_names_of_their_parameters(command, csv, tmp_path):
    rest = ["--family", "gaussian", "--formula", "hour ~ dist", "--coreset-size", "20"]
    short = ["--preset", "paper", "--iterations", "2", "--draws", "10"]
    priors = ["--prior", "beta=normal(2.5)", "--prior", "sigma = half_normal(1)"]
    done = command("fit", csv, *rest, *short, *priors, "--out", tmp_path / "run")
    assert done.exit_code == 0, done.output
    assert "next release" not in done.stderr
    fit = coremcmc.Fit.load(tmp_path / "run" / "checkpoint.npz")
    described = fit.config["model"]
    assert "'beta': Normal(scale=2.5, location=0.0)" in described
    assert "'sigma': HalfNormal(scale=1.0)" in described
    assert "'Intercept': StudentT(scale=2.5" in described


# -- the others -----------------------------------------------------------------------------------


def test_resuming_a_finished_run_says_so(run, command):
    done = command("resume", run)
    assert done.exit_code == 0
    assert "finished already" in done.stdout


def test_resuming_writes_the_results_that_are_missing(made, command, tmp_path):
    run = shutil.copytree(made[0], tmp_path / "again")
    (run / "posterior.nc").unlink()
    (run / "report.html").unlink()
    before = (run / "coreset.parquet").read_bytes()
    done = command("resume", run, "--json")
    assert done.exit_code == 0, done.output
    assert (run / "posterior.nc").exists()
    assert (run / "report.html").exists()
    assert (run / "coreset.parquet").read_bytes() == before


def test_resuming_needs_the_same_data(run, command, small_table, tmp_path):
    (run / "posterior.nc").unlink()
    config = json.loads((run / "config.json").read_text())
    data = tmp_path / "moved.csv"
    config["request"]["data"] = str(data)
    (run / "config.json").write_text(json.dumps(config))
    done = command("resume", run)
    assert done.exit_code == 2
    assert "are gone" in done.stderr
    small_table.assign(hour=0.0).to_csv(data, index=False)
    config["data"][0]["path"] = str(data)
    (run / "config.json").write_text(json.dumps(config))
    done = command("resume", run)
    assert done.exit_code == 2
    assert "has changed since" in done.stderr


def test_more_draws_need_no_data(run, command):
    import arviz

    config = json.loads((run / "config.json").read_text())
    config["request"]["data"] = "/nowhere/at/all.csv"
    (run / "config.json").write_text(json.dumps(config))
    before = coremcmc.Fit.load(run / "checkpoint.npz")
    report = (run / "report.html").read_text()
    done = command("sample", run, "--num-draws", "150", "--chains", "3", "--seed", "5", "--json")
    assert done.exit_code == 0, done.output
    read = arviz.from_netcdf(run / "posterior.nc")
    assert read["posterior"]["hour"].shape == (3, 150)
    assert read["sample_stats"]["diverging"].shape == (3, 150)
    after = coremcmc.Fit.load(run / "checkpoint.npz")
    np.testing.assert_array_equal(after.sampled["hour"], read["posterior"]["hour"])
    np.testing.assert_array_equal(after.coreset.weights, before.coreset.weights)
    assert (run / "report.html").read_text() != report
    found = json.loads(done.stdout)["posterior"]["hour"]
    assert found["mean"] == pytest.approx(float(read["posterior"]["hour"].mean()))
    sd = before.sampled["hour"].std()
    assert abs(found["mean"] - before.sampled["hour"].mean()) < 0.5 * sd


def test_on_a_full_disk_the_earlier_posterior_survives(run, command, monkeypatch):
    before = {p.name: p.read_bytes() for p in run.iterdir()}

    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "posterior.nc")

    monkeypatch.setattr("coremcmc.files.os.replace", full)
    done = command("sample", run, "--num-draws", "10", "--chains", "2", "--kernel", "hit_and_run")
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1].startswith("error: cannot write posterior.nc: No space")
    assert {p.name: p.read_bytes() for p in run.iterdir()} == before


def test_only_a_finished_run_is_drawn_from(run, command):
    import dataclasses

    fit = coremcmc.Fit.load(run / "checkpoint.npz")
    dataclasses.replace(fit, stopped="running").save(run / "checkpoint.npz")
    done = command("sample", run)
    assert done.exit_code == 2
    assert f"coremcmc resume {run}" in done.stderr


def test_the_report_is_written_anew(run, command):
    (run / "report.html").unlink()
    done = command("report", run)
    assert done.exit_code == 0, done.output
    assert done.stdout.strip() == str(run / "report.html")
    assert FORMULA in (run / "report.html").read_text()


def test_the_summary_shows_and_tells(run, command):
    shown = command("summary", run).stdout
    for name in NAMES:
        assert name in shown
    told = json.loads(command("summary", run, "--json").stdout)
    fit = coremcmc.Fit.load(run / "checkpoint.npz")
    assert told["verdict"] == fit.certificate.verdict
    assert list(told["posterior"]) == NAMES
    assert told["posterior"]["dist"]["sd"] == pytest.approx(fit.posterior["dist"].std(ddof=1))
    assert command("summary", run, "--quiet").output == ""


@pytest.mark.parametrize("name", ["fit", "resume", "sample", "report", "summary", "demo"])
def test_every_command_has_help_with_examples(command, name):
    shown = command(name, "--help").stdout
    assert "Example" in shown
    assert f"coremcmc {name}" in shown


def test_version_and_help(command):
    assert command("--version").output.strip() == f"coremcmc {coremcmc.__version__}"
    assert "First steps" in command("--help").output
