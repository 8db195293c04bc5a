"""Pictures of a fit."""

from pathlib import Path
from typing import Any

import numpy as np

from coremcmc.files import check_writable
from coremcmc.pytrees import coordinate_names

__all__ = ["plot_fit"]

_MAX_LINES = 12


def plot_fit(fit: Any, path: Path) -> Path:
    """Four panels: hot start and gradient norm, running mean, weights, marginals."""
    check_writable(path, "path")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 8), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, 2)
    _training(axes[0, 0], fit)
    _running_mean(axes[0, 1], fit)
    _weights(axes[1, 0], fit)
    _marginals(axes[1, 1], fit)
    figure.suptitle(
        f"{len(fit.coreset):,} of {fit.coreset.num_rows:,} rows · {fit.config['model']}"
    )
    figure.savefig(path, dpi=150)
    return path


def _training(axis: Any, fit: Any) -> None:
    iteration = fit.traces["iteration"]
    axis.semilogy(iteration, fit.traces["gradient_norm"], lw=0.6, color="C0")
    axis.set(xlabel="iteration", ylabel="gradient norm", title="training")
    axis.yaxis.label.set_color("C0")
    statistic, passed_at = fit.traces["hot_start_statistic"], fit.hot_start["passed_at"]
    held = iteration <= (passed_at if passed_at >= 0 else iteration[-1])
    shown = np.isfinite(statistic) & held
    if shown.any():
        twin = axis.twinx()
        twin.semilogy(
            iteration[shown], np.maximum(statistic[shown], 1e-3), lw=1, marker=".", color="C2"
        )
        twin.axhline(fit.hot_start["threshold"], color="C1", lw=1, ls="--")
        twin.set_ylabel("hot-start statistic (threshold dashed)", color="C2")
    if passed_at > 0:
        axis.axvline(passed_at, color="0.4", lw=1, ls=":")
        axis.annotate(
            f" hot at {passed_at:,}", (passed_at, 0.97), xycoords=("data", "axes fraction"),
            va="top", fontsize=8,
        )  # fmt: skip


def _running_mean(axis: Any, fit: Any) -> None:
    mean = fit.running_mean()
    latter = fit.positions[len(fit.positions) // 2 :].reshape(-1, mean.shape[1])
    sd = latter.std(axis=0)
    standardized = (mean - mean[-1]) / np.where(sd > 0, sd, 1.0)
    for index, name in list(enumerate(fit.position_names))[:_MAX_LINES]:
        axis.plot(fit.traces["iteration"], standardized[:, index], lw=1, label=name)
    axis.set_yscale("symlog", linthresh=1)
    axis.set(
        xlabel="iteration",
        ylabel="distance to the final mean, in sds",
        title="running posterior mean",
    )
    axis.legend(fontsize=7, ncols=2)


def _weights(axis: Any, fit: Any) -> None:
    weights = fit.coreset.weights
    axis.hist(weights, bins=40, color="C0", alpha=0.8)
    start = fit.coreset.num_rows / len(fit.coreset)
    axis.axvline(start, color="C1", lw=1, ls="--", label=f"N/M = {start:,.4g}")
    axis.set(
        xlabel="weight", ylabel="rows", title=f"weights ({int((weights == 0).sum())} are zero)"
    )
    axis.legend(fontsize=8)


def _marginals(axis: Any, fit: Any) -> None:
    posterior = fit.posterior
    names = coordinate_names({name: x.shape[2:] for name, x in posterior.items()})[:_MAX_LINES]
    columns = np.concatenate([x.reshape(*x.shape[:2], -1) for x in posterior.values()], axis=2)
    draws = [columns[:, :, i].ravel() for i in range(len(names))]
    standardized = [(x - x.mean()) / (x.std() or 1.0) for x in draws]
    axis.violinplot(standardized, orientation="horizontal", showextrema=False)
    labels = [f"{n}\n{x.mean():.4g} ± {x.std():.2g}" for n, x in zip(names, draws, strict=True)]
    axis.set_yticks(range(1, len(names) + 1), labels, fontsize=7)
    axis.invert_yaxis()
    axis.set(xlabel="standardized", title="posterior marginals (latter half of the draws)")
