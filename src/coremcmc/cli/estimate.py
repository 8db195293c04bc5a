"""How much memory and time a fit will take, from short timed pieces of it."""

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coremcmc.algorithm.step import coreset_mcmc
from coremcmc.base import DataSource, Model, flat_positions
from coremcmc.cli.request import split_options
from coremcmc.data import MemoryData, as_data_source
from coremcmc.data.passes import full_pass
from coremcmc.fitting.settings import Settings, resolve
from coremcmc.posterior.derivatives import SumDerivatives, SumOfLogLikelihoods
from coremcmc.pytrees import prepared

__all__ = ["Estimate", "estimate"]

_PILOT_ROWS = 20_000
_PIECE_SECONDS = 0.5  # how long a timed piece of the loop should take
_DRAWS = 16
# What the default preset does to every row: Newton steps to the mode; 32 draws for the choice of
# rows, each with two derivatives; the draws that its weights start from, and the certificate's.
_NEWTON_PASSES, _EVALUATIONS = 8, 200
# A fit compiles several programs beside those that are timed here, and writes a report.
_OTHER_PROGRAMS, _OTHER_SECONDS = {True: 3.0, False: 1.0}, 5.0
_PROCESS_BYTES = 800_000_000  # Python, JAX and compiled programs
_AUTO_SIZE = 800  # coreset_size="auto" doubles from 100; most problems end below


@dataclass(frozen=True)
class Estimate:
    """What a fit will take.

    Attributes
    ----------
    num_rows
        N.
    num_parameters
        Length of the unconstrained position.
    data_bytes
        Of the model's arrays.
    memory_bytes
        At the peak: the user's table, the arrays and an aligned copy of them, the process.
    seconds_starting, seconds_of_passes, seconds_an_iteration
        Measured, or scaled from what was measured on some of the rows.
    iterations
        Fewest and most.
    """

    num_rows: int
    num_parameters: int
    data_bytes: int
    memory_bytes: int
    seconds_starting: float
    seconds_of_passes: float
    seconds_an_iteration: float
    iterations: tuple[int, int]

    @property
    def seconds(self) -> tuple[float, float]:
        """Wall time of the shortest and of the longest run."""
        fixed = self.seconds_starting + self.seconds_of_passes
        low, high = (fixed + n * self.seconds_an_iteration for n in self.iterations)
        return low, high


def estimate(
    model: Model,
    data: Any,
    coreset_size: int | str,
    options: dict[str, Any],
    table_bytes: int = 0,
) -> Estimate:
    """Time some iterations on some of the rows, and a pass over these; scale to the whole.

    Parameters
    ----------
    model, data, coreset_size
        As :func:`coremcmc.fit` takes them.
    options
        Its further arguments.
    table_bytes
        What the user's own table occupies.
    """
    source = as_data_source(data, model)
    source.check(model)
    size = min(_AUTO_SIZE, source.num_rows) if isinstance(coreset_size, str) else coreset_size
    given, _, preset = split_options(options)
    settings = resolve(model, source, size, preset, given)
    few = _some_rows(source, max(_PILOT_ROWS, size))
    data_bytes = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(source.abstract_feed()))
    with jax.enable_x64(True):
        compiling, iteration, dimension = _time_of_iterations(model, few, size, settings)
        a_row = 0.0
        if settings.is_guided or settings.certificate:
            compiling_passes, a_row = _time_of_passes(model, few)
            compiling += compiling_passes
    fewest = (
        settings.limits.stopping.first_check if settings.stops_early else settings.num_iterations
    )
    return Estimate(
        num_rows=source.num_rows,
        num_parameters=dimension,
        data_bytes=data_bytes,
        memory_bytes=_PROCESS_BYTES + 2 * data_bytes + table_bytes,
        seconds_starting=_OTHER_PROGRAMS[settings.is_guided] * compiling + _OTHER_SECONDS,
        seconds_of_passes=a_row * source.num_rows,
        seconds_an_iteration=iteration,
        iterations=(fewest, settings.num_iterations),
    )


def _some_rows(source: DataSource, most: int) -> MemoryData:
    chosen = np.arange(source.num_rows)
    if source.num_rows > most:
        chosen = np.sort(np.random.default_rng(0).choice(source.num_rows, most, replace=False))
    return MemoryData(source.take(chosen))


def _time_of_iterations(
    model: Model, rows: MemoryData, size: int, settings: Settings
) -> tuple[float, float, int]:
    """Seconds to compile the loop, seconds an iteration, and the number of parameters."""
    coreset = rows.take(np.arange(size))
    kernel, optimizer = settings.make_kernel(model), settings.make_optimizer()
    algorithm = coreset_mcmc(
        model, coreset, rows.num_rows, kernel=kernel, optimizer=optimizer, hot_start=None
    )
    state = algorithm.init(jax.random.key(0), settings.num_chains)
    feed, subsample_size = rows.feed(), int(settings.subsample_size or size)

    def advance(i: Any, state: Any) -> Any:
        key = jax.random.fold_in(jax.random.key(1), i)
        _, subsample = feed.draw(key, i, min(subsample_size, rows.num_rows))
        return algorithm.step(key, state, subsample)[0]

    @jax.jit
    def run(state: Any, count: Any) -> Any:
        return jax.lax.fori_loop(0, count, advance, state)

    def timed(count: int) -> float:
        return _timed(lambda: jax.block_until_ready(run(state, jnp.asarray(count))))[0]

    compiling, count, seconds = timed(1), 10, timed(10)
    while seconds < _PIECE_SECONDS / 4:
        count *= 4
        seconds = timed(count)
    dimension = flat_positions(state.chains.position).shape[1]
    return compiling, seconds / count, dimension


def _time_of_passes(model: Model, rows: MemoryData) -> tuple[float, float]:
    """Seconds to compile the passes of the default preset, and what they spend on a row."""
    start = model.initial_position(jax.random.key(0), prepared(model, rows.take(np.arange(2))))
    several = jax.tree.map(lambda x: jnp.stack([jnp.asarray(x, float)] * _DRAWS), start)
    compiling = a_row = 0.0
    for function, argument, times in (
        (SumDerivatives(model), start, _NEWTON_PASSES),
        (SumOfLogLikelihoods(model), several, _EVALUATIONS / _DRAWS),
    ):
        one = functools.partial(full_pass, rows, function, argument)
        try:
            compiling += _timed(one)[0]
            a_row += times * _timed(one)[0] / rows.num_rows
        except (ValueError, TypeError):  # not finite where it starts, or no derivatives
            continue
    return compiling, a_row


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.monotonic()
    found = work()
    return time.monotonic() - began, found
