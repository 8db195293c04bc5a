"""The verdict in words, and the few numbers that a reader in a hurry wants."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coremcmc.report.coreset import effective_rows
from coremcmc.report.formatting import MISSING, count, duration, number, percent, sentence
from coremcmc.report.intervals import is_doubtful
from coremcmc.report.parameters import Parameter

__all__ = ["Headline", "headline_of", "key_numbers"]

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


def headline_of(fit: Any) -> Headline:
    """Return the verdict on a fit, or that there is none."""
    certificate = fit.verdict
    if certificate is None:
        reason = (
            "This fit made no certificate, so nothing is known about how far the coreset "
            "posterior is from the full posterior."
        )
        to_do = "fit.certificate(model, data) makes one, for one pass over the data."
        return Headline("none", "?", "Not judged", reason, to_do)
    verdict = str(certificate.verdict)
    reason = " ".join(sentence(text) for text in certificate.reasons)
    to_do = _TO_DO.get(verdict, "")
    return Headline(verdict, _MARKS.get(verdict, "?"), verdict.capitalize(), reason, to_do)


def key_numbers(fit: Any, parameters: Sequence[Parameter]) -> list[tuple[str, str, str]]:
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
    if fit.verdict is not None:
        numbers += _certificate_numbers(fit.verdict)
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


def _certificate_numbers(certificate: Any) -> list[tuple[str, str, str]]:
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
    noise = getattr(certificate, "noise_variance", 0.0)
    what = f"KL ≈ {number(certificate.kl, 2)}; Pareto k = {certificate.pareto_k:.2f}"
    what += f"; {number(noise, 2)} of it noise of its estimate" if noise else ""
    residual = ("Residual variance", number(certificate.residual_variance, 2), what)
    return [means, sds, residual]
