"""Results on disk: what is refused, and what a broken file leads to."""

import json
import zipfile

import numpy as np
import pytest

from experiments.errors import StudyError
from experiments.store import FORMAT, SCHEMAS, Store
from tests.experiments.fake_results import FAKE, write_job
from tests.experiments.study_data import JOB, flip, truncate


@pytest.fixture
def store(tmp_path):
    """One made-up job."""
    store = Store(tmp_path / "results", FAKE)
    write_job(store, "gaussian", 20, identity="made up")
    return store


def _edit(path, **changes):
    facts = json.loads(path.read_text())
    facts.update(changes)
    path.write_text(json.dumps({k: v for k, v in facts.items() if v is not None}))


DAMAGES = {
    "flipped byte": ("traces.parquet", lambda path: flip(path, 1_000)),
    "cut": ("runs.parquet", truncate),
    "missing": ("gate.parquet", lambda path: path.unlink()),
    "empty table": ("gate.parquet", lambda path: path.write_bytes(b"")),
    "not JSON": ("job.json", lambda path: path.write_text("{")),
    "not text": ("job.json", lambda path: path.write_bytes(b"\xff\xfe\xff")),
    "a list": ("job.json", lambda path: path.write_text("[]")),
    "empty": ("job.json", lambda path: path.write_text("")),
    "no digests": ("job.json", lambda path: _edit(path, files=None)),
    "digests of nothing": ("job.json", lambda path: _edit(path, files={})),
    "digests not a mapping": ("job.json", lambda path: _edit(path, files=[1])),
    "other digest": (
        "job.json",
        lambda path: _edit(path, files={f"{name}.parquet": "0" for name in SCHEMAS}),
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_broken_file_is_named_and_nothing_is_read(store, damage):
    name, do = DAMAGES[damage]
    assert store.problem(JOB) is None
    assert store.read(JOB, "runs").num_rows > 0
    do(store.path(JOB, name))
    problem = store.problem(JOB)
    assert problem is not None
    assert "\n" not in problem
    assert str(store.folder / JOB.name) in problem
    for table in SCHEMAS:
        with pytest.raises(StudyError, match=r"Run the job again"):
            store.read(JOB, table)


def test_every_byte_of_a_table_counts(store):
    path = store.path(JOB, "gate.parquet")
    content = path.read_bytes()
    for place in range(0, len(content), max(len(content) // 50, 1)):
        flip(path, place)
        assert "corrupt" in store.problem(JOB), place
        path.write_bytes(content)
    assert store.problem(JOB) is None


def test_tables_are_not_read_before_their_record_is_written(store):
    """A kill between the tables and job.json leaves tables that nothing vouches for."""
    store.path(JOB, "job.json").unlink()
    assert store.problem(JOB) is None
    with pytest.raises(StudyError, match="has no results of the job gaussian-20"):
        store.read(JOB, "traces")


def test_tables_come_back_as_they_were(store):
    table = store.read(JOB, "traces")
    assert table.schema == SCHEMAS["traces"]
    again = Store(store.folder, FAKE)
    again.write(JOB, {name: store.read(JOB, name) for name in SCHEMAS}, {"num_iterations": 1})
    assert again.read(JOB, "traces").equals(table)
    assert not list(store.folder.rglob("*.partial"))


def test_forgetting_a_job_keeps_its_checkpoint(store):
    store.save_checkpoint(JOB, {"a": np.arange(3)})
    store.discard(JOB)
    assert [path.name for path in (store.folder / JOB.name).iterdir()] == ["checkpoint.npz"]
    assert store.facts(JOB) is None
    np.testing.assert_array_equal(store.load_checkpoint(JOB)["a"], np.arange(3))
    store.drop_checkpoint(JOB)
    assert store.load_checkpoint(JOB) is None
    store.drop_checkpoint(JOB)


def _shorter_header(path):
    """Make a member claim 299 of its 300 numbers, so that a reader stops before the checksum."""
    content = path.read_bytes()
    assert content.count(b"(300,)") == 1
    path.write_bytes(content.replace(b"(300,)", b"(299,)"))


@pytest.mark.parametrize(
    "damage",
    [
        truncate,
        _shorter_header,
        lambda path: flip(path, 1_000),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_text("not an archive"),
    ],
    ids=["cut", "header", "flipped byte", "empty", "text"],
)
def test_a_broken_checkpoint_is_refused(store, damage):
    store.save_checkpoint(JOB, {"a": np.arange(300.0), "b": np.array("text")})
    kept = store.load_checkpoint(JOB)
    np.testing.assert_array_equal(kept["a"], np.arange(300.0))
    assert str(kept["b"]) == "text"
    damage(store.path(JOB, "checkpoint.npz"))
    with pytest.raises(StudyError, match=r"checkpoint\.npz is corrupt") as caught:
        store.load_checkpoint(JOB)
    assert "\n" not in str(caught.value)


def test_a_checkpoint_never_runs_code(store):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("it was unpickled",))

    np.savez(store.path(JOB, "checkpoint.npz"), a=np.array([Trap()], dtype=object))
    assert zipfile.is_zipfile(store.path(JOB, "checkpoint.npz"))
    with pytest.raises(StudyError, match="corrupt"):
        store.load_checkpoint(JOB)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"format": FORMAT + 1, "scale": "fake"}, f"format {FORMAT + 1}"),
        ({"format": FORMAT, "scale": "paper"}, "scale 'paper', not 'fake'"),
        ({}, "format None"),
        ("no mapping", "format None"),
    ],
)
def test_a_folder_of_something_else_is_refused(tmp_path, header, message):
    (tmp_path / "study.json").write_text(json.dumps(header))
    with pytest.raises(StudyError, match="--results") as caught:
        Store(tmp_path, FAKE)
    assert message in str(caught.value)


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(StudyError, match="not a results folder"):
        Store(tmp_path, FAKE)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_what_may_come_before_the_first_job_is_accepted(tmp_path):
    """References are computed first; a kill may leave half of study.json under another name."""
    (tmp_path / "references").mkdir()
    (tmp_path / "study.partial").write_text('{"for')
    Store(tmp_path, FAKE).make()
    assert json.loads((tmp_path / "study.json").read_text()) == {"format": FORMAT, "scale": "fake"}


def test_looking_writes_nothing(tmp_path):
    store = Store(tmp_path / "new", FAKE)
    assert store.facts(JOB) is None
    assert store.problem(JOB) is None
    assert store.load_checkpoint(JOB) is None
    store.discard(JOB)
    assert not store.folder.exists()


def test_a_place_that_cannot_be_written_is_said_in_one_line(tmp_path):
    (tmp_path / "file").write_text("in the way")
    store = Store(tmp_path / "file" / "results", FAKE)
    with pytest.raises(StudyError, match=r"--results .*cannot write there") as caught:
        store.make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["checkpoint", "traces", "job"])
def test_a_write_that_fails_half_way_is_said_in_one_line(store, name):
    before = store.facts(JOB)
    store.path(JOB, f"{name}.partial").mkdir()
    tables = {table: store.read(JOB, table) for table in SCHEMAS}

    def write():
        if name == "checkpoint":
            store.save_checkpoint(JOB, {"a": np.zeros(1)})
        else:
            store.write(JOB, tables, {"num_iterations": 1})

    with pytest.raises(StudyError, match=r"--results .*cannot write there"):
        write()
    assert store.facts(JOB) == before
