"""The folder of a run: never overwritten without leave, every file whole or as it was."""

import errno
import json
import os

import numpy as np
import pandas
import pytest

import coremcmc
from coremcmc.cli.run_folder import RunFolder, fingerprint_of_files


@pytest.fixture(scope="module")
def fit():
    data = coremcmc.logistic_data(num_rows=500, num_features=2)
    with pytest.warns(UserWarning, match="hot-start"):
        return coremcmc.fit(
            coremcmc.LogisticRegression(), data, 20, preset="paper", num_iterations=20
        )


@pytest.fixture
def folder(tmp_path):
    made = RunFolder(tmp_path / "run")
    made.create({"request": {}})
    return made


# -- what is in the way ---------------------------------------------------------------------------


def test_a_new_folder_and_an_empty_one_are_free(tmp_path):
    RunFolder(tmp_path / "new").check_free(overwrite=False)
    RunFolder(tmp_path).check_free(overwrite=False)
    assert not (tmp_path / "new").exists()


def test_a_run_is_in_the_way_unless_told(folder):
    with pytest.raises(ValueError, match="--overwrite"):
        folder.check_free(overwrite=False)
    folder.check_free(overwrite=True)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_folder_with_other_things_is_never_taken(tmp_path, overwrite):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(ValueError, match="Name a new folder"):
        RunFolder(tmp_path).check_free(overwrite)
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="is a file"):
        RunFolder(tmp_path / "file").check_free(overwrite)


def test_a_new_run_takes_the_results_of_the_old_one_away_and_nothing_else(folder):
    ours = [folder.checkpoint, folder.checkpoint_of_size(100), folder.posterior, folder.report]
    for path in [*ours, folder.path / "notes.txt"]:
        path.touch()
    folder.create({"request": {"seed": 1}})
    assert not any(path.exists() for path in ours)
    assert (folder.path / "notes.txt").exists()
    assert folder.read_config()["request"] == {"seed": 1}


def test_two_processes_do_not_write_to_one_run(folder):
    is_taken = pytest.raises(ValueError, match="another coremcmc process")
    with folder.locked(), is_taken, folder.locked():
        pass
    with folder.locked():
        folder.write_config({"request": "once more"})
    assert folder.read_config()["request"] == "once more"


# -- what is missing or damaged -------------------------------------------------------------------


def test_what_is_no_run_is_refused(tmp_path, folder):
    with pytest.raises(ValueError, match="holds no run"):
        RunFolder.open(tmp_path)
    with pytest.raises(ValueError, match="does not exist"):
        RunFolder.open(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="no checkpoint yet"):
        folder.load_fit()
    folder.config.write_text('{"format"')
    with pytest.raises(ValueError, match="cannot be read"):
        folder.read_config()
    for before in ("other", "coremcmc-run-1"):
        folder.config.write_text(json.dumps({"format": before}))
        message = f"has the format '{before}'; this version reads 'coremcmc-run-2'. Use the"
        with pytest.raises(ValueError, match=message):
            folder.read_config()


def test_a_run_is_finished_when_trained_and_all_is_written(folder, fit):
    fit.save(folder.checkpoint)
    assert not folder.is_finished()
    assert folder.load_finished().iteration == 20
    for path in (folder.coreset, folder.posterior, folder.report):
        path.touch()
    assert folder.is_finished()
    import dataclasses

    dataclasses.replace(fit, stopped="interrupted").save(folder.checkpoint)
    assert not folder.is_finished()
    with pytest.raises(ValueError, match="is not finished"):
        folder.load_finished()


# -- what is written ------------------------------------------------------------------------------


def test_the_coreset_has_the_users_columns_and_row_numbers(folder, fit):
    table = pandas.DataFrame({"city": [f"c{i}" for i in range(500)]})
    table.index = np.arange(500) * 2 + 1  # as after rows with missing values were left out
    folder.write_coreset(fit, table)
    read = pandas.read_parquet(folder.coreset)
    np.testing.assert_array_equal(read["row"], fit.coreset.indices * 2 + 1)
    np.testing.assert_array_equal(read["weight"], fit.coreset.weights)
    assert read["city"].tolist() == [f"c{i}" for i in fit.coreset.indices]


def test_the_posterior_is_what_arviz_reads(folder, fit):
    import arviz

    folder.write_posterior(fit)
    read = arviz.from_netcdf(folder.posterior)
    np.testing.assert_array_equal(read["posterior"]["beta"], fit.posterior["beta"])


@pytest.mark.parametrize("name", ["config", "coreset", "posterior", "report", "checkpoint"])
@pytest.mark.parametrize("where", ["fsync", "replace"])
def test_on_a_full_disk_the_earlier_file_survives(folder, fit, name, where, monkeypatch):
    path = getattr(folder, name)
    path.write_bytes(b"earlier")

    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(f"coremcmc.files.os.{where}", full)
    write = {
        "config": lambda: folder.write_config({}),
        "coreset": lambda: folder.write_coreset(fit, None),
        "posterior": lambda: folder.write_posterior(fit),
        "report": lambda: folder.write_report(fit),
        "checkpoint": lambda: fit.save(folder.checkpoint),
    }[name]
    if name == "report":  # reads the coreset's table
        folder.coreset.unlink(missing_ok=True)
    with pytest.raises(OSError, match="No space"):
        write()
    assert path.read_bytes() == b"earlier"
    assert not [p.name for p in folder.path.iterdir() if p.name.endswith(".part")]


# -- fingerprints ---------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [10, 100_000, 5_000_000])
@pytest.mark.parametrize("where", [0.0, 0.999999])
def test_a_changed_byte_changes_the_fingerprint(tmp_path, size, where):
    path = tmp_path / "data.bin"
    content = bytearray(os.urandom(size))
    path.write_bytes(content)
    before = fingerprint_of_files([path])
    assert before == fingerprint_of_files([path])
    content[int(where * size)] ^= 1
    path.write_bytes(content)
    assert before != fingerprint_of_files([path])
