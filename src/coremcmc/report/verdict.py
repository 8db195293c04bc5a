"""The verdict in words, the numbers for a reader in a hurry, and what to be warned of."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coremcmc.certificate.certificate import Certificate
from coremcmc.fitting.result import Fit
from coremcmc.report.coreset import effective_rows
from coremcmc.report.formatting import (
    MISSING,
    count,
    duration,
    number,
    percent,
    sentence,
    shorten,
)
from coremcmc.report.parameters import FEWEST_ESS, MOST_RHAT, Parameter

__all__ = ["Headline", "headline_of", "is_doubtful", "key_numbers", "remarks_of", "warning_list"]

_TO_DO = {
    "good": "Use the draws as they are.",
    "usable": "Good enough to explore with; follow the advice above before you publish.",
    "poor": "Do not draw conclusions from these draws; follow the advice above first.",
}
_MARKS = {"good": "✓", "usable": "≈", "poor": "✕"}


@dataclass(frozen=True)
class Headline:
    """The verdict.

    Attributes
    ----------
    verdict
        ``good``, ``usable``, ``poor`` or ``none``.
    mark, word
        A sign and a word for it.
    reason
        What the certificate found, in words.
    to_do
        What the reader should do.
    """

    verdict: str
    mark: str
    word: str
    reason: str
    to_do: str


def headline_of(fit: Fit) -> Headline:
    """Return the verdict on a fit, or that there is none."""
    certificate = fit.certificate
    if certificate is None:
        reason = (
            "This fit made no certificate, so nothing is known about how far the coreset "
            "posterior is from the full posterior."
        )
        to_do = "fit.certify(model, data) makes one, for one pass over the data."
        return Headline("none", "?", "Not judged", reason, to_do)
    verdict = str(certificate.verdict)
    reason = " ".join(sentence(text) for text in certificate.reasons)
    to_do = _TO_DO.get(verdict, "")
    return Headline(verdict, _MARKS.get(verdict, "?"), verdict.capitalize(), reason, to_do)


def key_numbers(fit: Fit, parameters: Sequence[Parameter]) -> list[tuple[str, str, str]]:
    """Return name, number and explanation of what matters most."""
    coreset = fit.coreset
    size = len(coreset)
    numbers = [
        (
            "Coreset",
            f"{count(size)} rows",
            f"for {count(coreset.num_rows)}, {percent(size / coreset.num_rows)}; effective "
            f"{count(effective_rows(np.asarray(coreset.weights)))}",
        )
    ]
    if fit.certificate is not None:
        numbers += _certificate_numbers(fit.certificate)
    ess = [p.ess for p in parameters if math.isfinite(p.ess)]
    rhat = [p.rhat for p in parameters if math.isfinite(p.rhat)]
    smallest = count(min(ess)) if ess else MISSING
    num_draws = count(parameters[0].draws.size) if parameters else "no"
    drawn = f"smallest ESS {smallest}, of {num_draws} draws"
    largest = f"R-hat ≤ {max(rhat):.3f}" if rhat else MISSING
    numbers.append(("Chains", largest, drawn))
    numbers.append(
        ("Time", duration(fit.seconds), f"{count(fit.iteration)} iterations, {fit.stopped}")
    )
    return numbers


def _certificate_numbers(certificate: Certificate) -> list[tuple[str, str, str]]:
    if is_doubtful(certificate):
        bound = math.sqrt(max(certificate.residual_variance, 0.0) / max(len(certificate.mean), 1))
        means = ("Means off by", f"≤ {number(bound, 2)} sd", "a bound on the root mean square")
        sds = ("Spreads", "unknown", "the importance weights are too uneven")
    else:
        ratio = certificate.sd_ratio
        shift = math.sqrt(certificate.squared_z)
        text = f"{number(shift, 2)} sd" if shift >= 0.001 else "< 0.001 sd"
        means = ("Means off by", text, "root mean square over parameters")
        low, high = float(np.min(ratio)), float(np.max(ratio))
        text = f"{low:.2f} to {high:.2f}"
        sds = ("Spreads", text, "sds of the coreset over the full posterior's")
    noise = certificate.noise_variance
    what = f"KL ≈ {number(certificate.kl, 2)}; Pareto k = {certificate.pareto_k:.2f}"
    what += f"; {number(noise, 2)} of it noise of its estimate" if noise else ""
    residual = ("Residual variance", number(certificate.residual_variance, 2), what)
    return [means, sds, residual]


def is_doubtful(certificate: Certificate) -> bool:
    """Whether the corrected values are not to be relied on."""
    return certificate.pareto_k > 0.7 and certificate.residual_variance > 0.01


def remarks_of(fit: Fit, parameters: Sequence[Parameter]) -> list[str]:
    """Return sentences; the most serious come first."""
    found = []
    if fit.certificate is not None and fit.certificate.verdict != "good":
        reasons = " ".join(sentence(text) for text in fit.certificate.reasons)
        found.append(f"The certificate says {fit.certificate.verdict}. {reasons}")
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
    if fit.certificate is not None and is_doubtful(fit.certificate):
        found.append(
            f"Pareto k is {number(fit.certificate.pareto_k)}, above 0.7: the corrected values are "
            "not to be relied on. A larger coreset_size brings it down."
        )
    broken = [name for name, values in fit.traces.items() if _has_nan(values)]
    if broken:
        found.append(
            f"These traces hold values that are not numbers: {', '.join(map(str, broken))}. Check "
            "the model's log density, and columns of very different sizes in the data."
        )
    return found


def warning_list(remarks: Sequence[str]) -> dict[str, Any]:
    """Return what the section shows: the remarks, or that there are none."""
    none = "None: the run ended as it should, the chains agree, and the certificate finds nothing "
    return {"remarks": remarks} if remarks else {"text": f"{none}wrong."}


def _about_draws(fit: Fit, parameters: Sequence[Parameter]) -> list[str]:
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
    diverging = int(np.sum(fit.sample_stats.get("diverging", 0)))
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
