"""What a fit gives back: the coreset, the draws, the traces; saved, loaded, summarised."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from coremcmc.certificate import Certificate
from coremcmc.diagnostics import average_squared_z, coordinate_names, latter_half_means
from coremcmc.io import check_writable, read_archive, write_archive

__all__ = ["Coreset", "Fit"]


@dataclass(frozen=True, eq=False)
class Coreset:
    """A small weighted subset of the rows.

    Attributes
    ----------
    indices
        Which M rows of the data.
    weights
        Their weights: ``weights_last`` or ``weights_average``, as the settings say.
    weights_last
        w_T, after the last iteration.
    weights_average
        The mean of the weights over the iterations after ``average_start``: the latter half of a
        run that went to its end.
    average_start
        See ``weights_average``.
    rows
        The rows themselves, as they were given.
    num_rows
        N, the number of rows that they stand for.
    """

    indices: np.ndarray
    weights: np.ndarray
    weights_last: np.ndarray
    weights_average: np.ndarray
    average_start: int
    rows: dict[str, np.ndarray]
    num_rows: int

    def __len__(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        zeros = int((self.weights == 0).sum())
        return (
            f"Coreset({len(self):,} of {self.num_rows:,} rows, weights sum to "
            f"{self.weights.sum():,.6g}, {zeros} of them zero)"
        )


@dataclass(frozen=True, eq=False)
class Fit:
    """The result of :func:`coremcmc.fit`.

    Attributes
    ----------
    coreset
        The weighted rows.
    positions
        Recorded draws as vectors of unconstrained parameters: records × chains × coordinates.
    position_shapes
        Name and shape of each part of such a vector, in order.
    draws
        The same draws as named parameters on a person's scale: chains × records × shape.
    traces
        One array each, an entry a record: ``iteration``, ``gradient_norm``,
        ``hot_start_statistic``, ``is_hot``, ``log_potentials`` (a column a chain),
        ``num_evaluations`` (log density evaluations by the kernels so far), ``weights_sum``,
        ``weights_max``, ``weights_num_zero``, ``weights_ess`` ((Σw)²/Σw²), ``position_sum``.
    config
        Settings, seed, versions, model and data, as plain values.
    hot_start
        ``passed_at`` (iteration, or −1), ``is_forced`` and ``threshold``.
    iteration
        How many iterations were done.
    stopped
        Why the run ended: ``"finished"``, ``"settled"`` (``num_iterations="auto"`` saw nothing
        change any more), ``"interrupted"``, or ``"running"`` in a checkpoint.
    seconds
        Wall time of all the run's pieces.
    sampled, sampled_positions
        Draws made after the training, the returned weights being fixed, in the forms of ``draws``
        and ``positions``; empty where none were asked for.
    verdict
        The certificate that the fit made, or None; see :meth:`certificate`.
    """

    coreset: Coreset
    positions: np.ndarray
    position_shapes: dict[str, tuple[int, ...]]
    draws: dict[str, np.ndarray]
    traces: dict[str, np.ndarray]
    config: dict[str, Any]
    hot_start: dict[str, Any]
    iteration: int
    stopped: str
    seconds: float
    state: dict[str, np.ndarray] = field(repr=False, default_factory=dict)
    sampled: dict[str, np.ndarray] = field(repr=False, default_factory=dict)
    sampled_positions: np.ndarray = field(repr=False, default_factory=lambda: np.zeros((0, 0, 0)))
    verdict: Certificate | None = field(repr=False, default=None)

    # -- judging ------------------------------------------------------------------------------

    @property
    def position_names(self) -> list[str]:
        """A name for each coordinate of ``positions``."""
        return coordinate_names(self.position_shapes)

    @property
    def posterior(self) -> dict[str, np.ndarray]:
        """Draws from the coreset posterior: chains × draws × shape.

        Those at fixed weights where there are such; else the latter half of those made while the
        weights moved, as in the paper: their mean is a good one, their spread includes that of
        the weights.
        """
        if self.sampled:
            return self.sampled
        start = len(self.positions) // 2
        return {name: values[:, start:] for name, values in self.draws.items()}

    def running_mean(self) -> np.ndarray:
        """Mean position over the latter half of all draws so far: records × coordinates.

        All iterations count, not the recorded ones only.
        """
        return latter_half_means(self.traces["iteration"], self.traces["position_sum"])

    def squared_z(self, mean: Any, sd: Any, *, trace: bool = False) -> Any:
        """Average squared z-score of the posterior mean against a reference posterior.

        The mean is that of the draws at fixed weights; where there are none, and in a trace, the
        running mean of the training.

        Parameters
        ----------
        mean, sd
            The reference's, on the unconstrained scale: a vector in the order of
            ``position_names``, or a mapping of parameter names to arrays, of which some may be
            left out.
        trace
            Whether to return a value for each record, not for the last only.
        """
        columns, mean, sd = self._align(mean, sd)
        if trace or not self.sampled:
            z = average_squared_z(self.running_mean()[:, columns], mean, sd)
            return z if trace else float(z[-1])
        return float(average_squared_z(self.sampled_positions.mean((0, 1))[columns], mean, sd))

    def _align(self, mean: Any, sd: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if not isinstance(mean, Mapping):
            mean, sd = np.asarray(mean, float), np.asarray(sd, float)
            if mean.shape != (len(self.position_names),) or sd.shape != mean.shape:
                raise ValueError(
                    f"mean and sd must have {len(self.position_names)} entries, in the order of "
                    f"position_names; got {mean.shape} and {sd.shape}."
                )
            return np.arange(mean.size), mean, sd
        unknown = set(mean) - set(self.position_shapes)
        if unknown or set(mean) != set(sd):
            raise ValueError(
                f"mean and sd must have the same keys, from {list(self.position_shapes)}; got "
                f"{sorted(mean)} and {sorted(sd)}."
            )
        sizes = {name: int(np.prod(shape)) for name, shape in self.position_shapes.items()}
        ends = dict(zip(sizes, np.cumsum(list(sizes.values())), strict=True))
        columns = [np.arange(ends[name] - sizes[name], ends[name]) for name in mean]
        for name in mean:
            found = {np.shape(mean[name]), np.shape(sd[name])}
            if found != {self.position_shapes[name]}:
                raise ValueError(
                    f"mean and sd of {name!r} must have shape {self.position_shapes[name]}; got "
                    f"{' and '.join(map(str, found))}."
                )
        flat = [np.concatenate([np.ravel(x[name]) for name in mean]) for x in (mean, sd)]
        return np.concatenate(columns), flat[0], flat[1]

    def certificate(self, model: Any = None, data: Any = None) -> Certificate:
        """How far the coreset posterior is from the full posterior, and a verdict in words.

        Returns the certificate that the fit made. Where it made none (``preset="paper"``), give
        the model and the data: that costs one pass over them.
        """
        if model is not None and data is not None:
            from coremcmc.certify_fit import certify_fit

            return certify_fit(self, model, data)
        if self.verdict is None:
            raise ValueError(
                "this fit made no certificate. Give the model and the data: "
                "fit.certificate(model, data)."
            )
        return self.verdict

    # -- showing ------------------------------------------------------------------------------

    def to_arviz(self) -> Any:
        """Convert to ArviZ's own form: posterior draws (the latter half), coreset, attributes."""
        from coremcmc.arviz_bridge import to_arviz

        return to_arviz(self)

    def summary(self) -> str:
        """One screen of text: what was run, how it went, the posterior, and warnings."""
        from coremcmc.summary import summarize

        return summarize(self)

    def plot(self, path: str | Path) -> Path:
        """Draw training and posterior in one picture; the file's suffix chooses its kind."""
        from coremcmc.plotting import plot_fit

        return plot_fit(self, Path(path))

    def __repr__(self) -> str:
        return f"Fit({self.coreset!r}, {self.iteration:,} iterations, {self.stopped})"

    # -- keeping ------------------------------------------------------------------------------

    def save(self, path: str | Path) -> Path:
        """Write to a file, whole or not at all. :meth:`load` reads it; a run can resume from it."""
        path = Path(path)
        check_writable(path, "path")
        meta = {
            "config": self.config,
            "position_shapes": {name: list(s) for name, s in self.position_shapes.items()},
            "hot_start": self.hot_start,
            "iteration": self.iteration,
            "stopped": self.stopped,
            "seconds": self.seconds,
            "average_start": self.coreset.average_start,
            "num_rows": self.coreset.num_rows,
            "verdict": None if self.verdict is None else self.verdict.to_dict(),
        }
        arrays = {"positions": self.positions, **_prefixed("draws", self.draws)}
        arrays |= {"sampled_positions": self.sampled_positions}
        arrays |= _prefixed("sampled", self.sampled)
        arrays |= _prefixed("traces", self.traces) | _prefixed("rows", self.coreset.rows)
        for name in ("indices", "weights", "weights_last", "weights_average"):
            arrays[f"coreset/{name}"] = getattr(self.coreset, name)
        write_archive(path, meta, arrays | _prefixed("state", self.state))
        return path

    @classmethod
    def load(cls, path: str | Path) -> "Fit":
        """Read what :meth:`save`, or a checkpoint, wrote."""
        meta, arrays = read_archive(Path(path))
        coreset = Coreset(
            **_unprefixed("coreset", arrays),
            average_start=meta["average_start"],
            rows=_unprefixed("rows", arrays),
            num_rows=meta["num_rows"],
        )
        return cls(
            coreset=coreset,
            positions=arrays["positions"],
            position_shapes={name: tuple(s) for name, s in meta["position_shapes"].items()},
            draws=_unprefixed("draws", arrays),
            traces=_unprefixed("traces", arrays),
            config=meta["config"],
            hot_start=meta["hot_start"],
            iteration=meta["iteration"],
            stopped=meta["stopped"],
            seconds=meta["seconds"],
            state=_unprefixed("state", arrays),
            sampled=_unprefixed("sampled", arrays),
            sampled_positions=arrays["sampled_positions"],
            verdict=None if meta["verdict"] is None else Certificate.from_dict(meta["verdict"]),
        )


def _prefixed(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {f"{prefix}/{name}": array for name, array in arrays.items()}


def _unprefixed(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    start = f"{prefix}/"
    return {name[len(start) :]: x for name, x in arrays.items() if name.startswith(start)}
