"""One job on the device: all trials and all configurations advance together.

A trial fixes the coreset, the start of the chains, the subsamples and the chains' random numbers;
its configurations differ in their optimizer alone, so that methods are compared on equal terms.
Inside a chunk of iterations nothing leaves the device.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import coremcmc
from experiments.datasets import Dataset
from experiments.methods import METHODS, configs
from experiments.scales import Scale
from experiments.store import Job

__all__ = ["NUM_CHAINS", "Carry", "Program", "Recorded", "build_program"]

NUM_CHAINS = 2


class Carry(NamedTuple):
    """Where all runs stand; arrays have leading axes (trial, configuration).

    Attributes
    ----------
    state
        The algorithm's state; ``iteration`` is common to all runs.
    position_sum
        Sum over iterations of the chains' mean of the judged parameters.
    failure
        The first failure of each run, zero while there is none.
    """

    state: Any
    position_sum: jax.Array
    failure: jax.Array


class Recorded(NamedTuple):
    """What one iteration leaves; a chunk stacks them along a first axis."""

    position_sum: jax.Array
    num_evaluations: jax.Array
    gradient_norm: jax.Array
    statistic: jax.Array


class Program(NamedTuple):
    """A job ready to run.

    Attributes
    ----------
    begin
        Returns the first :class:`Carry`.
    advance
        Makes one chunk of iterations: ``carry -> (carry, Recorded)``. Compiled.
    """

    begin: Any
    advance: Any


def _axes(state: Any) -> Any:
    """All parts of a state belong to a run, but for the iteration, which is common."""
    return state._replace(
        **{name: 0 for name in state._fields if name != "iteration"}, iteration=None
    )


def _select(task: Any, data: coremcmc.MemoryData, size: int, seed: list[int]) -> np.ndarray:
    """Choose a trial's coreset rows."""
    rng = np.random.default_rng(seed)
    if task.stratified:
        return coremcmc.Stratified("y")(rng, data, size).indices
    return np.sort(rng.choice(data.num_rows, size, replace=False))


def build_program(job: Job, scale: Scale, dataset: Dataset, seed: int = 0) -> Program:
    """Choose the coresets and compile the job. Call it in 64-bit mode."""
    task, size = job.task, job.coreset_size
    data = coremcmc.MemoryData(task.rows(dataset))
    runs = configs(scale)
    names = list(METHODS)
    index = jnp.array([names.index(run.method) for run in runs])
    parameter = jnp.array([run.parameter for run in runs])
    is_held = jnp.array([run.hot_start for run in runs])
    hot_start = coremcmc.HotStart(max_iterations=scale.max_hold)

    trials = range(scale.num_trials)
    seeds = [[seed, size, trial, *job.task.name.encode()] for trial in trials]
    chosen = [data.take(_select(task, data, size, s)) for s in seeds]
    rows = jax.tree.map(lambda *columns: jnp.stack(columns), *chosen)
    keys = jax.vmap(jax.random.key)(jnp.array([_key_seed(s) for s in seeds]))
    feed = data.feed()

    def algorithm(rows, index, parameter):
        from experiments.methods import one_of

        return coremcmc.coreset_mcmc(
            task.model,
            rows,
            data.num_rows,
            optimizer=one_of(index, parameter),
            hot_start=hot_start,
        )

    def judged_mean(position):
        names = task.judged or sorted(position)
        parts = [position[name].reshape(NUM_CHAINS, -1) for name in names]
        return jnp.concatenate(parts, axis=1).mean(axis=0)

    def begin_run(key, rows, index, parameter, is_held):
        state = algorithm(rows, index, parameter).init(key, NUM_CHAINS)
        passed_at = jnp.where(is_held, state.hot_start.passed_at, 0)
        return state._replace(hot_start=state.hot_start._replace(passed_at=passed_at))

    @jax.jit
    def begin(keys, rows):
        each_config = jax.vmap(begin_run, in_axes=(None, None, 0, 0, 0))
        each_trial = jax.vmap(each_config, in_axes=(0, 0, None, None, None))
        state = each_trial(keys, rows, index, parameter, is_held)
        state = state._replace(iteration=jnp.zeros((), int))
        mean = jax.vmap(jax.vmap(judged_mean))(state.chains.position)
        carry = Carry(state, jnp.zeros_like(mean), jnp.zeros(mean.shape[:2], int))
        return jax.tree.map(lambda x: jax.lax.convert_element_type(x, x.dtype), carry)

    def iterate(keys, rows, feed, carry):
        axes = _axes(carry.state)

        def trial(key, state, rows):
            iteration = state.iteration
            key_move, key_subsample = jax.random.split(jax.random.fold_in(key, iteration))
            subsample = feed.subsample(key_subsample, iteration, size)

            def run(state, index, parameter):
                return algorithm(rows, index, parameter).step(key_move, state, subsample)

            return jax.vmap(run, (axes, 0, 0), (axes, 0))(state, index, parameter)

        state, info = jax.vmap(trial, (0, axes, 0), (axes, 0))(keys, carry.state, rows)
        mean = jax.vmap(jax.vmap(judged_mean))(state.chains.position)
        failure = jnp.where(carry.failure == 0, info.failure, carry.failure)
        carry = Carry(state, carry.position_sum + mean, failure)
        return carry, Recorded(
            carry.position_sum,
            state.num_evaluations,
            info.gradient_norm,
            state.hot_start.statistic,
        )

    def advance(keys, rows, feed, carry):
        def body(carry, _):
            return iterate(keys, rows, feed, carry)

        return jax.lax.scan(body, carry, None, length=scale.chunk)

    abstract = jax.eval_shape(begin, keys, rows)
    compiled = jax.jit(advance, donate_argnums=3).lower(keys, rows, feed, abstract).compile()
    return Program(lambda: begin(keys, rows), lambda carry: compiled(keys, rows, feed, carry))


def _key_seed(seed: list[int]) -> int:
    return int(np.random.SeedSequence(seed).generate_state(1, np.uint32)[0])
