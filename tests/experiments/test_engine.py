import jax
import numpy as np
import pytest

import coremcmc
from coremcmc import optimizers
from experiments import engine
from experiments.datasets import Dataset
from experiments.engine import build_program
from experiments.methods import METHODS, configs, one_of
from experiments.scales import SCALES
from experiments.store import Job
from experiments.tasks import TASKS


def _counts() -> Dataset:
    rng = np.random.default_rng(5)
    x = rng.standard_normal((2_000, 8))
    return Dataset("bikes", {"x": x, "y": rng.poisson(5.0, 2_000)}, "generated")


@pytest.mark.parametrize("trial", [0, 1])
def test_every_method_advances_as_it_would_alone(trial):
    """The batch of all runs against a plain loop over the public ``coreset_mcmc``."""
    scale, job, dataset = SCALES["smoke"], Job(TASKS["poisson"], 20), _counts()
    with jax.enable_x64(True):
        program = build_program(job, scale, dataset)
        carry, _ = program.advance(program.begin())

        data = coremcmc.MemoryData(job.task.rows(dataset))
        seed = [0, 20, trial, *b"poisson"]
        rows = data.take(engine._select(job.task, data, 20, seed))
        key = jax.random.key(engine._key_seed(seed))
        feed = data.feed()
        for column, config in enumerate(configs(scale)):
            if config.hot_start and config.method != "adam":
                continue  # forty iterations do not pass the gate; one method shows that it holds
            algorithm = coremcmc.coreset_mcmc(
                job.task.model,
                rows,
                data.num_rows,
                optimizer=getattr(optimizers, config.method)(config.parameter),
                hot_start=coremcmc.HotStart(max_iterations=90) if config.hot_start else None,
            )
            state, total = algorithm.init(key), 0.0
            step = jax.jit(algorithm.step)
            for t in range(scale.chunk):
                key_move, key_subsample = jax.random.split(jax.random.fold_in(key, t))
                subsample = feed.subsample(key_subsample, jax.numpy.array(t), 20)
                state, _ = step(key_move, state, subsample)
                total = total + np.asarray(state.chains.position["beta"]).mean(axis=0)
            found = carry.state.weights[trial, column]
            np.testing.assert_allclose(found, state.weights, rtol=1e-6, err_msg=str(config))
            np.testing.assert_allclose(
                carry.position_sum[trial, column], total, rtol=1e-6, err_msg=str(config)
            )
            assert carry.state.num_evaluations[trial, column] == state.num_evaluations
            moved = not np.allclose(state.weights, 100.0, rtol=1e-12)
            assert moved != config.hot_start, config


def test_trials_differ_and_their_configurations_share_the_start():
    scale, job = SCALES["smoke"], Job(TASKS["poisson"], 20)
    with jax.enable_x64(True):
        carry = build_program(job, scale, _counts()).begin()
    start = np.asarray(carry.state.chains.position["beta"])
    assert np.all(start == start[:, :1])
    assert np.all(start[0] != start[1])


def test_one_of_is_each_of_its_candidates():
    gradient = np.array([1.0, -2.0, 3.0])
    with jax.enable_x64(True):
        weights = jax.numpy.array([1.0, 2.0, 3.0])
        for index, name in enumerate(METHODS):
            one = one_of(jax.numpy.array(index), jax.numpy.array(0.1))
            alone = getattr(optimizers, name)(0.1)
            found, _ = one.update(gradient, one.init(weights), weights)
            expected, _ = alone.update(gradient, alone.init(weights), weights)
            np.testing.assert_array_equal(found, expected)
            assert np.any(np.asarray(found) != 0), name
