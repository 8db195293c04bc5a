"""One screen of text about a fit."""

from typing import Any

import numpy as np

from coremcmc.diagnostics import convergence, coordinate_names

__all__ = ["summarize", "warnings_of"]

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
    return "\n".join(lines + [f"warning: {text}" for text in warnings_of(fit)])


def warnings_of(fit: Any) -> list[str]:
    """What a user should know, each with a remedy."""
    found = []
    if fit.stopped == "interrupted":
        found.append(
            "the run was interrupted; where it has a checkpoint, resume=True goes on from it."
        )
    if fit.config["settings"]["hot_start"] is not None and fit.hot_start["passed_at"] < 0:
        found.append(
            "the hot-start test has not passed, so the weights have not moved. Run longer."
        )
    if fit.hot_start["is_forced"]:
        found.append(
            "the chains had not settled when the hot start reached its cap, and the weights were "
            "released all the same. Start the chains nearer to the mass (initial_positions), or "
            "raise HotStart(max_iterations=...)."
        )
    if fit.verdict is not None and fit.verdict.verdict == "poor":
        found.append(
            "the certificate calls this coreset poor, so its posterior is not to be relied on. "
            "fit.certificate() says why, and what to do."
        )
    return found


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
