"""The numbers behind the claims, against what the formulas of the made-up study give."""

import numpy as np
import pandas as pd
import pytest

from experiments import claim_data
from experiments.claims import CLAIMS, cells, claim_tables, claims_markdown
from experiments.medians import load_results
from experiments.scales import record_iterations
from experiments.store import Store
from tests.experiments.fake_results import (
    BEST_RATE,
    FAKE,
    TASK_NAMES,
    error,
    level,
    passed_at,
    write_job,
    write_study,
)

SMALL, LARGE = FAKE.coreset_sizes
LAST = FAKE.num_iterations
RECORDED = record_iterations(LAST)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    failures = [("dog", 10.0, True, trial) for trial in range(3)]
    return write_study(tmp_path_factory.mktemp("study") / "results", failures=failures)


@pytest.fixture(scope="module")
def tables(store):
    return claim_tables(load_results(store))


def row(table, task, size, **more):
    titles = dict(zip(TASK_NAMES, dict.fromkeys(table["task"]), strict=True))
    found = table[(table["task"] == titles[task]) & (table["M"] == size)]
    for column, value in more.items():
        found = found[found[column.replace("_", " ")] == value]
    assert len(found) == 1
    return found.iloc[0]


def end(hot_start):
    """By how much the last recorded error exceeds its final level."""
    return 1.0 + 1000.0 / (1.0 + (LAST / (4.0 if hot_start else 16.0)) ** 2)


@pytest.mark.parametrize("task", TASK_NAMES)
def test_the_best_and_worst_rates_of_adam(tables, task):
    found = row(tables["1a"], task, LARGE)
    rates = 10.0 ** np.arange(-3, 3)
    levels = np.array([level(task, "adam", rate, False) for rate in rates])
    assert found["best γ"] == BEST_RATE[task]
    assert found["best error"] == pytest.approx(
        error(task, LARGE, "adam", BEST_RATE[task], False, 1, LAST)
    )
    assert found["worst / best"] == pytest.approx(levels.max() / levels.min())
    assert found["worst / best_q25"] == pytest.approx(levels.max() / levels.min())
    assert found["worst / best, of medians"] == pytest.approx(levels.max() / levels.min())
    assert found["γ = 0.001 / best"] == pytest.approx(levels[0] / levels.min())
    assert found["best γ up to 10"] == BEST_RATE[task] <= 10
    assert found["best up to 10 / best"] == 1


def test_no_rate_serves_all(tables):
    table = tables["1b"].set_index("γ")
    assert table["cases"].tolist() == [12] * 6
    for rate, found in table.iterrows():
        away = [level(t, "adam", rate, False) / 2.0 for t in TASK_NAMES for _ in range(2)]
        assert found["largest"] == pytest.approx(max(away))
        assert found["error / best error"] == pytest.approx(np.median(away))
        assert found["best in"] == sum(a < 1.01 for a in away)
        assert found["over 10 in"] == sum(a > 10.01 for a in away)
    assert "Bradley-Terry" in table.loc[1e-3, "where"]


def test_methods_without_hot_start_against_tuned_adam(tables):
    table = tables["2"].set_index(["method", "parameter"])
    assert table.loc[("ADAM", 1.0), "error"] == pytest.approx(2 * 2 * 3 * 10 / LARGE * end(False))
    ratios = table["error / tuned ADAM"]
    assert ratios["DoG", 0.1] == pytest.approx(300 / 2)
    assert ratios["DoWG", 10.0] == pytest.approx(100 / 2)
    assert ratios["D-Adaptation SGD", 1e-6] == pytest.approx(500 / 2)
    assert ratios["Prodigy", 1e-6] == pytest.approx(30 / 2)


def _leaving(trial, hot, fraction):
    """By hand: the evaluations at which the error, which only falls, is below the fraction."""
    still = error("poisson", LARGE, "adam", 1e-3, False, trial, LAST)
    errors = [error("poisson", LARGE, "hot_dog", 1e-3, hot, trial, t) for t in RECORDED]
    cost = 2 if hot else 3
    left = [t * cost * LARGE for t, e in zip(RECORDED, errors, strict=True) if e < fraction * still]
    return min(left, default=np.inf)


@pytest.mark.parametrize("fraction", [0.5, 0.1])
def test_leaving_the_plateau(tables, fraction):
    found = row(tables["3a"], "poisson", LARGE, left_below=fraction)
    with_, without = ([_leaving(t, hot, fraction) for t in range(3)] for hot in (True, False))
    assert found["evaluations with"] == sorted(with_)[1]
    assert found["evaluations without"] == sorted(without)[1]
    ratios = [a / b for a, b in zip(without, with_, strict=True)]
    assert found["without / with"] == pytest.approx(sorted(ratios)[1])
    # The first trial passes while half of its gradients are a thousand times too large.
    assert found["early"] == 1
    assert found["without / with, not early"] == pytest.approx(np.mean(ratios[1:]))
    assert (found["never with"], found["never without"]) == (
        sum(np.isinf(with_)),
        sum(np.isinf(without)),
    )


def test_what_never_leaves_counts_as_such(tmp_path):
    """ADAM's best rate is 0.001 here, so that no run gets below a tenth of its error."""
    store = Store(tmp_path, FAKE)
    write_job(store, "gaussian", LARGE)
    results = load_results(store)
    job = results.jobs["gaussian", LARGE]
    job.runs.loc[job.runs["method"] == "adam", "z2"] = 1e-9
    found = claim_data.plateau(results).iloc[0]
    assert (found["never with"], found["never without"]) == (3, 3)
    assert found["evaluations with"] == np.inf
    assert np.isnan(found["without / with"])


def test_the_worth_of_the_hot_start(tables):
    """Each method's level is ten times higher without it, Hot DoG's and ADAM's only late."""
    found = row(tables["3b"], "sparse", SMALL, method="DoG")
    assert found["error without / with"] == pytest.approx(10 * end(False) / end(True))
    found = row(tables["3b"], "sparse", SMALL, method="ADAM")
    assert found["error without / with"] == pytest.approx(end(False) / end(True))
    short = tables["3c"].set_index(["method", "start"])
    assert short.loc[("DoWG", "all"), "cases"] == 12
    assert short.loc[("DoWG", "far"), "cases"] == short.loc[("DoWG", "near"), "cases"] == 6
    assert short.loc[("Prodigy", "far"), "error without / with"] == pytest.approx(
        10 * end(False) / end(True)
    )


def test_two_starts_side_by_side(tmp_path):
    store = write_study(tmp_path)
    write_job(store, "gaussian_far", SMALL)
    table = claim_tables(load_results(store))["3d"]
    assert set(table["M"]) == {SMALL}
    assert set(table["task"]) == {"Gaussian location"}
    assert len(table) == 12
    assert (table["far / near"] == 1).all()  # the same numbers are stored
    plateaus = claim_tables(load_results(store))["3a"]
    assert "Gaussian location, θ₀ ~ N(0, I)" in set(plateaus["task"])


def trace(*z2):
    return pd.DataFrame({"z2": z2, "evaluations": np.arange(1, len(z2) + 1) * 10})


@pytest.mark.parametrize(
    ("z2", "left"),
    [
        ((9, 9, 1, 1), 30),
        ((9, 1, 9, 1), 40),
        ((1, 1, 1, 1), 10),
        ((9, 1, 1, 9), np.inf),
        ((9, 1, 1, np.inf), np.inf),
        ((9, np.inf, 1, 1), 30),
    ],
)
def test_a_run_leaves_for_good_or_not_at_all(z2, left):
    assert claim_data._left(trace(*z2), 5.0) == left


def test_the_gate_settles_then_passes(tables):
    found = row(tables["4"], "linear", SMALL)
    assert found["passed at"] == passed_at(1)
    assert (found["passed at, min"], found["passed at, max"]) == (8, 16)
    assert (found["forced"], found["trials"]) == (1, 3)
    # The first trial is early: the median of its norms is (10⁵ + 10²) / 2.
    assert (found["early"], found["passed early, max"]) == (1, 8)
    assert found["norm / level, early, median"] == pytest.approx(500.5)
    # 8 / t² is below 0.5 from t = 5 on, but a test needs 9; the first trial has no more than 8.
    assert (found["at every iteration, min"], found["at every iteration, max"]) == (9, np.inf)
    assert found["at every iteration, by 30"] == 2


def test_norms_settle_where_their_running_median_stays_near_its_end():
    iteration = np.arange(1, 301)
    norm = np.where(iteration <= 100, 1e5, 1e2)
    norm[200] = 1e9  # a spike does not unsettle a median
    held = pd.DataFrame({"iteration": iteration, "gradient_norm": norm})
    # A centred window of 30 that ends 14 later is half old and half new at 101, so 102 is settled.
    assert abs(claim_data._settled(held) - 101) <= 1
    still = held.assign(gradient_norm=7.0)
    assert claim_data._settled(still) == 1


def test_dependence_on_r_against_the_spread_over_trials(tables):
    found = row(tables["5"], "gaussian", SMALL)
    assert found["highest / lowest over r"] == pytest.approx(1.04)
    assert found["same, within a trial"] == pytest.approx(1.04)
    assert found["q75 / q25 over trials"] == pytest.approx(2.5 / 1.5)


def test_hot_dog_against_tuned_adam(tables):
    found = row(tables["6a"], "sparse", SMALL)
    assert found["best γ, no hot start"] == BEST_RATE["sparse"]
    assert found["Hot DoG / ADAM, no hot start"] == pytest.approx(end(True) / (2 * end(False)))
    assert found["Hot DoG / ADAM, hot start"] == pytest.approx(1 / 2)
    assert found["Hot DoG / ADAM, hot start_q75"] == pytest.approx(1 / 2)
    assert found["Hot DoG / ADAM up to 10, hot start, of medians"] == pytest.approx(1 / 2)


def test_other_methods_against_hot_dog(tables):
    found = row(tables["6b"], "sparse", SMALL, method="DoG", hot_start=True)
    assert found["best / Hot DoG"] == found["default / Hot DoG"] == pytest.approx(30)
    assert (found["worst parameter"], found["worst / Hot DoG"]) == (10.0, np.inf)
    found = row(tables["6b"], "sparse", SMALL, method="Prodigy", hot_start=True)
    assert (found["default parameter"], found["default / Hot DoG"]) == (1e-6, pytest.approx(3))
    short = tables["6c"].set_index(["method", "hot start", "start"])
    assert short.loc[("DoWG", True, "all"), "best / Hot DoG"] == pytest.approx(10)
    assert short.loc[("DoWG", True, "all"), "best, above 1 in"] == 12
    assert short.loc[("DoWG", True, "near"), "best, above 1 in"] == 6


def test_markdown_has_every_table(store):
    text = claims_markdown(store)
    for claim in CLAIMS:
        assert f"### Claim {claim.number}. " in text
        assert claim.how.splitlines()[0] in text
    assert "∞ (∞ to ∞)" in text
    widths = {
        len(block.splitlines()[i].split("|")) - len(block.splitlines()[0].split("|"))
        for block in text.split("\n\n")
        if block.startswith("|")
        for i in range(len(block.splitlines()))
    }
    assert widths == {0}


def test_tables_of_a_study_that_has_hardly_begun(tmp_path):
    store = Store(tmp_path, FAKE)
    write_job(store, "sparse", SMALL)
    tables = claim_tables(load_results(store))
    assert tables["2"].empty
    assert len(tables["6a"]) == 1
    assert "No results." in claims_markdown(store)


def test_cells_are_short():
    table = pd.DataFrame(
        {
            "a": [1234567, 2],
            "b": [12345.6, np.inf],
            "b_q25": [1.23456, 2.0],
            "b_q75": [np.inf, 0.000123456],
            "c": [np.nan, 1e-6],
            "d": [True, False],
            "e": ["x", "y"],
        }
    )
    header, rows = cells(table)
    assert header == ["a", "b", "c", "d", "e"]
    assert rows == [
        ["1,234,567", "12,346 (1.23 to ∞)", "–", "yes", "x"],
        ["2", "∞ (2 to 0.000123)", "1e-06", "no", "y"],
    ]
