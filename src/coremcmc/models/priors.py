"""Priors on coefficients (any real) and on scales and shapes (positive).

A positive parameter is sampled on the logarithmic scale, so that its prior gives the density of
the logarithm, the Jacobian included.
"""

import math
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from coremcmc.models.special import log1p, softplus, standard_normal_logpdf

__all__ = [
    "OLD_KEYWORDS",
    "Cauchy",
    "CoefficientPrior",
    "Exponential",
    "Gamma",
    "HalfNormal",
    "HalfStudentT",
    "Normal",
    "PositivePrior",
    "Priors",
    "StudentT",
    "prior_from_text",
    "with_old_keywords",
]


def _numbers(name: str, value: Any, *, positive: bool) -> float | tuple[float, ...]:
    """Accept a finite number, or one for each coefficient, as something that can be hashed."""
    kind = "a positive number" if positive else "a finite number"
    try:
        array = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} of a prior must be {kind}, or one per coefficient, not {value!r}."
        ) from None
    if array.ndim > 1 or array.size == 0 or not np.isfinite(array).all():
        raise ValueError(f"{name} of a prior must be {kind}, or one per coefficient, not {value}.")
    if positive and not (array > 0).all():
        raise ValueError(f"{name} of a prior must be positive, but is {value}.")
    return float(array) if array.ndim == 0 else tuple(array.tolist())


def _positive_number(name: str, value: Any) -> float:
    number = _numbers(name, value, positive=True)
    if isinstance(number, tuple):
        raise ValueError(f"{name} of a prior must be one positive number, not {value}.")
    return number


@dataclass(frozen=True)
class CoefficientPrior:
    """A location-scale density of each coefficient, independent of the others.

    Parameters
    ----------
    scale
        A positive number, or one for each coefficient (without the intercept).
    location
        Zero by default; likewise.
    """

    scale: Any = 1.0
    location: Any = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _numbers("scale", self.scale, positive=True))
        object.__setattr__(self, "location", _numbers("location", self.location, positive=False))
        lengths = {len(x) for x in (self.scale, self.location) if isinstance(x, tuple)}
        if len(lengths) > 1:
            raise ValueError(
                f"scale and location of a prior differ in length: {sorted(lengths)}. Give each "
                "one number, or one for each coefficient."
            )

    @property
    def length(self) -> int | None:
        """For how many coefficients it was given, or None: for any number of them."""
        lengths = [len(x) for x in (self.scale, self.location) if isinstance(x, tuple)]
        return lengths[0] if lengths else None

    def logpdf(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """Log density of each entry."""
        # Plain numbers stay plain: a GPU kernel takes no array constants.
        location, scale = (
            jnp.asarray(v) if isinstance(v, tuple) else v for v in (self.location, self.scale)
        )
        log_scale = jnp.log(scale) if isinstance(self.scale, tuple) else math.log(self.scale)
        return self._standard_logpdf((x - location) / scale) - log_scale

    def _standard_logpdf(self, z: Float[Array, "..."]) -> Float[Array, "..."]:
        raise NotImplementedError


@dataclass(frozen=True)
class Normal(CoefficientPrior):
    """β ~ N(location, scale²)."""

    def _standard_logpdf(self, z: Float[Array, "..."]) -> Float[Array, "..."]:
        return standard_normal_logpdf(z)


@dataclass(frozen=True)
class StudentT(CoefficientPrior):
    """β ~ location + scale · t with ``df`` degrees of freedom.

    Its tails forgive a scale that was chosen too small, where those of a normal do not.
    """

    df: Any = field(default=3.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "df", _positive_number("df", self.df))

    def _standard_logpdf(self, z: Float[Array, "..."]) -> Float[Array, "..."]:
        return _log_t_constant(self.df) - 0.5 * (self.df + 1.0) * log1p(z * z / self.df)


@dataclass(frozen=True)
class Cauchy(CoefficientPrior):
    """β ~ Cauchy(location, scale)."""

    def _standard_logpdf(self, z: Float[Array, "..."]) -> Float[Array, "..."]:
        return -math.log(math.pi) - log1p(z * z)


def _log_t_constant(df: float) -> float:
    return math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - 0.5 * math.log(df * math.pi)


class PositivePrior:
    """A density of a positive number."""

    def log_density(self, log_value: Float[Array, ""]) -> Float[Array, ""]:
        """Log density of the number's logarithm: that of the number, plus the logarithm."""
        raise NotImplementedError


@dataclass(frozen=True)
class HalfNormal(PositivePrior):
    """A normal variable of mean 0, made positive."""

    scale: Any = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _positive_number("scale", self.scale))

    def log_density(self, log_value: Float[Array, ""]) -> Float[Array, ""]:
        """Log density of the logarithm."""
        log_z = log_value - math.log(self.scale)
        return 0.5 * math.log(2 / math.pi) - 0.5 * jnp.exp(2.0 * log_z) + log_z


@dataclass(frozen=True)
class HalfStudentT(PositivePrior):
    """A Student-t variable with location 0, made positive."""

    scale: Any = 1.0
    df: Any = field(default=3.0, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _positive_number("scale", self.scale))
        object.__setattr__(self, "df", _positive_number("df", self.df))

    def log_density(self, log_value: Float[Array, ""]) -> Float[Array, ""]:
        """Log density of the logarithm."""
        log_z = log_value - math.log(self.scale)
        tail = softplus(2.0 * log_z - math.log(self.df))  # log(1 + z²/df)
        return math.log(2.0) + _log_t_constant(self.df) - 0.5 * (self.df + 1.0) * tail + log_z


@dataclass(frozen=True)
class Exponential(PositivePrior):
    """Density rate · exp(−rate · x)."""

    rate: Any = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", _positive_number("rate", self.rate))

    def log_density(self, log_value: Float[Array, ""]) -> Float[Array, ""]:
        """Log density of the logarithm."""
        return math.log(self.rate) - self.rate * jnp.exp(log_value) + log_value


@dataclass(frozen=True)
class Gamma(PositivePrior):
    """Density ∝ x^(shape − 1) exp(−rate · x)."""

    shape: Any = 1.0
    rate: Any = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", _positive_number("shape", self.shape))
        object.__setattr__(self, "rate", _positive_number("rate", self.rate))

    def log_density(self, log_value: Float[Array, ""]) -> Float[Array, ""]:
        """Log density of the logarithm."""
        constant = self.shape * math.log(self.rate) - math.lgamma(self.shape)
        return constant + self.shape * log_value - self.rate * jnp.exp(log_value)


_BY_NAME: dict[str, Any] = {
    "normal": Normal,
    "student_t": StudentT,
    "cauchy": Cauchy,
    "half_normal": HalfNormal,
    "half_student_t": HalfStudentT,
    "exponential": Exponential,
    "gamma": Gamma,
}
_CALL = re.compile(r"\s*(\w+)\s*(?:\(([^()]*)\))?\s*")


def prior_from_text(text: str) -> CoefficientPrior | PositivePrior:
    """Read a prior such as ``"normal(2.5)"``, ``"student_t(2.5, df=4)"`` or ``"cauchy"``.

    The number without a name is the scale (the rate of an exponential, the shape of a gamma).
    """
    matched = _CALL.fullmatch(text)
    if matched is None or matched[1] not in _BY_NAME:
        raise ValueError(
            f"the prior {text!r} is unknown. Write a name and its numbers, for example "
            f"'normal(2.5)' or 'student_t(2.5, df=3)'; the names are {', '.join(_BY_NAME)}."
        )
    positional, named = [], {}
    for part in filter(str.strip, (matched[2] or "").split(",")):
        name, _, number = part.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            raise ValueError(f"the prior {text!r}: {number.strip()!r} is not a number.") from None
        if name:
            named[name.strip()] = value
        else:
            positional.append(value)
    try:
        return _BY_NAME[matched[1]](*positional, **named)
    except TypeError:
        raise ValueError(
            f"the prior {text!r} does not take these numbers. It is {_BY_NAME[matched[1]]()!r} by "
            "default; give the first of its numbers, and others by name."
        ) from None


class Priors(Mapping[str, Any]):
    """Priors by the names of their parameters; like a model, they do not change.

    Parameters
    ----------
    priors
        A mapping, or pairs.
    """

    def __init__(self, priors: Any = ()):
        self._priors = dict(priors)

    def __getitem__(self, name: str) -> Any:
        return self._priors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._priors)

    def __len__(self) -> int:
        return len(self._priors)

    def __hash__(self) -> int:
        return hash(frozenset(self._priors.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Priors) and self._priors == other._priors

    def __repr__(self) -> str:
        return repr(self._priors)


OLD_KEYWORDS = {
    "prior": "beta",
    "intercept_prior": "Intercept",
    "scale_prior": "sigma",
    "dispersion_prior": "phi",
    "df_prior": "df",
}
"""Keywords that were, and the parameters whose priors they are; gone in the next release."""


def with_old_keywords(
    priors: Mapping[str, Any] | None, old: Mapping[str, Any], stacklevel: int = 3
) -> dict[str, Any]:
    """Put priors that were given by the keywords of before among the others, with a warning."""
    found = {} if priors is None else dict(priors)
    for keyword, prior in old.items():
        if keyword not in OLD_KEYWORDS:
            raise TypeError(f"got an unexpected keyword argument {keyword!r}")
        if prior is None:
            continue
        name = OLD_KEYWORDS[keyword]
        if name in found:
            raise ValueError(f"give priors[{name!r}] or {keyword}, not both.")
        shown = repr(prior) if isinstance(prior, str) else "…"
        warnings.warn(
            f"{keyword} goes in the next release; write priors={{{name!r}: {shown}}}.",
            DeprecationWarning,
            stacklevel=stacklevel,
        )
        found[name] = prior
    return found
