"""One job on the device: all trials and all configurations advance together.

A trial fixes the coreset, the start of the chains, the subsamples and the chains' random numbers;
its configurations differ in their optimizer alone, so that methods are compared on equal terms.
Inside a chunk of iterations nothing leaves the device.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import coremcmc
from experiments.datasets import Dataset
from experiments.methods import METHODS, Config, configs, one_of
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
    failure, failed_at
        The first failure of each run and its iteration; zero and −1 while there is none.
    """

    state: Any
    position_sum: jax.Array
    failure: jax.Array
    failed_at: jax.Array


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


def build_program(
    job: Job,
    scale: Scale,
    dataset: Dataset,
    seed: int = 0,
    *,
    trials: Sequence[int] | None = None,
    runs: Sequence[Config] | None = None,
) -> Program:
    """Choose the coresets and compile the job. Call it in 64-bit mode.

    ``trials`` and ``runs`` are the scale's if not given; any of them are the same in any company.
    """
    task, size = job.task, job.coreset_size
    columns = task.rows(dataset)
    data = coremcmc.MemoryData(columns)
    draw_start = task.start(columns) if task.start else None
    runs = configs(scale) if runs is None else runs
    names = list(METHODS)
    index = jnp.array([names.index(run.method) for run in runs])
    parameter = jnp.array([run.parameter for run in runs])
    is_held = jnp.array([run.hot_start for run in runs])
    hot_start = coremcmc.HotStart(max_iterations=scale.max_hold)

    trials = range(scale.num_trials) if trials is None else trials
    seeds = [[seed, size, trial, *task.problem.encode()] for trial in trials]
    chosen = [data.take(_select(task, data, size, s)) for s in seeds]
    rows = jax.tree.map(lambda *columns: jnp.stack(columns), *chosen)
    keys = jax.vmap(jax.random.key)(jnp.array([_key_seed(s) for s in seeds]))
    feed = data.feed()

    def algorithm(rows, index, parameter):
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
        positions = None
        if draw_start is not None:
            chain_keys = jax.random.split(key, NUM_CHAINS)
            positions = jax.vmap(draw_start, (0, None))(chain_keys, rows)
        state = algorithm(rows, index, parameter).init(key, NUM_CHAINS, positions=positions)
        passed_at = jnp.where(is_held, state.hot_start.passed_at, 0)
        return state._replace(hot_start=state.hot_start._replace(passed_at=passed_at))

    @jax.jit
    def begin(keys, rows):
        each_config = jax.vmap(begin_run, in_axes=(None, None, 0, 0, 0))
        each_trial = jax.vmap(each_config, in_axes=(0, 0, None, None, None))
        state = each_trial(keys, rows, index, parameter, is_held)
        state = state._replace(iteration=jnp.zeros((), int))
        mean = jax.vmap(jax.vmap(judged_mean))(state.chains.position)
        zeros = jnp.zeros(mean.shape[:2], int)
        carry = Carry(state, jnp.zeros_like(mean), zeros, zeros - 1)
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
        fails = (carry.failure == 0) & (info.failure != 0)
        carry = Carry(
            state,
            carry.position_sum + mean,
            jnp.where(fails, info.failure, carry.failure),
            jnp.where(fails, state.iteration, carry.failed_at),
        )
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
    lowered = jax.jit(advance, donate_argnums=3).lower(keys, rows, feed, abstract)
    compiled = lowered.compile({} if scale.optimize else {"xla_backend_optimization_level": 0})
    return Program(lambda: begin(keys, rows), lambda carry: compiled(keys, rows, feed, carry))


def _key_seed(seed: list[int]) -> int:
    return int(np.random.SeedSequence(seed).generate_state(1, np.uint32)[0])
