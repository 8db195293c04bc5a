"""A run in progress: what happens between pieces of the compiled loop."""

import importlib.metadata
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from coremcmc.base import DataSource, Feed, Model, Position, named_leaves
from coremcmc.coreset_mcmc import FAILURES, CoresetMCMC
from coremcmc.io import pack_tree, unpack_tree
from coremcmc.loop import LoopState, Records, run_piece
from coremcmc.progress import ProgressBar, interrupts
from coremcmc.result import Coreset, Fit
from coremcmc.selection import Selected
from coremcmc.settings import Settings
from coremcmc.start import begin
from coremcmc.version import __version__

__all__ = ["FitError", "Run"]

_CAPACITY = 256  # records that one piece of the loop can hold
_PIECE_SECONDS = 0.5  # how long a piece should take: the latency of Ctrl-C and of the bar


class FitError(RuntimeError):
    """A run that could not go on. ``fit`` holds the result up to the last good state."""

    def __init__(self, message: str, fit: Fit):
        super().__init__(message)
        self.fit = fit


class Run:
    """A run in progress. Everything here happens between pieces of the compiled loop."""

    def __init__(
        self,
        model: Model,
        data: DataSource,
        settings: Settings,
        selected: Selected,
        seed: int,
        preset: str,
        initial_positions: Position | None,
    ):
        self.model, self.data, self.settings = model, data, settings
        self.selected = selected
        self.algorithm = CoresetMCMC(
            model,
            data.num_rows,
            settings.kernel,
            settings.optimizer,
            settings.hot_start,
            settings.max_weight_sum,
        )
        self.config = _config(model, data, settings, len(selected.indices), seed, preset)
        self.stored_rows = data.take(selected.indices)
        self.key, self.rows, self.state = begin(
            self.algorithm,
            self.stored_rows,
            selected.weights,
            seed,
            num_chains=settings.num_chains,
            planned_length=settings.num_iterations,
            given=initial_positions,
        )
        self.records: list[Records] = []
        self.seconds = 0.0
        self.stopped = "running"

    @property
    def iteration(self) -> int:
        """How many iterations are done."""
        return int(self.state.coreset.iteration)

    def restore(self, path: Path) -> None:
        """Take the state and the records of a checkpoint of the same problem."""
        saved = Fit.load(path)
        _check_same_problem(path, saved.config, self.config)
        if saved.iteration > self.settings.num_iterations:
            raise ValueError(
                f"checkpoint {str(path)!r} is at iteration {saved.iteration:,}, beyond "
                f"num_iterations = {self.settings.num_iterations:,}. Raise num_iterations, or "
                "load it with Fit.load."
            )
        like = jax.tree.map(np.asarray, self.state)
        state = unpack_tree("", saved.state, like)
        self.state = jax.tree.map(jnp.asarray, state)
        saved_records: dict[str, Any] = {"positions": saved.positions, **saved.traces}
        self.records = [Records(**saved_records)]
        self.seconds = saved.seconds

    def train(self, path: Path | None, every: float, progress: bool | None) -> None:
        """Run to the end, to Ctrl-C, or to a failure."""
        total = self.settings.num_iterations
        feed = self.data.feed()
        saved_at = time.monotonic()
        num_records = 1
        with interrupts() as interrupt, ProgressBar(total, self.iteration, progress) as bar:
            while self.iteration < total and not interrupt.requested:
                began = time.monotonic()
                num_records = self._piece(feed, num_records)
                if int(self.state.failure):
                    self._fail(path)
                last = self.records[-1]
                bar.update(
                    self.iteration,
                    bool(last.is_hot[-1]),
                    float(last.hot_start_statistic[-1]),
                    float(last.gradient_norm[-1]),
                )
                self.seconds += time.monotonic() - began
                if path is not None and time.monotonic() - saved_at > every:
                    self.result(with_draws=False).save(path)
                    saved_at = time.monotonic()
        self.stopped = "finished" if self.iteration >= total else "interrupted"

    def _piece(self, feed: Feed, num_records: int) -> int:
        """Run some records' worth of iterations; return how many to run next."""
        began = time.monotonic()
        self._good_state = self.state
        self.state, buffer, count = run_piece(
            self.algorithm,
            self.key,
            self.state,
            self.rows,
            feed,
            jnp.asarray(self.settings.num_iterations),
            jnp.asarray(num_records),
            subsample_size=self.settings.subsample_size,
            thin=self.settings.thin,
            capacity=_CAPACITY,
        )
        filled = int(count)
        if not int(self.state.failure):
            # Cut on the host: on the device every new length would be a new program.
            self.records.append(jax.tree.map(lambda x: np.asarray(x)[:filled].copy(), buffer))
        spent = time.monotonic() - began
        faster = filled * _PIECE_SECONDS / max(spent, 1e-6)
        return int(np.clip(faster, 1, min(2 * num_records, _CAPACITY)))

    def _fail(self, path: Path | None) -> None:
        """Save the last good state, then raise."""
        iteration, failure = self.iteration, int(self.state.failure)
        self.state, self.stopped = self._good_state, "failed"
        good = self.result(with_draws=False)
        kept = "The result so far is in the exception's `fit`."
        if path is not None:
            good.save(path)
            kept = f"The state of iteration {good.iteration:,} is saved in {str(path)!r}."
        raise FitError(f"iteration {iteration:,}: {FAILURES[failure]}. {kept}", good)

    def result(self, with_draws: bool = True) -> Fit:
        """Return all there is so far."""
        records = _concatenate(self.records, self.state)
        traces = records._asdict()
        positions = traces.pop("positions")
        state: Any = jax.tree.map(np.asarray, self.state)
        coreset_state, average = state.coreset, state.average
        last = coreset_state.weights
        averaged = self.iteration - int(average.older_start)
        mean = average.older_sum / averaged if averaged else last
        use_average = self.settings.returned_weights == "average"
        coreset = Coreset(
            indices=self.selected.indices,
            weights=mean if use_average else last,
            weights_last=last,
            weights_average=mean,
            average_start=int(average.older_start),
            rows=_named(self.stored_rows, "data"),
            num_rows=self.data.num_rows,
        )
        first = jax.tree.map(lambda x: x[0], coreset_state.chains.position)
        return Fit(
            coreset=coreset,
            positions=positions,
            position_shapes={name: x.shape for name, x in _named(first, "position").items()},
            draws=_constrained_draws(self.model, positions, first) if with_draws else {},
            traces=traces,
            config=self.config,
            hot_start={
                "passed_at": int(coreset_state.hot_start.passed_at),
                "is_forced": int(coreset_state.hot_start.is_forced),
                "threshold": getattr(self.settings.hot_start, "threshold", 0.0),
            },
            iteration=self.iteration,
            stopped=self.stopped,
            seconds=self.seconds,
            state=pack_tree("", state),
        )


def _check_same_problem(path: Path, saved: dict[str, Any], current: dict[str, Any]) -> None:
    """Compare everything that shapes the result, but the number of iterations and versions."""
    different = []
    for key in ("model", "data", "coreset_size", "seed"):
        if saved[key] != current[key]:
            different.append(f"{key}: {saved[key]} there, {current[key]} here")
    for key, value in current["settings"].items():
        if key != "num_iterations" and saved["settings"].get(key) != value:
            different.append(f"{key}: {saved['settings'].get(key)} there, {value} here")
    if different:
        raise ValueError(
            f"checkpoint {str(path)!r} belongs to another problem ({'; '.join(different)}). "
            "Name another file, or restore those arguments."
        )


def _config(
    model: Model, data: DataSource, settings: Settings, coreset_size: int, seed: int, preset: str
) -> dict[str, Any]:
    versions = {name: importlib.metadata.version(name) for name in ("jax", "optax", "numpy")}
    return {
        "model": model.describe(),
        "data": data.fingerprint(),
        "coreset_size": coreset_size,
        "seed": seed,
        "preset": preset,
        "settings": settings.describe(),
        "versions": {"coremcmc": __version__, **versions},
        "device": jax.devices()[0].platform,
    }


def _named(tree: Any, name: str) -> dict[str, np.ndarray]:
    return {key: np.asarray(leaf) for key, leaf in named_leaves(tree, name).items()}


def _concatenate(pieces: list[Records], state: LoopState) -> Records:
    """Join the records of all pieces; of none, make empty ones."""
    if pieces:
        return jax.tree.map(lambda *parts: np.concatenate(parts), *pieces)
    num_chains = state.coreset.chains.loglikelihoods.shape[0]
    dimension = state.position_sum.shape[0]
    empty = {name: np.zeros(0) for name in Records._fields}
    empty["positions"] = np.zeros((0, num_chains, dimension))
    empty["position_sum"] = np.zeros((0, dimension))
    empty["log_potentials"] = np.zeros((0, num_chains))
    return Records(**empty)  # type: ignore[arg-type]


def _constrained_draws(
    model: Model, positions: np.ndarray, like: Position
) -> dict[str, np.ndarray]:
    """Turn flat draws (records × chains × D) into named ones (chains × records × shape)."""
    _, unravel = ravel_pytree(like)
    constrain = jax.jit(jax.vmap(jax.vmap(lambda flat: model.constrain_fn(unravel(flat)))))
    draws = constrain(jnp.asarray(positions))
    return {name: np.swapaxes(np.asarray(x), 0, 1) for name, x in draws.items()}
