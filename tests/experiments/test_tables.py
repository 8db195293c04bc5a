"""The numbers in the tables, against plain loops over draws that are made up here."""

from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coremcmc.algorithm.hot_start import hot_start_statistic
from experiments import tables
from experiments.engine import NUM_CHAINS, Carry, Recorded
from experiments.errors import StudyError
from experiments.methods import Config
from experiments.references import Reference
from experiments.scales import SCALES, record_iterations, stop_after
from experiments.store import Job
from experiments.tables import Records, log_potential_evaluations, tables_of
from experiments.tasks import TASKS

SIZE, CHUNK, DIMENSION = 7, 8, 3
CONFIGS = [Config("hot_dog", 0.001, True), Config("adam", 0.1, False), Config("dog", 1.0, True)]
PASSED_AT = np.array([[9, 0, 9], [-1, 0, -1]])  # the second trial is held to the end
SCALE = replace(SCALES["smoke"], num_iterations=32, num_trials=2, chunk=CHUNK)


@pytest.fixture
def made_up(monkeypatch):
    """Draws, costs and norms of every iteration, and the tables made of them."""
    monkeypatch.setattr(tables, "configs", lambda scale: CONFIGS)
    rng = np.random.default_rng(4)
    steps, shape = SCALE.num_iterations, PASSED_AT.shape
    draws = rng.standard_normal((steps, *shape, DIMENSION))  # mean of the chains
    costs = rng.integers(2, 9, (steps, *shape))  # log densities, both chains together
    norms = rng.random((steps, *shape))
    statistics = rng.random((steps, *shape))
    weights = rng.random((*shape, SIZE))
    log_potentials = rng.random((*shape, steps, NUM_CHAINS))
    carry = Carry(
        SimpleNamespace(
            weights=weights,
            hot_start=SimpleNamespace(
                passed_at=PASSED_AT, is_forced=PASSED_AT > 100, log_potentials=log_potentials
            ),
        ),
        draws.sum(axis=0),
        np.array([[0, 2, 0], [1, 0, 3]]),
        np.array([[-1, 5, -1], [6, -1, 7]]),
    )
    whole = Recorded(draws.cumsum(axis=0), costs.cumsum(axis=0), norms, statistics)
    records = Records()
    due = np.array(record_iterations(steps))
    for before in range(0, steps, CHUNK):
        chunk = Recorded(*(x[before : before + CHUNK] for x in whole))
        inside = due[(due > before) & (due <= before + CHUNK)]
        records.add(inside, Recorded(*(x[inside - before - 1] for x in chunk)))
        records.add_held(before, chunk, carry)
    reference = Reference(
        "gaussian", "any", "any", rng.standard_normal(DIMENSION), rng.random(DIMENSION), (), {}
    )
    found = tables_of(Job(TASKS["gaussian"], SIZE), SCALE, carry, records, reference)
    return SimpleNamespace(
        draws=draws,
        costs=costs,
        norms=norms,
        statistics=statistics,
        carry=carry,
        reference=reference,
        **{name: table.to_pandas() for name, table in found.items()},
    )


def _mean_by_hand(made_up, trial, column, iteration):
    """Mean of the draws t // 2 + 1 to t, whether or not the weights were held."""
    chosen = [made_up.draws[i - 1, trial, column] for i in range(iteration // 2 + 1, iteration + 1)]
    return sum(chosen) / len(chosen)


def _error_by_hand(made_up, trial, column, iteration):
    mean, reference = _mean_by_hand(made_up, trial, column, iteration), made_up.reference
    squares = [((reference.mean[i] - mean[i]) / reference.sd[i]) ** 2 for i in range(DIMENSION)]
    return sum(squares) / DIMENSION


def _cost_by_hand(made_up, trial, column, iteration):
    """Count ℓ_n(θ) one by one: the start, every log density, every gradient that is used."""
    count, passed_at = NUM_CHAINS * SIZE, PASSED_AT[trial, column]
    for i in range(1, iteration + 1):
        count += SIZE * int(made_up.costs[i - 1, trial, column])
        if 0 <= passed_at < i:
            count += NUM_CHAINS * SIZE  # S = M rows, at the state of each chain
    return count


def test_traces_are_what_plain_loops_give(made_up):
    due = record_iterations(SCALE.num_iterations)
    assert len(made_up.traces) == 2 * len(CONFIGS) * len(due)
    for trial in (0, 1):
        for column, config in enumerate(CONFIGS):
            chosen = made_up.traces[
                (made_up.traces["trial"] == trial)
                & (made_up.traces["method"] == config.method)
                & (made_up.traces["parameter"] == config.parameter)
                & (made_up.traces["hot_start"] == config.hot_start)
            ]
            assert chosen["iteration"].tolist() == due
            errors = [_error_by_hand(made_up, trial, column, t) for t in due]
            np.testing.assert_allclose(chosen["z2"], errors, rtol=1e-6)
            costs = [_cost_by_hand(made_up, trial, column, t) for t in due]
            assert chosen["evaluations"].tolist() == costs
            norms = made_up.norms[np.array(due) - 1, trial, column]
            np.testing.assert_array_equal(chosen["gradient_norm"], norms)


def test_what_a_replay_is_compared_by_keeps_its_digits_and_the_rest_is_shortened():
    values = np.array([1 / 3, 2 / 3, 1 / 7]).reshape(3, 1, 1)
    found = tables._shortened(values, np.array([1, tables.REPLAYED, tables.REPLAYED + 1]))
    assert (found[:2] == values[:2]).all()
    assert found[2] == np.float32(values[2]) != values[2]


def test_runs_are_what_plain_loops_give(made_up):
    last, runs = SCALE.num_iterations, made_up.runs
    assert len(runs) == 2 * len(CONFIGS)
    for row in runs.itertuples():
        column = CONFIGS.index(Config(row.method, row.parameter, row.hot_start))
        place = row.trial, column
        np.testing.assert_allclose(row.mean, _mean_by_hand(made_up, *place, last), rtol=1e-12)
        assert row.z2 == pytest.approx(_error_by_hand(made_up, *place, last), rel=1e-12)
        assert row.evaluations == _cost_by_hand(made_up, *place, last)
        assert row.passed_at == PASSED_AT[place]
        assert (row.failure, row.failed_at) == (
            made_up.carry.failure[place],
            made_up.carry.failed_at[place],
        )
        weights = made_up.carry.state.weights[place].tolist()
        assert row.weights_sum == pytest.approx(sum(weights))
        assert row.weights_ess == pytest.approx(sum(weights) ** 2 / sum(w * w for w in weights))


def test_the_gate_shows_the_held_phase_and_no_more(made_up):
    for trial, last in enumerate((9, SCALE.num_iterations)):
        rows = made_up.gate[made_up.gate["trial"] == trial]
        assert rows["iteration"].tolist() == list(range(1, last + 1))
        for name, expected in (("gradient_norm", "norms"), ("statistic", "statistics")):
            values = getattr(made_up, expected)[:last, trial, 0].astype(np.float32)
            np.testing.assert_array_equal(rows[name], values)
        record = made_up.carry.state.hot_start.log_potentials[trial, 0]
        for t in (9, 17, 32):
            if t <= last:
                with jax.enable_x64(True):
                    expected = hot_start_statistic(jnp.array(record[:t]), t)
                found = rows.loc[rows["iteration"] == t, "every_statistic"].item()
                assert found == pytest.approx(float(expected), rel=1e-6)


def test_the_held_phase_ends_with_the_chunk_in_which_the_last_trial_passes():
    """Two trials that pass at 9 and 17: chunks of 8 are kept up to 24."""
    records, values = Records(), np.arange(1.0, 41.0)[:, None, None] * np.ones((2, 3))
    for before in range(0, 40, CHUNK):
        ends = np.array([9, 17])
        passed_at = np.where(ends <= before + CHUNK, ends, -1)[:, None] * np.ones(3, int)
        state = SimpleNamespace(hot_start=SimpleNamespace(passed_at=passed_at))
        chunk = values[before : before + CHUNK]
        records.add_held(before, Recorded(None, None, chunk, -chunk), Carry(state, *[None] * 3))
    assert records["held_iteration"].tolist() == list(range(1, 25))
    np.testing.assert_array_equal(records["held_gradient_norm"], values[:24, :, 0])
    np.testing.assert_array_equal(records["held_statistic"], -values[:24, :, 0])


@pytest.mark.parametrize("passed_at", [399, 400, 401, 997, 5_003])
def test_a_long_held_phase_is_thinned_and_keeps_its_end(passed_at):
    length = 10_000
    values = np.arange(1.0, length + 1)[:, None]
    records = Records(
        {
            "held_iteration": [np.arange(1, length + 1)],
            "held_gradient_norm": [values],
            "held_statistic": [-values],
        }
    )
    gate = tables._gate(records, np.array([passed_at]), np.zeros((1, length, NUM_CHAINS)))
    assert gate["iteration"][-1] == passed_at
    assert 200 <= len(gate["iteration"]) <= 401
    assert np.all(np.diff(gate["iteration"]) > 0)
    np.testing.assert_array_equal(gate["gradient_norm"], gate["iteration"])
    np.testing.assert_array_equal(gate["statistic"], -gate["iteration"])


def test_evaluations_by_hand():
    """M = 10, two chains: 20 at the start, 10 a log density, 20 an update of the weights."""
    cases = {
        # (log densities, iteration, passed at): expected
        (0, 0, 0): 20,
        (6, 3, 0): 20 + 60 + 60,
        (6, 3, -1): 20 + 60,
        (6, 3, 3): 20 + 60,
        (8, 4, 3): 20 + 80 + 20,
        (6, 3, 90): 20 + 60,  # released later than this record
    }
    for (densities, iteration, passed_at), expected in cases.items():
        found = log_potential_evaluations(np.array(densities), iteration, passed_at, 10)
        assert found == expected, (densities, iteration, passed_at)


def test_records_survive_being_saved():
    records = Records()
    rows = Recorded(np.ones((2, 1, 1, 3)), np.ones((2, 1, 1), int), np.ones((2, 1, 1)), None)
    records.add(np.array([1, 2]), rows)
    records.add(np.array([3, 4]), rows)
    again = Records.from_arrays({**records.arrays(), "leaf0": np.zeros(1)})
    assert set(again.pieces) == set(records.pieces)
    for name in records.pieces:
        np.testing.assert_array_equal(again[name], records[name])
        assert again[name].dtype == records[name].dtype


@pytest.mark.parametrize("last", [1, 2, 3, 7, 120, 160, 999, 5_000, 25_000, 200_000])
def test_with_every_recorded_iteration_its_half_is_recorded(last):
    found = record_iterations(last)
    assert found == sorted(set(found))
    assert found[0] == 1
    assert found[-1] == last
    assert all(t // 2 in found for t in found if t > 1)
    assert len(found) <= 4 * (last.bit_length() + 1)


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_a_study_stops_where_it_can_be_judged(scale):
    records = record_iterations(scale.num_iterations)
    assert stop_after(scale, None) == scale.num_iterations
    assert scale.num_iterations % scale.chunk == 0
    for asked in (1, scale.chunk, scale.num_iterations // 8, scale.num_iterations):
        stop = stop_after(scale, asked)
        assert asked <= stop <= scale.num_iterations
        assert stop in records
        assert stop % scale.chunk == 0
    for asked in (-1, 0, scale.num_iterations + 1):
        with pytest.raises(StudyError, match="--iterations"):
            stop_after(scale, asked)
