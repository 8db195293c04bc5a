"""One screen of text about a fit."""

from typing import TYPE_CHECKING

from coremcmc.report.coreset import effective_rows
from coremcmc.report.facts import hot_start_of
from coremcmc.report.parameters import parameters_of

if TYPE_CHECKING:
    from coremcmc.fitting.result import Fit

__all__ = ["summarize", "warnings_of"]

_MAX_PARAMETERS = 24


def summarize(fit: "Fit") -> str:
    """What was run, how it went, the posterior, and warnings."""
    settings = fit.config["settings"]
    evaluations = int(fit.traces["num_evaluations"][-1]) if len(fit.positions) else 0
    lines = [
        f"model        {fit.config['model']}",
        f"coreset      {fit.coreset!r}",
        f"run          {fit.iteration:,} of {settings['num_iterations']:,} iterations "
        f"({fit.stopped}), {settings['num_chains']} chains, {fit.seconds:.1f} s, "
        f"{evaluations:,} log density evaluations",
        *([f"stopped      {fit.stop_reason}"] if fit.stop_reason else []),
        f"hot start    {hot_start_of(fit)}",
        f"weights      {settings['returned_weights']}; effective number of rows "
        f"{effective_rows(fit.coreset.weights):,.0f}",
        *([] if fit.verdict is None else [str(fit.verdict)]),
        "",
        *_table(fit),
    ]
    return "\n".join(lines + [f"warning: {text}" for text in warnings_of(fit)])


def warnings_of(fit: "Fit") -> list[str]:
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


def _table(fit: "Fit") -> list[str]:
    parameters, total = parameters_of(fit, _MAX_PARAMETERS)
    if not parameters:
        return ["(no draws)"]
    lines = [f"{'parameter':<16}{'mean':>12}{'sd':>12}{'5%':>12}{'95%':>12}{'ESS':>9}{'R-hat':>8}"]
    for p in parameters:
        lines.append(
            f"{p.name:<16}{p.mean:>12.5g}{p.sd:>12.3g}{p.low:>12.5g}{p.high:>12.5g}"
            f"{p.ess:>9.0f}{p.rhat:>8.3f}"
        )
    if total > len(parameters):
        lines.append(f"… and {total - len(parameters)} more")
    return lines
