"""Intervals of many parameters: on their scale, and against the full posterior."""

import math
from collections.abc import Sequence

import numpy as np

from coremcmc.certificate.certificate import Certificate
from coremcmc.report.formatting import number, shorten
from coremcmc.report.parameters import Parameter
from coremcmc.report.svg import Chart, Figure
from coremcmc.report.verdict import is_doubtful

__all__ = ["agreement", "by_size", "forest"]

_WIDTH, _GUTTER, _ROW = 340, 112, 17
_NAME = 17  # letters that the gutter holds
_OWN_AXIS = 20.0  # parameters this much smaller get an axis of their own
_MOST_AXES = 4
_NORMAL_90 = 1.6449


def forest(parameters: Sequence[Parameter]) -> Figure | None:
    """Draw mean and interval of each parameter."""
    known = [p for p in parameters if math.isfinite(p.low) and math.isfinite(p.high)]
    if not known:
        return None
    groups = by_size(known)
    own_axes = (
        " Parameters of like size share an axis; look at the numbers below each."
        if len(groups) > 1
        else ""
    )
    return Figure(
        "Intervals",
        tuple(_forest_chart(group) for group in groups),
        "Mean (dot), middle half (thick) and 90 % (thin) of each parameter's draws. An interval "
        f"that crosses the vertical line does not exclude zero.{own_axes}",
    )


def by_size(parameters: Sequence[Parameter]) -> list[list[Parameter]]:
    """Split parameters so that none is too small to be seen on its axis; their order is kept."""
    groups: list[tuple[float, list[Parameter]]] = []
    for parameter in sorted(parameters, key=_reach, reverse=True):
        if not groups or (
            _reach(parameter) * _OWN_AXIS < groups[-1][0] and len(groups) < _MOST_AXES
        ):
            groups.append((_reach(parameter), []))
        groups[-1][1].append(parameter)
    place = {id(parameter): i for i, parameter in enumerate(parameters)}
    return [sorted(group, key=lambda p: place[id(p)]) for _, group in groups]


def _reach(parameter: Parameter) -> float:
    return max(abs(parameter.low), abs(parameter.high), abs(parameter.mean) + parameter.sd)


def _forest_chart(group: Sequence[Parameter]) -> str:
    low, high = min(p.low for p in group), max(p.high for p in group)
    room = 0.04 * (high - low)
    limits = (min(low - room, 0.0), max(high + room, 0.0))
    chart = _rows_chart(
        f"Means and 90 % intervals of {len(group)} parameters", limits, [p.name for p in group]
    )
    chart.vertical(0.0, "zero")
    for i, parameter in enumerate(group):
        row = [-i, -i]
        draws = parameter.draws[np.isfinite(parameter.draws)]
        chart.line([parameter.low, parameter.high], row, "c1 thin-bar")
        chart.line(np.quantile(draws, [0.25, 0.75]), row, "c1 thick-bar")
        chart.dots([parameter.mean], [-i], "point-c1", 3)
    chart.frame(y_ticks=0)
    return chart.svg()


def _rows_chart(label: str, limits: tuple[float, float], names: Sequence[str]) -> Chart:
    """Prepare a chart with a row for each name."""
    height = _ROW * len(names) + 6 + 24
    chart = Chart(
        label,
        limits,
        (-(len(names) - 0.5), 0.5),
        size=(_WIDTH, height),
        margins=(_GUTTER, 10, 4, 26),
    )
    for i, name in enumerate(names):
        place = float(chart.y.place(-i)) + 3.8
        chart.text((_GUTTER - 8, place), shorten(name, _NAME), "label", "end", name)
    return chart


def agreement(parameters: Sequence[Parameter], certificate: Certificate | None) -> Figure | None:
    """Draw the corrected and the Laplace posterior in sds of the coreset posterior."""
    if certificate is None:
        return None
    known = [p for p in parameters if math.isfinite(p.corrected_sd) and p.sd > 0]
    if not known:
        return None
    has_laplace = any(math.isfinite(p.laplace_sd) for p in known)
    reach = 2.5
    for p in known:
        centre, width = _in_sds(p, p.corrected_mean, p.corrected_sd)
        reach = max(reach, abs(centre) + _NORMAL_90 * width)
    reach = min(1.05 * reach, 8.0)
    label = f"Corrected against coreset posterior of {len(known)} parameters"
    chart = _rows_chart(label, (-reach, reach), [p.name for p in known])
    chart.bar((-_NORMAL_90, _NORMAL_90), (-len(known), 1.0), "fill-weak")
    chart.vertical(0.0, "zero")
    for i, p in enumerate(known):
        centre, width = _in_sds(p, p.corrected_mean, p.corrected_sd)
        ends = [centre - _NORMAL_90 * width, centre + _NORMAL_90 * width]
        chart.line(ends, [-i + 0.12] * 2, "c2 thin-bar")
        chart.dots([centre], [-i + 0.12], "point-c2", 3)
        if math.isfinite(p.laplace_sd):
            centre, width = _in_sds(p, p.laplace_mean, p.laplace_sd)
            ends = [centre - _NORMAL_90 * width, centre + _NORMAL_90 * width]
            chart.line(ends, [-i - 0.24] * 2, "c3 dash")
            chart.dots([centre], [-i - 0.24], "ring-c3", 2.2)
    chart.frame(y_ticks=0)
    key = [("swatch fill-weak", "coreset"), ("swatch c2", "corrected")]
    key += [("swatch dash c3", "Laplace")] if has_laplace else []
    doubt = "" if not is_doubtful(certificate) else (
        f" With Pareto k = {number(certificate.pareto_k)} the corrected values themselves are "
        "not to be relied on."
    )  # fmt: skip
    return Figure(
        "Agreement with the full posterior",
        (chart.svg(),),
        "In sds of the coreset posterior, zero at its mean: the band is its 90 % interval, and an "
        "orange line is that of the full posterior as the certificate corrects it. They should "
        f"coincide; a dot that lies off zero by more than 0.3 is a mean that is off.{doubt}",
        tuple(key),
    )


def _in_sds(parameter: Parameter, mean: float, sd: float) -> tuple[float, float]:
    return (mean - parameter.mean) / parameter.sd, sd / parameter.sd
