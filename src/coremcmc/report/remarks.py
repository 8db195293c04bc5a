"""What a reader should be warned of, each with a remedy."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from coremcmc.report.formatting import count, number, sentence, shorten
from coremcmc.report.intervals import is_doubtful
from coremcmc.report.parameters import FEWEST_ESS, MOST_RHAT, Parameter

__all__ = ["remarks_of"]


def remarks_of(fit: Any, parameters: Sequence[Parameter]) -> list[str]:
    """Return sentences; the most serious come first."""
    found = []
    if fit.verdict is not None and fit.verdict.verdict != "good":
        reasons = " ".join(sentence(text) for text in fit.verdict.reasons)
        found.append(f"The certificate says {fit.verdict.verdict}. {reasons}")
    # What they say of the certificate is said above, with its reasons.
    others = [text for text in fit.warnings if not text.startswith("the certificate")]
    found += [sentence(text) for text in others]
    if fit.stopped == "failed":
        found.append(
            "The run failed, and this is its last good state. The error that it raised says why; "
            "mostly the model's log density is not finite somewhere."
        )
    if fit.stopped == "finished" and fit.config["settings"].get("stops_early"):
        found.append(
            f"The run had not settled after {count(fit.iteration)} iterations, the most that "
            "num_iterations='auto' allows. Raise coreset_size, or give a larger num_iterations."
        )
    if fit.stopped == "running":
        found.append("This is a checkpoint of a run that has not ended. Resume it: resume=True.")
    found += _about_draws(fit, parameters)
    if fit.verdict is not None and is_doubtful(fit.verdict):
        found.append(
            f"Pareto k is {number(fit.verdict.pareto_k)}, above 0.7: the corrected values are not "
            "to be relied on. A larger coreset_size brings it down."
        )
    broken = [name for name, values in fit.traces.items() if _has_nan(values)]
    if broken:
        found.append(
            f"These traces hold values that are not numbers: {', '.join(map(str, broken))}. Check "
            "the model's log density, and columns of very different sizes in the data."
        )
    return found


def _about_draws(fit: Any, parameters: Sequence[Parameter]) -> list[str]:
    if not parameters:
        return [
            "There are no draws: the run ended before its first record. Run it longer, or record "
            "more often (thin=1)."
        ]
    found = []
    if not fit.sampled:
        found.append(
            "The draws were made while the weights moved, so their spread includes that of the "
            "weights and is too wide. fit.sample(1_000) draws at the final weights."
        )
    if any(_has_nan(p.draws) for p in parameters):
        found.append(
            "Some draws are not numbers. Check the model: its log density or constrain_fn is not "
            "finite where a chain went."
        )
    mixing = [p for p in parameters if p.rhat > MOST_RHAT]
    few = [p for p in parameters if p.ess < FEWEST_ESS]
    if mixing:
        worst = max(mixing, key=lambda p: p.rhat)
        found.append(
            f"R-hat is above {MOST_RHAT} for {_some(mixing, parameters)}; {_name(worst)} has "
            f"{worst.rhat:.3f}. The chains do not agree yet: draw more, fit.sample(4_000)."
        )
    if few:
        worst = min(few, key=lambda p: p.ess)
        found.append(
            f"The effective sample size is below {FEWEST_ESS} for {_some(few, parameters)}; "
            f"{_name(worst)} has {count(worst.ess)}. Interval ends are noisy: draw more, "
            "fit.sample(4_000)."
        )
    diverging = int(np.sum(getattr(fit, "sample_stats", {}).get("diverging", 0)))
    if diverging:
        found.append(
            f"{count(diverging)} draws diverged: the posterior has corners that the sampler does "
            "not get into. A parametrisation with fewer of them helps."
        )
    return found


def _some(chosen: Sequence[Parameter], of: Sequence[Parameter]) -> str:
    return f"{len(chosen)} of {len(of)} parameters"


def _name(parameter: Parameter) -> str:
    return shorten(parameter.name, 40)


def _has_nan(values: Any) -> bool:
    values = np.asarray(values)
    return values.dtype.kind == "f" and bool(np.isnan(values).any())
