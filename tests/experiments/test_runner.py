"""Jobs that are stopped, killed, broken or extended end as if nothing had happened.

All runs here are of one job, and those in this process share one compiled program.
"""

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from shutil import copytree

import jax
import numpy as np
import pytest

from experiments import runner
from experiments.engine import build_program
from experiments.errors import StudyError
from experiments.references import REFERENCES, load_reference
from experiments.runner import Plan, run_jobs
from experiments.scales import SCALES, record_iterations, stop_after
from experiments.store import Job, Store
from experiments.tables import REPLAYED
from tests.experiments.study_data import JOB, LONGER, PAUSE, call, digests, flip, truncate

LAST = LONGER.num_iterations
COMMAND = ["run", "--scale", "smoke", "--task", "gaussian", "--coreset-size", "20"]


@dataclass
class Session:
    """Runs the job, and notes what it says and where it begins."""

    folder: Path
    said: list[str] = field(default_factory=list)
    reported: list[int] = field(default_factory=list)

    def run(self, stop=LAST, at=lambda iteration: None, jobs=(JOB,), **options):
        self.said, self.reported = [], []
        plan = Plan(
            list(jobs),
            Store(self.folder, LONGER),
            stop,
            None,
            lambda job, dataset: load_reference(job.task, dataset, [REFERENCES]),
            say=self.said.append,
            **options,
        )

        def report(job, iteration, seconds):
            self.reported.append(iteration)
            at(iteration)

        return run_jobs(plan, report)

    @property
    def facts(self):
        return Store(self.folder, LONGER).facts(JOB)

    def path(self, name):
        return self.folder / JOB.name / name


@pytest.fixture(scope="module")
def program():
    with jax.enable_x64(True):
        return build_program(JOB, LONGER, JOB.task.load(None))


@pytest.fixture(autouse=True)
def built(monkeypatch, program):
    """Compile once for all; gives the list of what was built."""
    names = []

    def build(job, scale, dataset, seed):
        names.append(job.name)
        return program

    monkeypatch.setattr(runner, "build_program", build)
    return names


@pytest.fixture(scope="module")
def finished(program, tmp_path_factory):
    """An uninterrupted run; do not write there."""
    session = Session(tmp_path_factory.mktemp("finished") / "results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "build_program", lambda *arguments: program)
        session.run()
    assert session.reported == list(range(LONGER.chunk, LAST + 1, LONGER.chunk))
    return session.folder


@pytest.fixture(scope="module")
def halfway(program, tmp_path_factory):
    """A run that was asked for fewer iterations; do not write there."""
    session = Session(tmp_path_factory.mktemp("halfway") / "results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "build_program", lambda *arguments: program)
        session.run(PAUSE)
    return session.folder


def _copy(folder, tmp_path):
    return Session(Path(copytree(folder, tmp_path / "copy")))


def test_what_a_finished_job_leaves(finished):
    names = {path.name for path in (finished / JOB.name).iterdir()}
    assert names == {"traces.parquet", "runs.parquet", "gate.parquet", "job.json"}
    facts = Session(finished).facts
    assert facts["num_iterations"] == LAST
    assert facts["num_rows"] == 10_000
    assert facts["seconds"] > 0


def test_the_right_iterations_are_recorded(finished, program):
    """Against every iteration of the program, one after the other."""
    with jax.enable_x64(True):
        carry, chunks = program.begin(), []
        for _ in range(LAST // LONGER.chunk):
            carry, recorded = program.advance(carry)
            chunks.append(jax.tree.map(np.asarray, recorded))
    sums, _, norms, _ = (np.concatenate(parts) for parts in zip(*chunks, strict=True))
    draws = np.diff(sums, axis=0, prepend=0.0)
    due, store = record_iterations(LAST), Store(finished, LONGER)
    runs = store.read(JOB, "runs").to_pandas()
    traces = store.read(JOB, "traces").to_pandas()
    means = draws[LAST // 2 :].mean(axis=0).reshape(len(runs), -1)
    np.testing.assert_allclose(np.stack(runs["mean"]), means, rtol=1e-9, atol=1e-12)
    for k, (trial, column) in enumerate(np.ndindex(norms.shape[1:])):
        trace = traces.iloc[k * len(due) : (k + 1) * len(due)]
        assert trace["iteration"].tolist() == due
        expected = norms[np.array(due) - 1, trial, column]
        expected = np.where(np.array(due) <= REPLAYED, expected, expected.astype(np.float32))
        np.testing.assert_array_equal(trace["gradient_norm"], expected)


def test_a_finished_job_is_left_alone(finished, tmp_path, built):
    session = _copy(finished, tmp_path)
    before = {path: path.stat().st_mtime_ns for path in session.folder.rglob("*")}
    for stop in (LAST, PAUSE):
        assert session.run(stop) == []
    assert session.reported == built == session.said == []
    assert {path: path.stat().st_mtime_ns for path in session.folder.rglob("*")} == before


def _child(folder):
    """Run the command in a process of its own until it waits at PAUSE."""
    module = [sys.executable, "-m", "tests.experiments.study_data"]
    child = subprocess.Popen(
        [*module, *COMMAND, "--results", str(folder), "--checkpoint-seconds", "0"],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    seen = []
    while not seen or seen[-1] != PAUSE:
        line = child.stdout.readline()
        assert line, child.communicate()[1]
        seen.append(int(line))
    return child


def test_a_killed_run_goes_on_from_its_checkpoint(finished, tmp_path):
    session = Session(tmp_path / "results")
    child = _child(session.folder)
    child.kill()
    child.communicate()
    assert child.returncode == -signal.SIGKILL
    assert session.path("checkpoint.npz").is_file()
    assert session.facts is None

    assert session.run() == [JOB]
    assert session.reported[0] == PAUSE  # the last checkpoint was one chunk before
    assert digests(session.folder) == digests(finished)
    assert not session.path("checkpoint.npz").exists()


def test_an_interrupted_run_keeps_what_it_has_and_goes_on(finished, halfway, tmp_path):
    session = Session(tmp_path / "results")
    child = _child(session.folder)
    child.send_signal(signal.SIGINT)
    rest, errors = child.communicate("go on\n")
    assert child.returncode == 130
    assert errors == "stopped; the same command goes on from here\n"
    assert rest == ""
    assert session.facts["num_iterations"] == PAUSE
    assert digests(session.folder) == digests(halfway)

    assert session.run() == [JOB]
    assert session.reported[0] == PAUSE + LONGER.chunk
    assert digests(session.folder) == digests(finished)


def test_stopping_off_a_recorded_iteration_is_no_harm(finished, tmp_path, built):
    session = Session(tmp_path / "results")
    handler = signal.getsignal(signal.SIGINT)

    def interrupt(iteration):
        if iteration == 60:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        session.run(at=interrupt, jobs=[JOB, Job(JOB.task, 40)])
    assert signal.getsignal(signal.SIGINT) is handler
    assert session.reported == [20, 40, 60]
    assert session.facts["num_iterations"] == 60
    traces = Store(session.folder, LONGER).read(JOB, "traces")
    assert max(traces["iteration"].to_pylist()) == 56  # the last that is recorded
    session.run()
    assert session.reported[0] == 80
    assert digests(session.folder) == digests(finished)


def test_stopping_while_it_compiles_leaves_something(monkeypatch, program, tmp_path):
    def build(*arguments):
        signal.raise_signal(signal.SIGTERM)
        return program

    monkeypatch.setattr(runner, "build_program", build)
    session = Session(tmp_path / "results")
    with pytest.raises(KeyboardInterrupt):
        session.run()
    assert session.facts["num_iterations"] == LONGER.chunk
    with pytest.raises(KeyboardInterrupt):  # there is something already
        session.run()
    assert session.reported == []
    assert session.facts["num_iterations"] == LONGER.chunk


def test_more_iterations_later_are_the_same_as_at_once(monkeypatch, finished, tmp_path, capsys):
    monkeypatch.setitem(SCALES, "smoke", LONGER)
    session = Session(tmp_path / "results")
    assert call(*COMMAND, "--results", session.folder, "--iterations", "30") == 0
    assert capsys.readouterr().out.startswith("1 of 1 jobs run")
    assert session.facts["num_iterations"] == stop_after(LONGER, 30) == 40

    session.run(PAUSE)
    assert session.reported[0] == 60
    assert session.facts["num_iterations"] == PAUSE
    session.run()
    assert session.reported[0] == PAUSE + LONGER.chunk
    assert digests(session.folder) == digests(finished)


def test_time_adds_up_over_sessions(halfway, tmp_path):
    session = _copy(halfway, tmp_path)
    before = session.facts["seconds"]
    session.run()
    assert session.facts["seconds"] > before > 0
    assert session.facts["microseconds_per_iteration_and_run"] > 0


DAMAGES = {
    "flipped byte": ("traces.parquet", lambda path: flip(path, 1_000)),
    "cut": ("runs.parquet", truncate),
    "missing": ("gate.parquet", lambda path: path.unlink()),
    "not JSON": ("job.json", lambda path: path.write_text("not JSON")),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_broken_results_are_reported_and_run_again(finished, tmp_path, damage):
    name, do = DAMAGES[damage]
    session = _copy(finished, tmp_path)
    do(session.path(name))
    assert session.run() == [JOB]
    (line,) = session.said
    assert str(session.path(name)) in line
    assert "job gaussian-20 runs again" in line
    assert session.reported[0] == LONGER.chunk
    assert digests(session.folder) == digests(finished)


@pytest.mark.parametrize("damage", [truncate, lambda path: flip(path, 5_000)], ids=["cut", "byte"])
def test_a_broken_checkpoint_is_reported_and_never_used(halfway, finished, tmp_path, damage):
    session = _copy(halfway, tmp_path)
    damage(session.path("checkpoint.npz"))
    session.run()
    (line,) = session.said
    assert "checkpoint.npz is corrupt" in line
    assert "job gaussian-20 starts anew" in line
    assert session.reported[0] == LONGER.chunk
    assert digests(session.folder) == digests(finished)


def test_a_kill_between_two_tables_costs_nothing(halfway, finished, tmp_path):
    """The new traces beside the old rest: the tables are lost, the checkpoint is not."""
    session = _copy(halfway, tmp_path)
    session.path("traces.parquet").write_bytes(
        (finished / JOB.name / "traces.parquet").read_bytes()
    )
    session.path("runs.partial").write_bytes(b"half")
    session.path("checkpoint.partial").write_bytes(b"half")
    session.run()
    assert "traces.parquet is corrupt" in session.said[0]
    assert session.reported[0] == PAUSE + LONGER.chunk
    assert digests(session.folder) == digests(finished)


@pytest.mark.parametrize("foreign", ["other seed", "no checkpoint"])
def test_a_checkpoint_of_something_else_is_not_continued(halfway, finished, tmp_path, foreign):
    session = _copy(halfway, tmp_path)
    Store(session.folder, LONGER).discard(JOB)
    if foreign == "other seed":
        session.run(seed=1)  # (the program is that of seed 0; what counts is what it is called)
    else:
        np.savez(session.path("checkpoint.npz"), anything=np.zeros(3))
        session.run()
    (line,) = session.said
    assert "another study" in line
    assert session.reported[0] == LONGER.chunk
    assert digests(session.folder) == digests(finished)


def test_results_of_another_seed_are_refused_and_kept(finished, built):
    before = digests(finished)
    with pytest.raises(StudyError, match="another version, seed or data set"):
        Session(finished).run(seed=1)
    assert digests(finished) == before
    assert built == []


@pytest.mark.parametrize("what", ["no reference", "no place"])
def test_what_cannot_end_well_is_not_begun(tmp_path, built, what):
    (tmp_path / "file").write_text("in the way")
    folder = tmp_path / "results" if what == "no reference" else tmp_path / "file" / "results"
    folders = [tmp_path] if what == "no reference" else [REFERENCES]
    plan = Plan(
        [JOB],
        Store(folder, LONGER),
        LAST,
        None,
        lambda job, dataset: load_reference(job.task, dataset, folders),
    )
    message = {"no reference": "no reference posterior", "no place": "cannot write there"}[what]
    with pytest.raises(StudyError, match=message):
        run_jobs(plan)
    assert built == []


def test_a_thread_may_run_jobs(finished, tmp_path):
    """Only the main thread may handle signals; elsewhere nothing does."""
    session = Session(tmp_path / "results")
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(session.run).result() == [JOB]
    assert digests(session.folder) == digests(finished)
