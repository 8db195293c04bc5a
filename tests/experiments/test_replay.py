"""The stored results, which a GPU computed, are what this program gives on this machine."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments import runner
from experiments.datasets import default_folder
from experiments.errors import StudyError
from experiments.methods import Config
from experiments.references import REFERENCES, load_reference
from experiments.replay import Replay, replay
from experiments.runner import Plan, is_of_program, run_jobs
from experiments.scales import SCALES
from experiments.store import Job, Store
from experiments.tables import REPLAYED
from experiments.tasks import TASKS
from tests.experiments.fake_results import FAKE, write_job

PAPER = Path(__file__).parents[2] / "experiments" / "results" / "paper"
RUNS = [
    Config("hot_dog", 1e-3, True),
    Config("hot_dog", 1e-3, False),
    Config("adam", 10.0, False),
    Config("prodigy", 1e-6, False),
]


def _replayed(name, size, **options):
    job, store = Job(TASKS[name], size), Store(PAPER, SCALES["paper"])
    dataset = job.task.load(default_folder())
    reference = load_reference(job.task, dataset, [REFERENCES])
    return replay(job, store, dataset, reference, trials=[0, 7], runs=RUNS, **options)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gaussian", "poisson"])
def test_the_first_iterations_are_the_stored_ones(name, request):
    """Over all that is kept to the last digit, the release of the weights included."""
    if name == "poisson":
        request.getfixturevalue("shared_data")
    found = _replayed(name, 100)
    assert found.agrees
    assert (found.num_runs, found.agree_throughout) == (8, 8)
    assert found.agree_until == found.num_iterations > 0.9 * REPLAYED
    assert found.largest_difference < 1e-10


@pytest.mark.slow
def test_another_seed_is_told_apart_at_once():
    found = _replayed("gaussian", 100, seed=1)
    assert not found.agrees
    assert (found.agree_until, found.agree_throughout) == (0, 0)


OURS = Replay(8, 195, 195, 8, 1e-14, "cpu", "cpu")


@pytest.mark.parametrize(
    ("changes", "agrees"),
    [
        ({}, True),
        ({"agree_throughout": 7, "agree_until": 164}, False),
        ({"agree_throughout": 7, "agree_until": 164, "stored_device": "H200"}, True),
        ({"agree_throughout": 7, "agree_until": 17, "stored_device": "H200"}, False),
        (
            {"agree_throughout": 0, "agree_until": 7, "num_iterations": 7, "stored_device": "x"},
            True,
        ),
    ],
)
def test_one_kind_of_device_must_agree_throughout_others_until_roundings_grow(changes, agrees):
    assert replace(OURS, **changes).agrees is agrees


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """A finished made-up job, and a program that differs from the one that made it."""
    store, job = Store(tmp_path / "results", FAKE), Job(TASKS["gaussian"], 20)
    made = Plan([job], store, FAKE.num_iterations, None, lambda *_: None)
    write_job(store, "gaussian", 20, identity=made.identity(job), device="cpu")
    monkeypatch.setattr(runner, "program_digest", lambda task: "another")
    said = []
    return replace(made, say=said.append)


def _fake_replay(found, asked):
    def fake(job, store, dataset, reference, *, seed, trials):
        asked.append((job.name, trials))
        return found

    return fake


def test_results_of_another_program_count_once_their_beginning_is_replayed(plan, monkeypatch):
    asked = []
    monkeypatch.setattr(runner, "replay", _fake_replay(OURS, asked))
    (job,) = plan.jobs
    before = plan.store.read(job, "runs")
    assert run_jobs(plan) == []
    assert run_jobs(plan) == []
    assert asked == [("gaussian-20", None)]  # once, and all trials: the device is the same
    facts = plan.store.facts(job)
    assert facts["replayed"]["program"] == "another"
    assert facts["replayed"]["agree_until"] == 195
    assert plan.store.problem(job) is None
    assert plan.store.read(job, "runs").equals(before)
    assert is_of_program(facts, plan.identity(job))


def test_of_another_device_one_trial_is_replayed(plan, monkeypatch):
    asked = []
    plan.store.amend(plan.jobs[0], device="NVIDIA H200")
    monkeypatch.setattr(runner, "replay", _fake_replay(OURS, asked))
    run_jobs(plan)
    assert asked == [("gaussian-20", [0])]


def test_results_that_a_replay_does_not_give_are_stale(plan, monkeypatch):
    monkeypatch.setattr(runner, "replay", _fake_replay(replace(OURS, agree_throughout=7), []))
    with pytest.raises(StudyError, match=r"gaussian-20 there is stale.* 7 of 8 runs agree") as told:
        run_jobs(plan)
    assert "\n" not in str(told.value)
    assert "replayed" not in plan.store.facts(plan.jobs[0])


def test_results_from_before_programs_were_told_apart_are_replayed(plan, monkeypatch):
    """They have the package's version in that place."""
    (job,) = plan.jobs
    old = plan.identity(job).replace('"program": "another"', '"coremcmc": "0.1.0"')
    plan.store.amend(job, identity=old)
    asked = []
    monkeypatch.setattr(runner, "replay", _fake_replay(OURS, asked))
    assert run_jobs(plan) == []
    assert len(asked) == 1


@pytest.mark.parametrize("identity", [None, "made up", "[]", '{"seed": 0}'])
def test_results_of_unknown_origin_are_refused(plan, identity):
    plan.store.amend(plan.jobs[0], identity=identity)
    with pytest.raises(StudyError, match="another version, seed or data set"):
        run_jobs(plan)


def test_every_stored_job_was_replayed_or_ran_with_its_program():
    """What is stored says so; a later program is replayed when the study is run again."""
    store = Store(PAPER, SCALES["paper"])
    jobs = [path.parent.name for path in PAPER.glob("*/job.json")]
    assert len(jobs) == 22
    for name in jobs:
        facts = store.facts(_job(name))
        found = facts["replayed"]
        assert found["agree_until"] >= 20
        assert np.isfinite(found["largest_difference"]) or found["agree_throughout"] > 0


def _job(name):
    from experiments.tasks import task_named

    task, _, size = name.rpartition("-")
    return Job(task_named(task), int(size))
