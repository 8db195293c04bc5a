"""A run in progress: what happens between pieces of the compiled loop."""

import contextlib
import ctypes
import time
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coremcmc.algorithm.loop import LoopState, Records, run_piece
from coremcmc.algorithm.start import Start, begin
from coremcmc.algorithm.step import FAILURES, CoresetMCMC
from coremcmc.algorithm.stopping import Settled
from coremcmc.base import DataSource, Feed, Model, named_leaves
from coremcmc.coreset import Coreset
from coremcmc.fitting.checkpoint import (
    check_same_problem,
    read_control,
    versions,
    write_control,
)
from coremcmc.fitting.draws import draw_until_mixed, with_draws
from coremcmc.fitting.progress import PassBar, ProgressBar, interrupts
from coremcmc.fitting.result import Fit
from coremcmc.fitting.settings import Settings
from coremcmc.gradient.control_passes import revised
from coremcmc.identity import describe
from coremcmc.posterior.target import Target
from coremcmc.pytrees import named_draws, pack_tree, unpack_tree

__all__ = ["FitError", "Run", "save_or_warn"]

_WARMUP = 200  # steps of the kernel before draws at fixed weights are kept


class FitError(RuntimeError):
    """A run that could not go on. ``fit`` holds the result up to the last good state."""

    def __init__(self, message: str, fit: Fit):
        super().__init__(message)
        self.fit = fit

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.fit)


class Run:
    """A run in progress.

    Parameters
    ----------
    saved
        A checkpoint to go on from. It must be of the same problem.
    """

    def __init__(
        self,
        model: Model,
        data: DataSource,
        settings: Settings,
        start: Start,
        seed: int,
        preset: str,
        saved: Fit | None = None,
    ):
        self.data, self.settings = data, settings
        self.selected, self.control = start.selected, start.control
        indices = self.selected.indices
        self.config: dict[str, Any] = {
            "model": model.describe(),
            "data": data.fingerprint(),
            "coreset_size": len(indices),
            "seed": seed,
            "initial_positions": describe(start.positions),
            "preset": preset,
            "settings": settings.describe(),
            "versions": versions(),
            "device": jax.default_backend(),
        }
        if saved is not None:
            there = saved.coreset.indices
            check_same_problem(saved.config, self.config, there, indices, saved.iteration)
        self.algorithm = CoresetMCMC(
            model,
            data.num_rows,
            settings.make_kernel(model),
            settings.make_optimizer(),
            settings.hot_start,
            settings.max_weight_sum,
            identity=self.config["model"],
        )
        self.stored_rows = data.take(indices)
        self.key, self.rows, self.state = begin(
            self.algorithm,
            self.stored_rows,
            self.selected.weights,
            seed,
            num_chains=settings.num_chains,
            planned_length=settings.num_iterations,
            given=start.positions,
        )
        self._first_position = jax.tree.map(
            lambda x: np.asarray(x)[0], self.state.coreset.chains.position
        )
        self.records: list[Records] = []
        self.draws: list[dict[str, np.ndarray]] = []
        self.seconds = 0.0
        self.stopped = "running"
        self._revised_at = -1
        if saved is not None:
            self._restore(saved)

    @property
    def iteration(self) -> int:
        """How many iterations are done."""
        return int(self.state.coreset.iteration)

    def _restore(self, saved: Fit) -> None:
        """Take the state and the records of a checkpoint."""
        state = unpack_tree("", saved.state, jax.tree.map(np.asarray, self.state))
        self.state = jax.tree.map(jnp.asarray, state)
        if len(saved.positions):
            records: dict[str, Any] = {"positions": saved.positions, **saved.traces}
            self.records = [Records(**records)]
            self.draws = [{k: np.swapaxes(x, 0, 1) for k, x in saved.draws.items()}]
        self.seconds = saved.seconds
        model = self.algorithm.model
        found = read_control(saved.state, self.control, model, self.data)
        self.control, self._revised_at = found

    def _revise_control(self) -> None:
        """See at a fixed iteration whether the control variate still does its work."""
        if self.control is None or self._revised_at == self.iteration:
            return
        records = _concatenate(self.records, self.state)
        latter = slice(3 * len(records.iteration) // 4, None)
        found = revised(
            self.control,
            self.algorithm.model,
            self.data,
            np.asarray(records.positions)[latter],
            np.asarray(records.control_ratio)[latter],
            self.settings.limits.control,
        )
        if found is not None:
            self.control, self._revised_at = found, self.iteration

    def train(self, path: Path | None, every: float | int, progress: bool | None) -> None:
        """Run to the end, to Ctrl-C, or to a failure."""
        total = self.settings.num_iterations
        checks = self.settings.limits.stopping.checks(total)
        self._compile_before_large_data()
        feed = self.data.feed()
        saved_at = time.monotonic()
        budget = self.settings.limits.pacing.first
        with interrupts() as interrupt, ProgressBar(total, self.iteration, progress) as bar:
            while self.iteration < total and not interrupt.requested:
                if self.iteration in checks:
                    if self.settings.stops_early and self._has_settled():
                        break
                    self._revise_control()
                began = time.monotonic()
                until = min([c for c in checks if c > self.iteration], default=total)
                budget, gradient_norm = self._piece(feed, budget, until - self.iteration)
                if int(self.state.failure):
                    self._fail(path)
                hot_start = self.state.coreset.hot_start
                is_hot, statistic = bool(hot_start.is_hot), float(hot_start.statistic)
                bar.update(self.iteration, is_hot, statistic, gradient_norm)
                self.seconds += time.monotonic() - began
                if path is not None and time.monotonic() - saved_at > every:
                    save_or_warn(self.result(), path)
                    saved_at = time.monotonic()
        if interrupt.requested and self.iteration < total:
            self.stopped = "interrupted"
        else:
            self.stopped = "finished" if self.iteration >= total else "settled"

    def _has_settled(self) -> bool:
        """Whether more iterations would change little, judged at a fixed iteration."""
        records = _concatenate(self.records, self.state)
        return self.settings.limits.stopping.settled(
            records.residual_variance, records.positions
        ).is_done

    def _arguments(self, feed: Feed, budget: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of the compiled loop."""
        stop = jnp.asarray(self.settings.num_iterations)
        pacing = self.settings.limits.pacing
        numbers = self.settings.num_chains * self.state.position_sum.size
        options = {
            "subsample_size": self.settings.subsample_size,
            "thin": self.settings.thin,
            "capacity": max(1, min(pacing.records, pacing.numbers // numbers)),
        }
        arguments = (self.algorithm, self.key, self.state, self.rows, feed, stop)
        return (*arguments, jnp.asarray(budget), self.control), options

    def _compile_before_large_data(self) -> None:
        """Compile, and give the compiler's memory back, before a copy of large data is made.

        The later call finds the compiled program.
        """
        feed = self.data.abstract_feed()
        size = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(feed))
        if size > self.settings.limits.pacing.large_data:
            arguments, options = self._arguments(feed, 1)
            run_piece.lower(*arguments, **options).compile()
            with contextlib.suppress(OSError, AttributeError, TypeError):  # where there is glibc
                ctypes.CDLL(None).malloc_trim(0)

    def _piece(self, feed: Feed, budget: int, most: int) -> tuple[int, float]:
        """Run so many iterations; return how many to run next, and the last gradient norm."""
        began, first = time.monotonic(), self.iteration
        self._good_state = self.state
        arguments, options = self._arguments(feed, min(budget, most))
        self.state, buffer, count, gradient_norm = run_piece(*arguments, **options)
        if not int(self.state.failure):
            # Cut on the host: on the device every new length would be a new program.
            kept = slice(int(count))
            named = named_draws(
                self.algorithm.model, np.asarray(buffer.positions), self._first_position
            )
            self.records.append(jax.tree.map(lambda x: np.asarray(x)[kept].copy(), buffer))
            self.draws.append({name: x[kept].copy() for name, x in named.items()})
        done, spent = self.iteration - first, time.monotonic() - began
        fitting = done * self.settings.limits.pacing.seconds / max(spent, 1e-6)
        return int(np.clip(fitting, 1, 4 * budget)), float(gradient_norm)

    def _reason(self, found: Settled) -> str:
        """Say why the run ended."""
        if self.settings.stops_early and self.stopped in ("settled", "finished"):
            cap = "the cap was reached before all had settled"
            return f"{'nothing changes any more' if found.is_done else cap}: {found.reason}"
        return {
            "finished": "all the iterations that were asked for are done",
            "interrupted": "the run was interrupted",
        }.get(self.stopped, "")

    def draw(self, fit: Fit, progress: bool | None) -> Fit:
        """Draw from the posterior of the returned coreset, its weights fixed."""
        if not self.settings.num_draws:
            return fit
        algorithm, coreset = self.algorithm, self.state.coreset
        target = Target(algorithm.model, self.rows, jnp.asarray(fit.coreset.weights))
        with PassBar("drawing", self.settings.num_draws, progress, unit="steps") as bar:
            draws, densities, is_stuck = draw_until_mixed(
                algorithm.kernel,
                self.key,
                target,
                coreset.chains.position,
                coreset.metric,
                num_draws=self.settings.num_draws,
                num_warmup=_WARMUP,
                advanced=bar,
            )
        if is_stuck:
            warnings.warn(
                "a chain got stuck while drawing from the coreset posterior: its log density is "
                "NaN or discontinuous somewhere. Check the model.",
                stacklevel=4,
            )
        return with_draws(fit, algorithm.model, draws, self._first_position, {"lp": densities})

    def _fail(self, path: Path | None) -> None:
        """Save the last good state, then raise."""
        iteration, failure = self.iteration, int(self.state.failure)
        self.state, self.stopped = self._good_state, "failed"
        good = self.result()
        kept = "The result so far is in the exception's `fit`."
        if path is not None and save_or_warn(good, path):
            kept = f"The state of iteration {good.iteration:,} is saved in {str(path)!r}."
        raise FitError(f"iteration {iteration:,}: {FAILURES[failure]}. {kept}", good)

    def result(self) -> Fit:
        """Return all there is so far."""
        state: Any = jax.tree.map(np.asarray, self.state)
        coreset_state, average = state.coreset, state.average
        last = coreset_state.weights
        averaged = self.iteration - int(average.older_start)
        mean = average.older_sum / averaged if averaged else last
        records = _concatenate(self.records, state)
        found = self.settings.limits.stopping.settled(records.residual_variance, records.positions)
        use_average = self.settings.returned_weights == "average"
        if self.settings.returned_weights == "auto":
            use_average = found.is_flat
        coreset = Coreset(
            indices=self.selected.indices,
            weights=mean if use_average else last,
            weights_last=last,
            weights_average=mean,
            average_start=int(average.older_start),
            rows=_named(self.stored_rows, "data"),
            num_rows=self.data.num_rows,
        )
        shapes = {name: x.shape for name, x in _named(self._first_position, "position").items()}
        traces = records._asdict()
        return Fit(
            coreset=coreset,
            positions=traces.pop("positions"),
            position_shapes=shapes,
            draws=_concatenate_draws(self.draws),
            traces=traces,
            config=self.config,
            hot_start={
                "passed_at": int(coreset_state.hot_start.passed_at),
                "is_forced": int(coreset_state.hot_start.is_forced),
                "threshold": getattr(self.settings.hot_start, "threshold", 0.0),
            },
            iteration=self.iteration,
            stopped=self.stopped,
            stop_reason=self._reason(found),
            seconds=self.seconds,
            state=pack_tree("", state) | write_control(self.control, self._revised_at),
            model=self.algorithm.model,
        )


def save_or_warn(fit: Fit, path: Path) -> bool:
    """Save; where the disk refuses, warn and go on, for the run is worth more than the file."""
    try:
        fit.save(path)
    except (OSError, ValueError) as error:
        warnings.warn(f"could not save to {str(path)!r}: {error}", stacklevel=2)
        return False
    return True


def _named(tree: Any, name: str) -> dict[str, np.ndarray]:
    return {key: np.asarray(leaf) for key, leaf in named_leaves(tree, name).items()}


def _concatenate(pieces: list[Records], state: LoopState) -> Records:
    """Join the records of all pieces; of none, make empty ones."""
    if pieces:
        return jax.tree.map(lambda *parts: np.concatenate(parts), *pieces)
    num_chains = state.coreset.chains.loglikelihoods.shape[0]
    dimension = state.position_sum.shape[0]
    empty: dict[str, Any] = {name: np.zeros(0) for name in Records._fields}
    empty["positions"] = np.zeros((0, num_chains, dimension))
    empty["position_sum"] = np.zeros((0, dimension))
    empty["log_potentials"] = np.zeros((0, num_chains))
    return Records(**empty)


def _concatenate_draws(pieces: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Join named draws of all pieces, as chains × records × shape."""
    if not pieces:
        return {}
    joined = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
    return {name: np.swapaxes(x, 0, 1) for name, x in joined.items()}
