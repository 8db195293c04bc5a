"""``python -m experiments``: a whole small study, and what is said about bad input."""

import ast
import hashlib
import json
import os
import subprocess
import sys
from itertools import product
from pathlib import Path
from types import ModuleType, SimpleNamespace

import jax
import numpy as np
import pyarrow.parquet as pq
import pytest

import coremcmc
import experiments
from experiments import figures
from experiments.methods import METHODS, configs
from experiments.progress import progress_bar
from experiments.runner import Plan
from experiments.scales import SCALES, record_iterations
from experiments.store import FORMAT, Job, Store
from experiments.tasks import TASKS
from tests.experiments.fake_results import write_job
from tests.experiments.study_data import call, truncate, write_data, write_reference

ROOT = Path(experiments.__file__).parent
SMOKE = SCALES["smoke"]
JOBS = [Job(task, size) for task, size in product(TASKS.values(), SMOKE.coreset_sizes)]
COMPUTED = ["gaussian", "sparse", "poisson"]  # the samplers have tests of their own
FIGURES = [f"fig{i}" for i in range(1, 8)] + [f"fig{i}-M20" for i in (4, 5, 6)]

slow = pytest.mark.slow


def _command(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "experiments", *map(str, arguments)],
        cwd=ROOT.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return SimpleNamespace(status=done.returncode, out=done.stdout, errors=done.stderr)


def _state(folder):
    return {
        path: (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """References, then all jobs, then all figures, each by its command."""
    folder = tmp_path_factory.mktemp("study")
    data, results, pictures = write_data(folder / "data"), folder / "results", folder / "pictures"
    references = results / "references"
    smoke = ("--scale", "smoke")
    tasks = [part for name in COMPUTED for part in ("--task", name)]
    outcomes = {
        "reference": _command("reference", *smoke, "--data", data, "--out", references, *tasks)
    }
    for name in TASKS.keys() - COMPUTED:
        write_reference(TASKS[name], data, references)
    run = ("run", *smoke, "--data", data, "--results", results)
    outcomes["run"] = _command(*run)
    before = _state(results)
    outcomes["again"] = _command(*run)
    outcomes["figures"] = _command("figures", *smoke, "--results", results, "--out", pictures)
    return SimpleNamespace(
        data=data,
        results=results,
        pictures=pictures,
        outcomes=outcomes,
        before=before,
        after=_state(results),
    )


def _table(study, job, name):
    return pq.read_table(study.results / job.name / f"{name}.parquet").to_pandas()


@slow
def test_every_command_succeeds_without_a_word_too_many(study):
    for name, outcome in study.outcomes.items():
        assert outcome.status == 0, (name, outcome.errors)
    assert [path.name for path in sorted((study.results / "references").iterdir())] == sorted(
        f"{name}-{task.load(study.data).name}.json" for name, task in TASKS.items()
    )
    assert study.outcomes["run"].out.startswith("12 of 12 jobs run")
    lines = study.outcomes["run"].errors.splitlines()
    assert [line.split(":")[0] for line in lines] == [job.name for job in JOBS]


@slow
@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_every_task_and_method_has_results(study, job):
    runs, traces = _table(study, job, "runs"), _table(study, job, "traces")
    labels = ["method", "parameter", "hot_start", "trial"]
    expected = {
        (config.method, config.parameter, config.hot_start, trial)
        for config in configs(SMOKE)
        for trial in range(SMOKE.num_trials)
    }
    assert set(runs["method"]) == set(METHODS)
    assert set(runs[labels].itertuples(index=False, name=None)) == expected
    assert len(runs) == len(expected)
    assert set(traces[labels].itertuples(index=False, name=None)) == expected
    due = record_iterations(SMOKE.num_iterations)
    for _, trace in traces.groupby(labels):
        assert trace["iteration"].tolist() == due
        assert np.all(np.diff(trace["evaluations"]) > 0)
    assert np.isfinite(runs.loc[runs["failure"] == 0, "z2"]).all()
    assert (runs["failure"] == 0).mean() > 0.5
    hot_dog = runs[(runs["method"] == "hot_dog") & runs["hot_start"]]
    assert (hot_dog["failure"] == 0).all()


@slow
@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_errors_follow_from_the_stored_means(study, job):
    name = f"{job.task.name}-{job.task.load(study.data).name}.json"
    reference = json.loads((study.results / "references" / name).read_text())
    runs, traces = _table(study, job, "runs"), _table(study, job, "traces")
    for run in runs.itertuples():
        terms = zip(run.mean, reference["mean"], reference["sd"], strict=True)
        squares = [((mu - mean) / sd) ** 2 for mean, mu, sd in terms]
        np.testing.assert_allclose(run.z2, sum(squares) / len(squares), rtol=1e-10)
    last = traces[traces["iteration"] == SMOKE.num_iterations]
    labels = ["method", "parameter", "hot_start", "trial"]
    both = runs.merge(last, on=labels, validate="one_to_one", suffixes=("", "_traced"))
    assert len(both) == len(runs)
    np.testing.assert_array_equal(both["z2"], both["z2_traced"])  # of the first 200
    assert (both["evaluations"] == both["evaluations_traced"]).all()


@slow
@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_the_gate_ends_where_the_weights_are_released(study, job):
    runs, gate = _table(study, job, "runs"), _table(study, job, "gate")
    held = runs[runs["hot_start"]]
    assert (runs.loc[~runs["hot_start"], "passed_at"] == 0).all()
    assert set(gate["trial"]) == set(range(SMOKE.num_trials))
    for trial, rows in gate.groupby("trial"):
        (passed_at,) = held.loc[held["trial"] == trial, "passed_at"].unique()
        (is_forced,) = held.loc[held["trial"] == trial, "is_forced"].unique()
        assert rows["iteration"].tolist() == list(range(1, passed_at + 1))
        assert 30 <= passed_at <= SMOKE.max_hold
        assert (rows["statistic"].iloc[-1] < 0.5) != is_forced
        assert (rows["statistic"].iloc[:-1] >= 0.5).all()
        assert np.isinf(rows["statistic"].iloc[:29]).all()
        assert np.isfinite(rows["gradient_norm"]).all()


@slow
def test_a_second_run_has_nothing_to_do(study):
    again = study.outcomes["again"]
    assert again.out.startswith("0 of 12 jobs run")
    assert again.errors == ""
    assert study.after == study.before
    assert len(study.before) == len(JOBS) * 4 + len(TASKS) + 1


@slow
def test_every_figure_is_drawn(study):
    expected = {f"{name}.{kind}" for name in FIGURES for kind in ("png", "pdf", "csv")}
    assert {path.name for path in study.pictures.iterdir()} >= expected
    for name in FIGURES:
        assert (study.pictures / f"{name}.png").stat().st_size > 20_000
        assert (study.pictures / f"{name}.pdf").stat().st_size > 5_000
        assert len((study.pictures / f"{name}.csv").read_text().splitlines()) > 5
    printed = study.outcomes["figures"].out.split()
    assert {Path(line).name for line in printed} == expected


@slow
def test_the_page_is_written(study, monkeypatch, capsys):
    monkeypatch.setattr(figures, "draw_figures", lambda store, out: [])  # they are there already
    options = ("--scale", "smoke", "--results", study.results, "--out", study.pictures)
    assert call("report", *options) == 0
    page = study.pictures / "index.html"
    assert capsys.readouterr().out.strip() == str(page)
    text = page.read_text()
    assert "12 of 12 jobs" in text
    assert text.count("<img ") == len(FIGURES)


@slow
def test_jobs_are_listed(study, capsys):
    options = ("--scale", "smoke", "--results", study.results, "--data", study.data)
    assert call("list", *options) == 0
    out = capsys.readouterr().out
    for job in JOBS:
        assert job.name in out
    assert out.count("120 of 120") == len(JOBS)


def test_jobs_without_results_or_data_are_listed(tmp_path, capsys):
    (tmp_path / "data").mkdir()
    options = ("--results", tmp_path / "new", "--data", tmp_path / "data")
    assert call("list", "--scale", "smoke", *options) == 0
    out = capsys.readouterr().out
    assert out.count("0 of 120") == len(JOBS)
    assert "missing" in out
    assert not (tmp_path / "new").exists()


@pytest.fixture
def place(tmp_path):
    """A folder with one of everything that a command may be given by mistake."""
    write_data(tmp_path / "data")
    write_data(tmp_path / "other", seed=12)
    (tmp_path / "empty").mkdir()
    write_data(tmp_path / "cut")
    truncate(tmp_path / "cut" / "bikes.npz")
    write_data(tmp_path / "lacking")
    np.savez(tmp_path / "lacking" / "bikes.npz", X=np.zeros((3, 2)))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    headers = {
        "newer": json.dumps({"format": FORMAT + 1, "scale": "smoke"}),
        "paper": json.dumps({"format": FORMAT, "scale": "paper"}),
        "broken": "{",
    }
    for name, header in headers.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "study.json").write_text(header)
    (tmp_path / "file").write_text("in the way")
    store, job = Store(tmp_path / "done", SMOKE), Job(TASKS["poisson"], 20)
    identity = Plan([job], store, 120, tmp_path / "data", lambda *_: None).identity(job)
    write_job(store, "poisson", 20, identity=identity)
    return tmp_path


POISSON = "run --scale smoke --task poisson --coreset-size 20"
GAUSSIAN = "run --scale smoke --task gaussian --coreset-size 20"
BAD = {
    "run --scale smoke --task nonsense": "--task nonsense: unknown. The tasks are gaussian",
    "run --scale nonsense": "--scale nonsense: unknown. The scales are smoke",
    "figures --scale nonsense": "--scale nonsense: unknown",
    "run --scale smoke --coreset-size 7": "--coreset-size 7: scale smoke has 20, 40",
    f"{POISSON} --data PLACE/nowhere": "--data PLACE/nowhere: there is no such folder",
    f"{POISSON} --data PLACE/file": "--data PLACE/file: there is no such folder",
    f"{POISSON} --data PLACE/empty": "PLACE/empty has no bikes.npz",
    f"{POISSON} --data PLACE/cut": "PLACE/cut/bikes.npz cannot be read",
    f"{POISSON} --data PLACE/lacking": "PLACE/lacking/bikes.npz has no array of numbers y",
    f"{POISSON} --data PLACE/data": "no reference posterior for these data (bikes, digest",
    f"{GAUSSIAN} --results PLACE/mine": "--results PLACE/mine: not empty, and not a results folder",
    f"{GAUSSIAN} --results PLACE/newer": f"--results PLACE/newer: written in format {FORMAT + 1}",
    f"{GAUSSIAN} --results PLACE/paper": "--results PLACE/paper: holds a study of scale 'paper'",
    f"{GAUSSIAN} --results PLACE/broken": "--results PLACE/broken: written in format None",
    f"{GAUSSIAN} --results PLACE/file/new": "--results PLACE/file/new: cannot write there",
    f"{GAUSSIAN} --results PLACE/file": "--results PLACE/file: cannot write there",
    f"{POISSON} --results PLACE/done --data PLACE/other": "of another version, seed or data set",
    f"{POISSON} --results PLACE/done --data PLACE/data --seed 1": "of another version, seed or",
    f"{GAUSSIAN} --seed -1": "--seed -1: must not be negative",
    f"{GAUSSIAN} --iterations 0": "--iterations 0: must lie between 1 and 120",
    f"{GAUSSIAN} --iterations 121": "--iterations 121: must lie between 1 and 120",
    f"{GAUSSIAN} --device abacus": "--device abacus: must be auto, cpu or gpu",
    "figures --scale smoke --results PLACE/nowhere": "holds no results of a job",
    "report --scale smoke --results PLACE/mine": "not a results folder",
    "list --scale smoke --results PLACE/newer": "written in format",
    "reference --scale smoke": "--out: a smoke-scale reference needs a folder of its own",
    "reference --scale smoke --task nonsense --out PLACE/new": "--task nonsense: unknown",
}


@pytest.mark.parametrize("arguments", BAD)
def test_bad_input_is_told_in_one_line(place, capsys, arguments):
    message = BAD[arguments].replace("PLACE", str(place))
    command = arguments.replace("PLACE", str(place)).split()
    if command[0] == "run" and "--results" not in command:
        command += ["--results", str(place / "new")]
    assert call(*command) == 2
    out, errors = capsys.readouterr()
    assert out == ""
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1
    assert message in errors
    assert not (place / "new").exists()


def test_matching_results_are_accepted(place, capsys):
    """The other half of the refusals above: the same seed and data are not refused."""
    command = f"{POISSON} --results {place}/done --data {place}/data"
    assert call(*command.split()) == 0
    assert capsys.readouterr().out.startswith("0 of 1 jobs run")


def test_a_gpu_that_is_not_there_is_said(tmp_path, capsys):
    if jax.default_backend() == "gpu":
        pytest.skip("there is a GPU")
    assert call(*GAUSSIAN.split(), "--device", "gpu", "--results", tmp_path / "new") == 2
    errors = capsys.readouterr().err
    assert errors.startswith("error: --device gpu: JAX sees no GPU here.")
    assert errors.count("\n") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_said(tmp_path, capsys):
    tmp_path.chmod(0o555)
    try:
        assert call(*GAUSSIAN.split(), "--results", tmp_path) == 2
    finally:
        tmp_path.chmod(0o755)
    errors = capsys.readouterr().err
    assert "cannot write there" in errors
    assert errors.count("\n") == 1


def test_corrupt_results_are_not_drawn(place, capsys):
    table = place / "done" / "poisson-20" / "runs.parquet"
    truncate(table)
    options = ("--scale", "smoke", "--results", place / "done", "--out", place / "pictures")
    assert call("figures", *options) == 2
    errors = capsys.readouterr().err
    assert f"{table} is corrupt" in errors
    assert errors.count("\n") == 1
    assert not (place / "pictures").exists()


@pytest.mark.parametrize(
    "arguments", ["nonsense", "run --nonsense", "run --coreset-size x", "run --scale"]
)
def test_bad_usage_is_told_without_a_traceback(capsys, arguments):
    assert call(*arguments.split()) == 2
    errors = capsys.readouterr().err
    assert "Error" in errors
    assert "Traceback" not in errors


def test_bad_input_ends_the_process_with_status_2():
    outcome = _command("run", "--task", "nonsense")
    assert outcome.status == 2
    assert outcome.out == ""
    assert outcome.errors.startswith("error: --task nonsense: unknown.")
    assert outcome.errors.count("\n") == 1


def test_what_is_said_stays_in_one_line_and_is_not_read_as_markup(capsys):
    line = "/a/[red]folder/" + "long/" * 40 + "traces.parquet is corrupt"
    with progress_bar([JOBS[0]], 120) as (report, say):
        say(line)
        report(JOBS[0], 40, 1.0)
        report(JOBS[0], 120, 2.0)
    assert capsys.readouterr().err == f"{line}\ngaussian-20: 120 iterations, 2 s\n"


ALLOWED = {
    "coremcmc",
    "coremcmc.optimizers",
    "coremcmc.diagnostics",
    "coremcmc.algorithm.hot_start",
}


def _is_module(name):
    return isinstance(getattr(coremcmc, name), ModuleType)


def _used(path):
    """Modules of coremcmc that a file imports, and names that it takes from the top."""
    tree = ast.parse(path.read_text())
    modules, names = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules.add(node.module)
            if node.module == "coremcmc":
                names |= {alias.name for alias in node.names}
                modules |= {f"coremcmc.{name}" for name in names if _is_module(name)}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names |= {node.attr} if node.value.id == "coremcmc" else set()
    return {name for name in modules if name.split(".")[0] == "coremcmc"}, names


def test_the_study_uses_the_public_surface_only():
    used = {path.name: _used(path) for path in sorted(ROOT.glob("*.py"))}
    assert set().union(*(modules for modules, _ in used.values())) == ALLOWED
    public = {*coremcmc.__all__, "__version__", "optimizers", "diagnostics"}
    for name, (_, names) in used.items():
        assert names <= public, name
