"""One screen of text about a fit."""

from typing import Any

import numpy as np

from coremcmc.diagnostics import convergence
from coremcmc.pytrees import coordinate_names

__all__ = ["summarize"]

_MAX_PARAMETERS = 24


def summarize(fit: Any) -> str:
    """What was run, how it went, the posterior, and warnings."""
    settings = fit.config["settings"]
    hot = fit.hot_start
    if settings["hot_start"] is None:
        hot_text = "off"
    elif hot["passed_at"] < 0:
        hot_text = "not yet passed"
    else:
        hot_text = f"passed at iteration {hot['passed_at']:,}"
        hot_text += " (forced by its cap)" if hot["is_forced"] else ""
    evaluations = int(fit.traces["num_evaluations"][-1]) if len(fit.positions) else 0
    lines = [
        f"model        {fit.config['model']}",
        f"coreset      {fit.coreset!r}",
        f"run          {fit.iteration:,} of {settings['num_iterations']:,} iterations "
        f"({fit.stopped}), {settings['num_chains']} chains, {fit.seconds:.1f} s, "
        f"{evaluations:,} log density evaluations",
        *([f"stopped      {fit.stop_reason}"] if fit.stop_reason else []),
        f"hot start    {hot_text}",
        f"weights      {settings['returned_weights']}; effective number of rows "
        f"{_effective_rows(fit.coreset.weights):,.0f}",
        *([] if fit.verdict is None else [str(fit.verdict)]),
        "",
        *_table(fit.posterior),
    ]
    return "\n".join(lines + [f"warning: {text}" for text in fit.warnings])


def _effective_rows(weights: np.ndarray) -> float:
    squares = float(np.square(weights).sum())
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0


def _table(posterior: dict[str, np.ndarray]) -> list[str]:
    header = f"{'parameter':<16}{'mean':>12}{'sd':>12}{'5%':>12}{'95%':>12}{'ESS':>9}{'R-hat':>8}"
    lines = [header]
    if not posterior or next(iter(posterior.values())).shape[1] == 0:
        return ["(no draws)"]
    names = coordinate_names({name: x.shape[2:] for name, x in posterior.items()})
    flat = [x.reshape(*x.shape[:2], -1) for x in posterior.values()]
    columns = np.concatenate(flat, axis=2)
    for name, draws in list(zip(names, np.moveaxis(columns, 2, 0), strict=True))[:_MAX_PARAMETERS]:
        ess, rhat = convergence(draws)
        low, high = np.quantile(draws, [0.05, 0.95])
        lines.append(
            f"{name:<16}{draws.mean():>12.5g}{draws.std(ddof=1):>12.3g}{low:>12.5g}{high:>12.5g}"
            f"{ess:>9.0f}{rhat:>8.3f}"
        )
    if len(names) > _MAX_PARAMETERS:
        lines.append(f"… and {len(names) - _MAX_PARAMETERS} more")
    return lines
