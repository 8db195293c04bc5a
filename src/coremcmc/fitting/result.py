"""What a fit gives back: the coreset, the draws, the traces; saved, loaded, summarised.

Its faces (report, summary, ArviZ) live in the room above, and are imported when asked for.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from coremcmc.base import Model
from coremcmc.certificate.certificate import Certificate
from coremcmc.certificate.certify import certify
from coremcmc.coreset import Coreset
from coremcmc.data import as_data_source
from coremcmc.diagnostics import average_squared_z, latter_half_means
from coremcmc.files import check_writable
from coremcmc.fitting.checkpoint import prefixed, read_archive, unprefixed, write_archive
from coremcmc.posterior.mode import Laplace
from coremcmc.pytrees import aligned, coordinate_names

__all__ = ["Fit"]


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
        Arrays with an entry a record: ``iteration``, ``gradient_norm``, ``hot_start_statistic``,
        ``is_hot``, ``log_potentials`` (a column a chain), ``num_evaluations`` (log densities so
        far), ``weights_sum``, ``weights_max``, ``weights_num_zero``, ``weights_ess`` ((Σw)²/Σw²),
        ``residual_variance``, ``control_ratio``, ``position_sum``.
    config
        Settings, seed, versions, model and data, as plain values.
    hot_start
        ``passed_at`` (iteration, or −1), ``is_forced`` and ``threshold``.
    iteration
        How many iterations were done.
    stopped
        Why the run ended: ``"finished"``, ``"settled"`` (of ``num_iterations="auto"``),
        ``"interrupted"``, ``"failed"`` (in the exception's ``fit``); ``"running"`` in a checkpoint.
    stop_reason
        The same in words, with the numbers that decided it.
    seconds
        Wall time of the whole: passes, training, draws, certificate.
    sampled, sampled_positions
        Draws made after the training, the returned weights being fixed, in the forms of ``draws``
        and ``positions``; empty where none were asked for.
    sample_stats
        Of those draws, chains × draws each: ``lp`` (log density), and what the kernel tells.
    certificate
        How far the coreset posterior is from the full posterior, with a verdict in words; None
        where the fit made none (``preset="paper"``): see :meth:`certify`.
    model
        The model, which is not saved: a fit that was loaded from a file has None here.
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
    certificate: Certificate | None = field(repr=False, default=None)
    sample_stats: dict[str, np.ndarray] = field(repr=False, default_factory=dict)
    model: Any = field(repr=False, default=None)
    stop_reason: str = ""

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "model": None}  # a user's functions may not pickle

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
        columns, mean, sd = aligned(self.position_shapes, mean, sd)
        if trace or not self.sampled:
            z = average_squared_z(self.running_mean()[:, columns], mean, sd)
            return z if trace else float(z[-1])
        return float(average_squared_z(self.sampled_positions.mean((0, 1))[columns], mean, sd))

    @property
    def verdict(self) -> Certificate | None:
        """The certificate, under its name of before; ``fit.certificate.verdict`` is the word."""
        warnings.warn("fit.verdict is fit.certificate now.", DeprecationWarning, stacklevel=2)
        return self.certificate

    def certify(
        self,
        model: Model,
        data: Any,
        *,
        laplace: Laplace | None = None,
        **options: Any,
    ) -> Certificate:
        """Judge the coreset by its draws and one pass over the data that it was made from.

        With a control variate, by an estimate in place of the pass; the options are those of
        :func:`coremcmc.certificate.certify.certify`.
        """
        source = as_data_source(data, model)
        if source.num_rows != self.coreset.num_rows:
            raise ValueError(
                f"data has {source.num_rows:,} rows, but the fit was made from "
                f"{self.coreset.num_rows:,}."
            )
        for name, found in (("model", model.describe()), ("data", source.fingerprint())):
            if self.config[name] != found:
                raise ValueError(
                    f"{name} is not the one that the fit was made with: {found} here, "
                    f"{self.config[name]} there."
                )
        draws = self.sampled_positions if self.sampled else self.latter_positions
        return certify(
            model,
            source,
            source.take(self.coreset.indices),
            self.coreset.weights,
            draws,
            self.position_names,
            laplace,
            **options,
        )

    @property
    def latter_positions(self) -> np.ndarray:
        """The latter half of ``positions``."""
        return self.positions[len(self.positions) // 2 :]

    @property
    def warnings(self) -> list[str]:
        """What a user should know, each with a remedy."""
        found = []
        if self.stopped == "interrupted":
            found.append(
                "the run was interrupted; where it has a checkpoint, resume=True goes on from it."
            )
        if self.config["settings"]["hot_start"] is not None and self.hot_start["passed_at"] < 0:
            found.append(
                "the hot-start test has not passed, so the weights have not moved. Run longer."
            )
        if self.hot_start["is_forced"]:
            found.append(
                "the chains had not settled when the hot start reached its cap, and the weights "
                "were released all the same. Start the chains nearer to the mass "
                "(initial_positions), or raise HotStart(max_iterations=...)."
            )
        if self.certificate is not None and self.certificate.verdict == "poor":
            found.append(
                "the certificate calls this coreset poor, so its posterior is not to be relied on. "
                "fit.certificate says why, and what to do."
            )
        return found

    # -- showing ------------------------------------------------------------------------------

    def sample(
        self,
        num_draws: int = 1_000,
        *,
        num_chains: int = 4,
        kernel: Any = None,
        num_warmup: int = 500,
        seed: int = 0,
        model: Any = None,
        data: Any = None,
    ) -> "Fit":
        """Draw from the posterior of the trained coreset, its weights fixed; no pass is needed.

        Parameters
        ----------
        num_draws
            Draws that each chain keeps.
        num_chains
            Chains, each from a random draw of the fit.
        kernel
            ``"nuts"`` (BlackJAX's, and the default wherever all parameters are continuous), the
            name of another kernel of this package, or a kernel.
        num_warmup
            Steps before draws are kept, in which NUTS learns its step size and metric.
        seed
            Same seed, same draws.
        model
            The model that the fit was made with: needed where the fit was loaded from a file.
        data
            The data: needed only where the rows are not a mapping of names to arrays.

        Returns
        -------
        Fit
            With the new draws in ``sampled`` (and ``posterior``), their ``sample_stats``, and
            all else as it was.
        """
        from coremcmc.fitting.draws import more_draws

        return more_draws(
            self,
            num_draws,
            num_chains=num_chains,
            kernel=kernel,
            num_warmup=num_warmup,
            seed=seed,
            model=model,
            data=data,
        )

    def to_arviz(
        self, data: Any = None, *, num_loo_rows: int = 1_000, model: Any = None, seed: int = 0
    ) -> Any:
        """Convert to the installed ArviZ's own form, ``InferenceData`` or ``DataTree``.

        Groups: ``posterior``, ``sample_stats``, ``coreset`` (row index and weight),
        ``observed_data`` (the coreset's rows), and with ``data`` also ``log_likelihood``.

        Parameters
        ----------
        data
            The data that the fit was made from. With them, the log-likelihoods of ``num_loo_rows``
            rows, chosen uniformly from all, are added, so that ``az.loo`` estimates the predictive
            accuracy for a row of the data. (Those of the coreset's rows would not: the coreset's
            rows are chosen, and count with their weights.)
        num_loo_rows
            See ``data``.
        model
            The model, where the fit was loaded from a file.
        seed
            For the choice of those rows.
        """
        from coremcmc.report.arviz import log_likelihoods, to_arviz

        if data is None:
            return to_arviz(self)
        return to_arviz(self, log_likelihoods(self, data, num_loo_rows, model, seed))

    def report(
        self,
        path: str | Path,
        *,
        title: str | None = None,
        coreset_table: Any = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Path:
        """Write a report to an HTML file that needs no network, no script and no other file.

        Parameters
        ----------
        path
            The file, which is replaced where it exists.
        title
            The heading; the model's name by default.
        coreset_table
            A DataFrame with a row for each of the coreset's, in their order, as
            ``fit.coreset.to_pandas(table)`` makes it: the heaviest rows are shown with its
            columns. The model's own columns by default.
        extra
            Further facts about the run, by name: the file, the formula, the command.
        """
        from coremcmc.report import write_report

        return write_report(self, path, title=title, coreset_table=coreset_table, extra=extra)

    def _repr_html_(self) -> str:
        from coremcmc.report.notebook import fit_html

        return fit_html(self)

    def summary(self) -> str:
        """One screen of text: what was run, how it went, the posterior, and warnings."""
        from coremcmc.report.summary import summarize

        return summarize(self)

    def plot(self, *_: Any, **__: Any) -> NoReturn:
        """Raise, as this is gone: see :meth:`report`, and ArviZ for :meth:`to_arviz`."""
        raise AttributeError(
            "Fit.plot is gone. fit.report('report.html') draws what it drew, and more; for a "
            "picture of one's own, arviz.plot_trace(fit.to_arviz()) and ArviZ's other plots."
        )

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
            "stop_reason": self.stop_reason,
            "seconds": self.seconds,
            "average_start": self.coreset.average_start,
            "num_rows": self.coreset.num_rows,
            "certificate": None if self.certificate is None else self.certificate.to_dict(),
        }
        arrays = {"positions": self.positions, **prefixed("draws", self.draws)}
        arrays |= {"sampled_positions": self.sampled_positions}
        arrays |= prefixed("sampled", self.sampled)
        arrays |= prefixed("sample_stats", self.sample_stats)
        arrays |= prefixed("traces", self.traces) | prefixed("rows", self.coreset.rows)
        for name in ("indices", "weights", "weights_last", "weights_average"):
            arrays[f"coreset/{name}"] = getattr(self.coreset, name)
        write_archive(path, meta, arrays | prefixed("state", self.state))
        return path

    @classmethod
    def load(cls, path: str | Path) -> "Fit":
        """Read what :meth:`save`, or a checkpoint, wrote."""
        meta, arrays = read_archive(Path(path))
        coreset = Coreset(
            **unprefixed("coreset", arrays),
            average_start=meta["average_start"],
            rows=unprefixed("rows", arrays),
            num_rows=meta["num_rows"],
        )
        found = meta["certificate"]
        return cls(
            coreset=coreset,
            positions=arrays["positions"],
            position_shapes={name: tuple(s) for name, s in meta["position_shapes"].items()},
            draws=unprefixed("draws", arrays),
            traces=unprefixed("traces", arrays),
            config=meta["config"],
            hot_start=meta["hot_start"],
            iteration=meta["iteration"],
            stopped=meta["stopped"],
            stop_reason=meta.get("stop_reason", ""),
            seconds=meta["seconds"],
            state=unprefixed("state", arrays),
            sampled=unprefixed("sampled", arrays),
            sampled_positions=arrays["sampled_positions"],
            certificate=found and Certificate.from_dict(found),
            sample_stats=unprefixed("sample_stats", arrays),
        )
