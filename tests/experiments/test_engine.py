import jax
import jax.numpy as jnp
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


@pytest.mark.slow
def test_every_method_advances_as_it_would_alone():
    """The batch of all runs against a plain loop over the public ``coreset_mcmc``."""
    scale, job, dataset, trial = SCALES["smoke"], Job(TASKS["poisson"], 20), _counts(), 1
    program = build_program(job, scale, dataset)
    carry, _ = program.advance(program.begin())

    data = coremcmc.MemoryData(job.task.rows(dataset))
    seed = [0, 20, trial, *b"poisson"]
    rows = data.take(engine._select(job.task, data, 20, seed))
    key = jax.random.key(engine._key_seed(seed))
    feed = data.feed()
    # The last grid value of each method without the hot start, and one method with it, whose
    # weights forty iterations do not release.
    columns = {config.method: i for i, config in enumerate(configs(scale)) if not config.hot_start}
    for column in [*columns.values(), columns["adam"] - 1]:
        config = configs(scale)[column]
        algorithm = coremcmc.coreset_mcmc(
            job.task.model,
            rows,
            data.num_rows,
            optimizer=getattr(optimizers, config.method)(config.parameter),
            hot_start=coremcmc.HotStart(max_iterations=90) if config.hot_start else None,
        )

        def iterate(state, t, algorithm=algorithm):
            key_move, key_subsample = jax.random.split(jax.random.fold_in(key, t))
            state, _ = algorithm.step(key_move, state, feed.subsample(key_subsample, t, 20))
            return state, state.chains.position["beta"].mean(axis=0)

        start = algorithm.init(key)
        start = jax.tree.map(lambda x: jax.lax.convert_element_type(x, x.dtype), start)
        state, means = jax.lax.scan(iterate, start, jnp.arange(scale.chunk))
        found = carry.state.weights[trial, column]
        np.testing.assert_allclose(found, state.weights, rtol=1e-6, err_msg=str(config))
        total = carry.position_sum[trial, column]
        np.testing.assert_allclose(total, means.sum(axis=0), rtol=1e-6, err_msg=str(config))
        assert carry.state.num_evaluations[trial, column] == state.num_evaluations
        moved = not np.allclose(state.weights, 100.0, rtol=1e-12)
        assert moved != config.hot_start, config


def test_trials_differ_and_their_configurations_share_the_start():
    scale, job = SCALES["smoke"], Job(TASKS["poisson"], 20)
    carry = build_program(job, scale, _counts()).begin()
    start = np.asarray(carry.state.chains.position["beta"])
    assert np.all(start == start[:, :1])
    assert np.all(start[0] != start[1])


def test_one_of_is_each_of_its_candidates():
    gradient = np.array([1.0, -2.0, 3.0])
    weights = jnp.array([1.0, 2.0, 3.0])
    for index, name in enumerate(METHODS):
        one = one_of(jnp.array(index), jnp.array(0.1))
        alone = getattr(optimizers, name)(0.1)
        found, _ = one.update(gradient, one.init(weights), weights)
        expected, _ = alone.update(gradient, alone.init(weights), weights)
        np.testing.assert_array_equal(found, expected)
        assert np.any(np.asarray(found) != 0), name
