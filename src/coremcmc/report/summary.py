"""One screen of text about a fit."""

from coremcmc.fitting.result import Fit
from coremcmc.report.coreset import effective_rows
from coremcmc.report.facts import hot_start_of
from coremcmc.report.parameters import parameters_of

__all__ = ["summarize"]

_MAX_PARAMETERS = 24


def summarize(fit: Fit) -> str:
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
        *([] if fit.certificate is None else [str(fit.certificate)]),
        "",
        *_table(fit),
    ]
    return "\n".join(lines + [f"warning: {text}" for text in fit.warnings])


def _table(fit: Fit) -> list[str]:
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
