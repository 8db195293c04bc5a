"""How far the coreset posterior is from the full posterior, without having the latter.

Draws θ_j of the coreset posterior π_w and the exact sums Σ_n ℓ_n(θ_j) tell: the log ratio of the
two posteriors is, up to a constant, e_j = Σ_n ℓ_n(θ_j) − Σ_m w_m ℓ_m(θ_j). Its variance is twice
KL(π_w ‖ π) while that is small, no direction of θ has its mean off by more than its square root
(in standard deviations), and weights ∝ exp(e_j) correct means and standard deviations.

What lies where π_w never goes is not seen by any of this, so other modes are searched for.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Certificate", "evenly_spaced", "judge", "reweighted"]

_GOOD, _USABLE = "good", "usable"
_AGREES = "means and spreads agree with the full posterior's as far as can be seen."
# Below this residual variance V nothing else matters, the shape of the weights' tail included: no
# mean is off by more than √V = 0.1 sds, and sds by about √(V/2).
_NEGLIGIBLE = 0.01
_FEWEST_EFFECTIVE = 200
_LIMITS = {  # average squared z-score, largest |log sd ratio|, Pareto k-hat
    _GOOD: (0.02, np.log(1.15), 0.7),
    _USABLE: (0.25, np.log(1.5), 1.0),
}


@dataclass(frozen=True, eq=False)
class Certificate:
    """The verdict on a coreset, and what it rests on.

    Attributes
    ----------
    verdict
        ``"good"``, ``"usable"`` or ``"poor"``.
    reasons
        In words, with what to do.
    residual_variance
        Variance of the log ratio of the two posteriors over the coreset posterior.
    pareto_k
        k-hat of the importance weights; above 0.7 the corrections are not to be relied on.
    names
        Of the coordinates below.
    mean, sd
        Of the coreset posterior.
    corrected_mean, corrected_sd
        By importance weights, toward the full posterior.
    laplace_mean, laplace_sd
        What the Gaussian at the mode says, where there is one.
    num_draws
        J.
    noise_variance
        Variance of the log ratio that comes from its estimate: zero after a full pass. The
        residual variance contains it, so that the verdict errs on the safe side.
    effective_draws
        The smallest effective number of the draws over the coordinates that mix worst.
    importance
        Weights of ``num_draws`` draws, evenly spaced over all, that make of them draws of the full
        posterior; they sum to one. None in a file of an older version.
        :func:`~coremcmc.certificate.certificate.reweighted` corrects any function of θ by them.
    """

    verdict: str
    reasons: list[str]
    residual_variance: float
    pareto_k: float
    names: list[str]
    mean: np.ndarray
    sd: np.ndarray
    corrected_mean: np.ndarray
    corrected_sd: np.ndarray
    laplace_mean: np.ndarray | None = None
    laplace_sd: np.ndarray | None = None
    num_draws: int = 0
    noise_variance: float = 0.0
    effective_draws: float = float("inf")
    importance: np.ndarray | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for a file."""
        return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in vars(self).items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Certificate":
        """Rebuild from what :meth:`to_dict` returned."""
        arrays = ("mean", "sd", "corrected_mean", "corrected_sd", "laplace_mean", "laplace_sd")
        found: dict[str, Any] = dict(values)
        for name in (*arrays, "importance"):
            found[name] = None if values.get(name) is None else np.array(values[name])
        return cls(**found)

    @property
    def kl(self) -> float:
        """KL(π_w ‖ π) that the residual variance implies while it is small."""
        return 0.5 * self.residual_variance

    @property
    def shift(self) -> np.ndarray:
        """Corrected minus coreset mean, in standard deviations."""
        difference = self.corrected_mean - self.mean
        return np.where(difference == 0, 0.0, difference / _positive(self.corrected_sd))

    @property
    def squared_z(self) -> float:
        """Average squared shift: an estimate of the coreset's error."""
        return float(np.mean(np.square(self.shift)))

    @property
    def sd_ratio(self) -> np.ndarray:
        """Coreset over corrected standard deviation."""
        return np.where(self.sd == self.corrected_sd, 1.0, self.sd / _positive(self.corrected_sd))

    def __call__(self, *arguments: Any) -> "Certificate":
        """Return itself, with a warning: ``fit.certificate`` was a method once."""
        if arguments:
            raise TypeError(
                "fit.certificate is a certificate. Make one by fit.certify(model, data)."
            )
        text = "fit.certificate is the certificate itself: leave out the parentheses."
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return self

    def __str__(self) -> str:
        noise = f" (noise {self.noise_variance:.2g})" if self.noise_variance else ""
        lines = [
            f"certificate  {self.verdict}: " + " ".join(self.reasons),
            f"             residual variance {self.residual_variance:.3g}{noise}, Pareto k "
            f"{self.pareto_k:.2f} ({self.num_draws} draws)",
        ]
        if self.pareto_k <= _LIMITS[_GOOD][2] or self.residual_variance <= _NEGLIGIBLE:
            low, high = self.sd_ratio.min(), self.sd_ratio.max()
            lines[-1] += (
                f"; against the corrected values: squared z {self.squared_z:.2g}, "
                f"sds {low:.2f} to {high:.2f}"
            )
        return "\n".join(lines)


def _positive(sd: np.ndarray) -> np.ndarray:
    return np.maximum(sd, np.finfo(float).tiny)


def reweighted(values: np.ndarray, importance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sd of the columns of all draws, corrected by the weights of some of them.

    Parameters
    ----------
    values
        Any functions of θ at the draws that were judged: draws × functions.
    importance
        Weights of draws that are evenly spaced over these; they sum to one.
    """
    chosen = values[evenly_spaced(len(values), len(importance))]
    mean, sd = values.mean(axis=0), values.std(axis=0, ddof=1)
    # Corrections are differences within the same draws, so that their noise is not counted.
    own_mean, own_sd = chosen.mean(axis=0), chosen.std(axis=0)
    weighted_mean = importance @ chosen
    weighted_sd = np.sqrt(importance @ np.square(chosen - weighted_mean))
    # What never varies, an indicator that is always one, is left as it is.
    varies = (own_sd > 0) & (weighted_sd > 0)
    corrected_mean = np.where(varies, mean + (weighted_mean - own_mean), mean)
    return corrected_mean, np.where(varies, sd * weighted_sd / np.where(varies, own_sd, 1.0), sd)


def evenly_spaced(total: int, num: int) -> np.ndarray:
    """Which of all draws are judged."""
    return np.linspace(0, total - 1, num).astype(int)


def judge(found: Certificate, other_mode: np.ndarray | None) -> tuple[str, list[str]]:
    """Compare with the limits; say what is wrong, and what to do."""
    if other_mode is not None:
        place = np.array2string(other_mode[:4], precision=3)
        return "poor", [
            f"the posterior has another mode, at {place}{' …' if len(other_mode) > 4 else ''}, "
            "that no chain has visited, and a coreset fitted around one mode does not know the "
            "other. Use preset='paper' with initial_positions in all modes, or a parametrisation "
            "with one mode."
        ]
    slow = (
        f"the draws mix slowly (their effective number is {found.effective_draws:,.0f}). Draw more "
        "(num_draws, or fit.sample with NUTS)."
    )
    mixes = found.effective_draws >= _FEWEST_EFFECTIVE
    noise = found.noise_variance  # which may by chance undo a part of what is there
    if max(found.residual_variance, noise) <= _NEGLIGIBLE:
        return (_GOOD, [_AGREES]) if mixes else (_USABLE, [slow])
    reliable = found.pareto_k <= _LIMITS[_GOOD][2]
    # Where the weights are too uneven to correct by, the bound by the residual stands in.
    error = found.squared_z if reliable else found.residual_variance / len(found.mean)
    error = max(error, noise / len(found.mean))
    ratio = np.maximum(found.sd_ratio, 1e-12)
    spread = float(np.max(np.abs(np.log(ratio)))) if reliable else 0.0
    verdict = "poor"
    for name, (most_error, most_spread, most_k) in reversed(_LIMITS.items()):
        if error <= most_error and spread <= most_spread and found.pareto_k <= most_k:
            verdict = name
    if verdict == _GOOD:
        return (verdict, [_AGREES]) if mixes else (_USABLE, [slow])
    most_error, most_spread, most_k = _LIMITS[_USABLE if verdict == "poor" else _GOOD]
    reasons = []
    if error > most_error:
        how = "about" if reliable else "up to"
        reasons.append(f"means are off by {how} {np.sqrt(error):.2g} posterior sds.")
    if spread > most_spread:
        reasons.append(f"sds are off by up to a factor of {np.exp(spread):.2g}.")
    if found.pareto_k > most_k:
        reasons.append("the importance weights are too uneven to correct it.")
    if noise > 0.5 * found.residual_variance:
        reasons.append(
            "Much of this is noise of the estimate: a full pass tells more (certificate=True)."
        )
    if not mixes:
        reasons.append(slow[0].upper() + slow[1:])
    otherwise = "use the corrected values" if reliable else "train longer (num_iterations)"
    reasons.append(f"Raise coreset_size, or {otherwise}.")
    return verdict, reasons
