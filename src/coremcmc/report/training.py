"""How the training went: one small chart for each trace."""

import math
from typing import Any

import numpy as np

from coremcmc.fitting.result import Fit
from coremcmc.report.chains import draw_chains, orange_chain
from coremcmc.report.formatting import count, number, shorten
from coremcmc.report.svg import Chart, Figure, finite_range, thinned

__all__ = ["training"]

_MOST_MEANS = 24


def training(fit: Fit) -> dict[str, Any]:
    """Return the figures, and what they have in common."""
    figures = _figures(fit)
    if not figures:
        text = "The run ended before two records were made, so there are no traces to draw."
        return {"text": text}
    note = (
        "What happened while the weights were trained. The dotted vertical line is the iteration "
        "at which the hot start passed and the weights began to move."
    )
    return {"note": note, "figures": figures}


def _figures(fit: Fit) -> list[Figure]:
    """Draw what the traces hold; nothing for what they do not."""
    if len(fit.traces.get("iteration", ())) < 2:
        return []
    drawn = (
        _gradient_norm(fit),
        _hot_start(fit),
        _log_potentials(fit),
        _weight_sum(fit),
        _largest_weight(fit),
        _effective_rows(fit),
        _residual_variance(fit),
        _control_ratio(fit),
        _running_mean(fit),
    )
    return [figure for figure in drawn if figure is not None]


def _over_time(
    fit: Fit,
    label: str,
    values: np.ndarray,
    y_title: str,
    *,
    is_log: bool = False,
    include: tuple[float, ...] = (),
    smooth: bool = False,
) -> Chart | None:
    """Draw one trace, with the passing of the hot start; None where nothing is finite."""
    if finite_range(values, positive=is_log) is None:
        return None
    low, high = finite_range([*values, *include], positive=is_log) or (0.0, 1.0)
    limits = (low, high) if is_log else (low, high + 0.06 * (high - low))
    iteration = np.asarray(fit.traces["iteration"], dtype=float)
    chart = Chart(label, (0.0, float(iteration[-1])), limits, y_log=is_log)
    _mark_hot_start(chart, fit)
    chart.line(*thinned(iteration, values), "c1 faint" if smooth else "c1")
    if smooth:
        chart.line(*_running_median(iteration, values), "c1 strong")
    chart.frame("iteration", y_title)
    return chart


def _mark_hot_start(chart: Chart, fit: Fit) -> None:
    if fit.hot_start["passed_at"] > 0:
        chart.vertical(float(fit.hot_start["passed_at"]), "mark")


def _running_median(x: np.ndarray, y: Any) -> tuple[np.ndarray, np.ndarray]:
    places, medians = [], []
    for part in np.array_split(np.arange(len(x)), int(np.clip(len(x) / 12, 1, 60))):
        known = part[np.isfinite(np.asarray(y, dtype=float)[part])]
        places.append(float(x[part].mean()))
        medians.append(float(np.median(y[known])) if known.size else math.nan)
    return np.array(places), np.array(medians)


def _figure(title: str, chart: Chart | None, caption: str) -> Figure | None:
    return None if chart is None else Figure(title, (chart.svg(),), caption)


def _gradient_norm(fit: Fit) -> Figure | None:
    values = fit.traces["gradient_norm"]
    label = "Norm of the gradient over the iterations"
    chart = _over_time(fit, label, values, "norm (log scale)", is_log=True, smooth=True)
    return _figure(
        "Gradient norm",
        chart,
        "Size of the estimated gradient of the KL divergence (thick: running median). It should "
        "fall and then level off at its noise; growth means that the weights run away.",
    )


def _hot_start(fit: Fit) -> Figure | None:
    if fit.config["settings"]["hot_start"] is None:
        return None
    iteration = np.asarray(fit.traces["iteration"], dtype=float)
    statistic = np.asarray(fit.traces["hot_start_statistic"], dtype=float)
    passed_at, threshold = fit.hot_start["passed_at"], float(fit.hot_start["threshold"])
    # After the passing the last value is carried on.
    end = passed_at if passed_at > 0 else iteration[-1]
    first_after = int(np.searchsorted(iteration, end)) + 1
    iteration, statistic = iteration[:first_after], statistic[:first_after]
    known = np.isfinite(statistic) & (statistic > 0)
    if not known.any():
        return None
    limits = finite_range([*statistic[known], threshold], positive=True)
    assert limits is not None
    chart = Chart(
        "Hot-start statistic and its threshold",
        (0.0, 1.05 * float(max(end, iteration[-1]))),
        (limits[0] / 1.3, limits[1] * 1.3),
        y_log=True,
    )
    _mark_hot_start(chart, fit)
    chart.horizontal(threshold, "c2 dash")
    x, y = thinned(iteration[known], statistic[known])
    chart.line(x, y, "c1")
    if len(x) <= 60:
        chart.dots(x, y, "point-c1")
    place = float(chart.y.place(threshold))
    chart.text((chart.x.end - 2, place - 4), f"threshold {threshold:g}", "note", "end")
    chart.frame("iteration", "statistic (log scale)")
    if passed_at < 0:
        outcome = "It has not passed, so the weights have not moved."
    elif fit.hot_start["is_forced"]:
        outcome = f"It had not passed at its cap, iteration {count(passed_at)}."
    else:
        outcome = f"It passed at iteration {count(passed_at)}."
    return _figure(
        "Hot start",
        chart,
        "Drift of the chains in units of their noise. Below the dashed threshold they count as "
        f"settled and the weights begin to move. {outcome}",
    )


def _log_potentials(fit: Fit) -> Figure | None:
    iteration = np.asarray(fit.traces["iteration"], dtype=float)
    chains = np.asarray(fit.traces["log_potentials"], dtype=float).T
    later = chains[:, chains.shape[1] // 10 :]
    limits = finite_range(later)
    if limits is None:
        return None
    # A few wild values would flatten the rest.
    known = later[np.isfinite(later)]
    low, high = np.quantile(known, [0.002, 0.998])
    room = 0.1 * (high - low)
    limits = (max(limits[0], low - room), min(limits[1], high + room))
    centre = float(np.median(known))
    chart = Chart(
        "Log potentials of the chains",
        (0.0, float(iteration[-1])),
        (limits[0] - centre, limits[1] - centre),
    )
    _mark_hot_start(chart, fit)
    draw_chains(chart, iteration, chains - centre)
    chart.frame("iteration", f"log potential − ({number(centre, 6).replace('-', '−')})")
    return _figure(
        "Log potentials of the chains",
        chart,
        f"Weighted log-likelihood of each of the {len(chains)} chains, less its median; the "
        "beginning may run off the scale. It moves with the weights at first and should then be "
        f"level noise; a chain apart has found another place. {orange_chain(chains)}",
    )


def _weight_sum(fit: Fit) -> Figure | None:
    values = np.asarray(fit.traces["weights_sum"], dtype=float) / fit.coreset.num_rows
    label = "Sum of the weights over the number of rows"
    chart = _over_time(fit, label, values, "Σ weights ÷ N", include=(0.95, 1.05))
    if chart is not None:
        chart.horizontal(1.0, "zero")
    return _figure(
        "Weight drift: sum",
        chart,
        "Sum of the weights, as a multiple of the number of rows N that they stand for. It should "
        "settle, as a rule near 1; steady growth or fall at the end asks for more iterations.",
    )


def _largest_weight(fit: Fit) -> Figure | None:
    total = np.asarray(fit.traces["weights_sum"], dtype=float)
    values = 100 * np.asarray(fit.traces["weights_max"], dtype=float) / np.where(total, total, 1.0)
    chart = _over_time(
        fit, "Largest weight as a share of their sum", values, "% of the sum", include=(0.0,)
    )
    return _figure(
        "Weight drift: largest",
        chart,
        "Share of the heaviest row in the sum of all weights. It should settle; a row that takes "
        "an ever larger share is worth a look in the data.",
    )


def _effective_rows(fit: Fit) -> Figure | None:
    values = np.asarray(fit.traces["weights_ess"], dtype=float)
    zeros = np.asarray(fit.traces["weights_num_zero"], dtype=float)
    size = len(fit.coreset)
    label = "Effective number of coreset rows"
    include = (0.0, float(size))
    chart = _over_time(fit, label, values, f"rows, of M = {size:,}", include=include)
    if chart is not None:
        chart.line(*thinned(fit.traces["iteration"], size - zeros), "c2 dash")
    found = _figure(
        "Weight drift: effective rows",
        chart,
        "(Σw)²/Σw², the number of equally heavy rows that the weights amount to; dashed, the rows "
        "whose weight is not zero. A steep fall means that few rows carry the posterior.",
    )
    return found


def _residual_variance(fit: Fit) -> Figure | None:
    values = np.asarray(fit.traces["residual_variance"], dtype=float)
    chart = _over_time(
        fit,
        "Residual variance over the iterations",
        values,
        "variance (log scale)",
        is_log=True,
        smooth=True,
    )
    return _figure(
        "Residual variance",
        chart,
        "Variance over the chains of weighted minus estimated full log-likelihood: twice the KL "
        "divergence that remains, plus the noise of subsampling (thick: running median). It should "
        "fall and then be flat; while it still falls, more iterations pay.",
    )


def _control_ratio(fit: Fit) -> Figure | None:
    values = np.asarray(fit.traces["control_ratio"], dtype=float)
    if not fit.config["settings"].get("control_variate"):
        return None
    chart = _over_time(
        fit,
        "Variance ratio of the control variate",
        values,
        "ratio (log scale)",
        is_log=True,
        smooth=True,
    )
    return _figure(
        "Control variate",
        chart,
        "Variance of the subsampled sums with the control variate over that without. Small is "
        "good; near 1 it takes no noise out, because the chains are far from the mode or the "
        "posterior is far from Gaussian.",
    )


def _running_mean(fit: Fit) -> Figure | None:
    """Draw the distance of the running mean from where it ends, in sds."""
    iteration = np.asarray(fit.traces["iteration"], dtype=float)
    with np.errstate(all="ignore"):
        mean = fit.running_mean()
        latter = fit.positions[len(fit.positions) // 2 :].reshape(-1, mean.shape[1])
        sd = latter.std(axis=0)
        distance = (mean - mean[-1]) / np.where(sd > 0, sd, 1.0)
    later = distance[len(distance) // 4 :]
    known = np.flatnonzero(np.isfinite(later).all(axis=0))
    if not known.size:
        return None
    moved = np.abs(later[:, known]).max(axis=0)
    order = known[np.argsort(moved)][-_MOST_MEANS:]
    reach = float(np.clip(1.1 * moved.max(), 0.5, 5.0))
    chart = Chart(
        "Running posterior means, relative to where they end",
        (0.0, float(iteration[-1])),
        (-reach, reach),
    )
    chart.bar((0.0, float(iteration[-1])), (-0.1, 0.1), "fill-weak")
    _mark_hot_start(chart, fit)
    for i in order[:-1]:
        chart.line(*thinned(iteration, distance[:, i], 120), "c1 faint")
    slowest = order[-1]
    chart.line(*thinned(iteration, distance[:, slowest], 120), "c2")
    chart.frame("iteration", "sds from the final mean")
    name = fit.position_names[slowest]
    some = "" if len(known) == len(order) else f" The {len(order)} that moved most are shown."
    return _figure(
        "Running posterior mean",
        chart,
        "Mean of the latter half of the draws so far, one line a coordinate, in sds from where it "
        f"ends (band: ±0.1; orange: {shorten(name, 40)}, which moved most in the last three "
        f"quarters). Lines still heading somewhere at the end ask for more iterations.{some}",
    )
