"""The compiled loop: many iterations in one program, with thinned records.

The compiled function is the same for every piece of a run, whatever its length: where to stop is
an argument, and the records fill the front of a buffer of fixed size. Nothing that it computes
depends on where one piece ends and the next begins, so that an interrupted run, resumed, gives
the same numbers to the last bit.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from coremcmc.algorithm.averaging import LatterHalf, latter_half_init, latter_half_update
from coremcmc.algorithm.step import CoresetMCMC, CoresetState, StepInfo
from coremcmc.base import Feed, PRNGKey, Rows, flat_positions
from coremcmc.gradient.control_variate import ControlVariate

__all__ = ["LoopState", "Records", "init_loop", "run_piece"]


class LoopState(NamedTuple):
    """All that a run needs to go on.

    Attributes
    ----------
    coreset
        The algorithm's state.
    average
        The running average of the weights.
    position_sum
        Sum over iterations of the chains' mean position, flattened.
    failure
        Index into :data:`coremcmc.algorithm.step.FAILURES`.
    """

    coreset: CoresetState
    average: LatterHalf
    position_sum: Float[Array, " D"]
    failure: Int[Array, ""]


class Records(NamedTuple):
    """What is kept of every ``thin``-th iteration; each array has one entry a record."""

    iteration: Int[Array, " R"]
    positions: Float[Array, "R K D"]
    position_sum: Float[Array, "R D"]
    log_potentials: Float[Array, "R K"]
    gradient_norm: Float[Array, " R"]
    hot_start_statistic: Float[Array, " R"]
    is_hot: Int[Array, " R"]
    num_evaluations: Int[Array, " R"]
    weights_sum: Float[Array, " R"]
    weights_max: Float[Array, " R"]
    weights_num_zero: Int[Array, " R"]
    weights_ess: Float[Array, " R"]
    residual_variance: Float[Array, " R"]
    control_ratio: Float[Array, " R"]


def init_loop(state: CoresetState, planned_length: int) -> LoopState:
    """Begin a run."""
    dimension = flat_positions(state.chains.position).shape[1]
    average = latter_half_init(state.weights, planned_length)
    begun = LoopState(state, average, jnp.zeros(dimension), jnp.zeros((), int))
    # Without weak types, which the loop's output has not: else the second piece would recompile.
    return jax.tree.map(lambda x: jax.lax.convert_element_type(x, x.dtype), begun)


@functools.partial(jax.jit, static_argnames=("algorithm", "subsample_size", "thin", "capacity"))
def run_piece(
    algorithm: CoresetMCMC,
    rng_key: PRNGKey,
    state: LoopState,
    rows: Rows,
    feed: Feed,
    stop: Int[Array, ""],
    budget: Int[Array, ""],
    control: ControlVariate | None = None,
    *,
    subsample_size: int,
    thin: int,
    capacity: int,
) -> tuple[LoopState, Records, Int[Array, ""], Float[Array, ""]]:
    """Run until iteration ``stop``, ``budget`` iterations, a full buffer, or a failure.

    Records fall on the multiples of ``thin``, and on ``stop``, the end of the run, wherever the
    pieces end. Returns the state, the buffer of ``capacity`` records, how many of them are filled,
    and the gradient norm of the last iteration.
    """
    piece_end = jnp.minimum(stop, state.coreset.iteration + budget)

    def iterate(carry: Any) -> Any:
        state, _ = carry
        iteration = state.coreset.iteration
        key_move, key_subsample = jax.random.split(jax.random.fold_in(rng_key, iteration))
        indices, subsample = feed.draw(key_subsample, iteration, subsample_size)
        coreset, info = algorithm.step(
            key_move,
            state.coreset,
            algorithm.model.prepare_rows(subsample),
            rows,
            control,
            indices,
        )
        centre = flat_positions(coreset.chains.position).mean(axis=0)
        average = latter_half_update(state.average, coreset.weights, coreset.iteration)
        new = LoopState(coreset, average, state.position_sum + centre, info.failure)
        return new, info

    def record_of(state: LoopState, info: StepInfo) -> Records:
        coreset = state.coreset
        weights = coreset.weights
        return Records(
            iteration=coreset.iteration,
            positions=flat_positions(coreset.chains.position),
            position_sum=state.position_sum,
            log_potentials=info.log_potentials,
            gradient_norm=info.gradient_norm,
            hot_start_statistic=coreset.hot_start.statistic,
            is_hot=coreset.hot_start.is_hot.astype(int),
            num_evaluations=coreset.num_evaluations,
            weights_sum=weights.sum(),
            weights_max=weights.max(),
            weights_num_zero=(weights == 0).sum(),
            weights_ess=jnp.square(weights.sum()) / jnp.square(weights).sum(),
            residual_variance=info.residual_variance,
            control_ratio=info.control_ratio,
        )

    def advance(carry: Any) -> Any:
        """Go to the next record, or to the end of the piece."""
        state, records, count, _ = carry
        until = jnp.minimum((state.coreset.iteration // thin + 1) * thin, piece_end)

        def unfinished(inner: Any) -> Any:
            return (inner[0].coreset.iteration < until) & (inner[0].failure == 0)

        state, info = jax.lax.while_loop(unfinished, iterate, (state, nothing))
        # Written in any case, and overwritten by the next where it is not due.
        write = functools.partial(jax.lax.dynamic_update_index_in_dim, index=count, axis=0)
        records = jax.tree.map(write, records, record_of(state, info))
        iteration = state.coreset.iteration
        due = ((iteration % thin == 0) | (iteration == stop)) & (state.failure == 0)
        return state, records, count + due, info.gradient_norm

    def more(carry: Any) -> Any:
        state, _, count, _ = carry
        unfinished = (state.coreset.iteration < piece_end) & (state.failure == 0)
        return unfinished & (count < capacity)

    num_chains = state.coreset.chains.loglikelihoods.shape[0]
    zero = jnp.zeros(())
    nothing = StepInfo(zero, jnp.zeros(num_chains), jnp.zeros((), int), zero, zero)
    shapes = jax.eval_shape(record_of, state, nothing)
    buffers = jax.tree.map(lambda s: jnp.zeros((capacity, *s.shape), s.dtype), shapes)
    start = (state, buffers, jnp.zeros((), int), jnp.zeros(()))
    return jax.lax.while_loop(more, advance, start)
