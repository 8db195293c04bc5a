"""Marginal densities, one small chart a parameter."""

import math
from collections.abc import Sequence

import numpy as np

from coremcmc.report.formatting import decimals_for, fixed, shorten
from coremcmc.report.parameters import Parameter
from coremcmc.report.svg import Chart, Figure

__all__ = ["density", "marginals"]

_SIZE, _MARGINS = (168, 104), (8, 8, 24, 20)
_POINTS = 97


def marginals(parameters: Sequence[Parameter], total: int) -> Figure | None:
    """Draw the density of each parameter."""
    if not parameters:
        return None
    has_laplace = any(math.isfinite(p.laplace_sd) for p in parameters)
    which = "" if len(parameters) == total else (
        f" Shown are the {len(parameters)} of {total:,} parameters that lie furthest from zero, "
        "relative to their sd."
    )  # fmt: skip
    beside = (
        " The dashed line is the Laplace approximation at the full posterior's mode: where the "
        "two differ, the posterior is not Gaussian, or the coreset is off." if has_laplace else ""
    )  # fmt: skip
    return Figure(
        "Marginal densities",
        tuple(_chart(parameter) for parameter in parameters),
        "Each chart has its own scale; the stronger tint holds the middle 90 % of the draws."
        f"{beside} Several humps or a ragged outline mean that the chains have not mixed.{which}",
        (("swatch fill-strong", "coreset posterior"), ("swatch dash c3", "Laplace"))
        if has_laplace
        else (),
    )


def _chart(parameter: Parameter) -> str:
    decimals = decimals_for(parameter.sd)
    low, high = fixed(parameter.low, decimals), fixed(parameter.high, decimals)
    label = f"{parameter.name}: mean {fixed(parameter.mean, decimals)}, 90 % from {low} to {high}"
    draws = parameter.draws[np.isfinite(parameter.draws)]
    if draws.size == 0 or np.ptp(draws) == 0:
        text = "no finite draws" if draws.size == 0 else f"always {parameter.mean:.6g}"
        chart = Chart(f"{parameter.name}: {text}", (0, 1), (0, 1), size=_SIZE, margins=_MARGINS)
        chart.text((_SIZE[0] / 2, 62), text, "tick", "middle")
    elif (values := np.unique(draws)).size <= 8:
        chart = _bars(label, values, draws)
    else:
        chart = _curve(label, draws, parameter)
    chart.text((8, 13), shorten(parameter.name, 24), "name", full=parameter.name)
    return chart.svg()


def _bars(label: str, values: np.ndarray, draws: np.ndarray) -> Chart:
    """Show the shares of the few values of a discrete parameter."""
    step = float(np.diff(values).min())
    limits = (float(values[0]) - 0.8 * step, float(values[-1]) + 0.8 * step)
    chart = Chart(label, limits, (0, 1), size=_SIZE, margins=_MARGINS)
    for value in values:
        share = float(np.mean(draws == value))
        chart.bar((value - 0.3 * step, value + 0.3 * step), (0, share), "fill-strong")
    chart.frame(x_ticks=4, y_ticks=0)
    return chart


def _curve(label: str, draws: np.ndarray, parameter: Parameter) -> Chart:
    grid, height = density(draws)
    top = float(height.max())
    gaussian = None
    if parameter.laplace_sd > 0 and math.isfinite(parameter.laplace_mean):
        z = (grid - parameter.laplace_mean) / parameter.laplace_sd
        gaussian = np.exp(-0.5 * z * z) / (parameter.laplace_sd * math.sqrt(2 * math.pi))
        top = max(top, min(float(gaussian.max()), 2 * top))
    limits = (float(grid[0]), float(grid[-1]))
    chart = Chart(label, limits, (0.0, 1.05 * top), size=_SIZE, margins=_MARGINS)
    zeros = np.zeros_like(grid)
    chart.area(grid, zeros, height, "fill-weak")
    inside = (grid >= parameter.low) & (grid <= parameter.high)
    if inside.sum() > 1:
        chart.area(grid[inside], zeros[inside], height[inside], "fill-strong")
    chart.line(grid, height, "c1")
    if gaussian is not None:
        chart.line(grid, gaussian, "c3 dash")
    chart.frame(x_ticks=4, y_ticks=0)
    return chart


def density(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Estimate a density with Gaussian kernels of Silverman's width.

    It ends where the draws end, so that nothing is shown beyond a bound.
    """
    quartiles = np.subtract(*np.quantile(draws, [0.75, 0.25])) / 1.34
    spread = min(s for s in (draws.std(), quartiles, math.inf) if s > 0)
    # Heavy tails: what lies far out would leave a spike and an empty chart.
    low, high = np.quantile(draws, [0.002, 0.998])
    low, high = max(low - spread, draws.min()), min(high + spread, draws.max())
    width = 0.9 * spread * len(draws) ** -0.2
    grid = np.linspace(low, high, _POINTS)
    edges = np.linspace(low - 5 * width, high + 5 * width, 513)
    counts, _ = np.histogram(draws, edges)
    centres = 0.5 * (edges[1:] + edges[:-1])
    kernel = np.exp(-0.5 * np.square((grid[:, None] - centres) / width))
    return grid, kernel @ counts / (len(draws) * width * math.sqrt(2 * math.pi))
