"""Lines of several chains in one chart, the one that stands apart in another colour."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from coremcmc.report.formatting import number, shorten
from coremcmc.report.parameters import Parameter
from coremcmc.report.svg import Chart, Figure, finite_range, thinned

__all__ = ["draw_chains", "orange_chain", "slowest_chains", "standing_apart"]

_MOST_CHAINS = 16


def draw_chains(chart: Chart, x: Any, chains: np.ndarray) -> None:
    """Draw chains × points, the one that stands apart on top."""
    apart = standing_apart(chains)
    order = [k for k in range(min(len(chains), _MOST_CHAINS)) if k != apart]
    for k in order:
        chart.line(*thinned(x, chains[k], 180), "c1 faint")
    if apart is not None:
        chart.line(*thinned(x, chains[apart], 180), "c2 apart")


def standing_apart(chains: np.ndarray) -> int | None:
    """Return the chain whose mean over its latter half is furthest from the others' median.

    Of two chains it is the second.
    """
    latter = np.asarray(chains, dtype=float)[:, chains.shape[1] // 2 :]
    known = np.isfinite(latter)
    count = known.sum(axis=1)
    if len(latter) < 2 or not (count > 0).all():
        return None
    if len(latter) == 2:
        return 1
    means = np.where(known, latter, 0.0).sum(axis=1) / count
    return int(np.argmax(np.abs(means - np.median(means))))


def orange_chain(chains: np.ndarray) -> str:
    """Say which chain is drawn in the other colour."""
    if standing_apart(chains) is None:
        return ""
    return "The one furthest from the rest is orange." if len(chains) > 2 else "One is orange."


def slowest_chains(parameters: Sequence[Parameter]) -> Figure | None:
    """Draw the draws of the parameter with the smallest effective sample size."""
    known = [p for p in parameters if math.isfinite(p.ess)]
    if not known:
        return None
    slowest = min(known, key=lambda p: p.ess)
    limits = finite_range(slowest.draws)
    count = slowest.draws.shape[1]
    if limits is None:
        return None
    chart = Chart(f"Draws of {slowest.name} by chain", (1, count), limits)
    draw_chains(chart, np.arange(1, count + 1), slowest.draws)
    chart.frame("draw", shorten(slowest.name, 44))
    return Figure(
        "Chains of the slowest parameter",
        (chart.svg(),),
        f"Of all parameters this one has the smallest effective sample size "
        f"({number(slowest.ess, 3)} from {slowest.draws.size:,} draws). The "
        f"{len(slowest.draws)} chains should lie on top of each other like noise; a chain that "
        f"keeps to itself or drifts is bad. {orange_chain(slowest.draws)}",
    )
