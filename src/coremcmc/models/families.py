"""The families of generalized linear models: links, densities, parameters, responses.

A new family is one entry of :data:`FAMILIES`; GLM, formulas and the command know it from there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from coremcmc.base import Position, Rows
from coremcmc.models.priors import Gamma, HalfStudentT, PositivePrior
from coremcmc.models.row_checks import require_binary, require_counts, require_vector
from coremcmc.models.special import (
    log1p,
    log_factorial,
    log_normal_cdf,
    log_rising_factorial,
    log_softplus,
    softplus,
)

__all__ = [
    "BINARY",
    "COUNT",
    "FAMILIES",
    "LINKS",
    "REAL",
    "Family",
    "Link",
    "Parameter",
    "Response",
]

Eta = Float[Array, " rows"]
_HALF_LOG_2PI = 0.9189385332046727
_LOG_PI = 1.1447298858494002


# -- links ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Link:
    """How a linear predictor becomes a mean.

    Attributes
    ----------
    name
        What a user writes.
    inverse
        The mean μ of a linear predictor η.
    log_inverse
        log μ, exact where μ itself overflows or underflows; NaN where it is negative.
    """

    name: str
    inverse: Callable[[Eta], Eta]
    log_inverse: Callable[[Eta], Eta]


def _same(eta: Eta) -> Eta:
    return eta


LINKS = {
    link.name: link
    for link in (
        Link("identity", _same, jnp.log),
        Link("logit", jax.nn.sigmoid, lambda eta: -softplus(-eta)),
        Link("probit", jax.scipy.stats.norm.cdf, log_normal_cdf),
        Link("log", jnp.exp, _same),
        Link("softplus", softplus, log_softplus),
    )
}
"""Links by name."""


# -- responses ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Response:
    """What the response of a family must be.

    Attributes
    ----------
    name
        Of the kind.
    is_one
        Tells of each entry of an array whether it is such.
    what, remedy
        What it must be, and what to do where it is not, for the message of a formula. The remedy
        may speak of ``{name}``, the left side, and of ``{value}``, the first that is not such.
    require
        ``require(name, values)`` refuses rows that are not such, where there is no formula.
    dtype
        In which a formula stores it, if not in its own.
    is_standardized
        Whether a formula subtracts its mean and divides by its standard deviation.
    """

    name: str
    is_one: Callable[[np.ndarray], Any]
    what: str
    remedy: str
    require: Callable[[str, np.ndarray], None]
    dtype: Any = None
    is_standardized: bool = False


REAL = Response(
    "real", np.isfinite, "a number", "", require_vector, dtype=np.float64, is_standardized=True
)
BINARY = Response(
    "binary",
    lambda y: (y == 0) | (y == 1),
    "0 or 1",
    "Write which value is 1, as in I({name} == {value}), on the left of the formula.",
    require_binary,
    dtype=np.int8,
)
COUNT = Response(
    "count",
    lambda y: (y >= 0) & (y == np.floor(y)),
    "a count 0, 1, 2, …",
    "Negative or fractional responses need family='gaussian' or 'student_t'.",
    require_counts,
)


# -- parameters -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Parameter:
    """A positive parameter besides the coefficients; a position holds its logarithm.

    Attributes
    ----------
    name
        For priors and results; a position has ``log_`` before it.
    prior
        The one when none is given.
    start
        About where a chain starts: the logarithm, from the responses.
    is_scale
        Whether it is in units of the response.
    """

    name: str
    prior: PositivePrior
    start: Callable[[Eta], Float[Array, ""]] = lambda y: jnp.zeros(())
    is_scale: bool = False


_SIGMA = Parameter(
    "sigma",
    HalfStudentT(2.5),
    start=lambda y: 0.5 * jnp.log(1.0 + jnp.mean(y**2)),
    is_scale=True,
)
_DF = Parameter("df", Gamma(2.0, 0.1), start=lambda y: jnp.log(10.0))
_PHI = Parameter("phi", HalfStudentT(10.0))


# -- densities ------------------------------------------------------------------------------------


def _gaussian(eta: Eta, rows: Rows, position: Position, link: Link) -> Eta:
    """y ~ N(η, σ²)."""
    log_sigma = position["log_sigma"]
    z = (rows["y"] - eta) * jnp.exp(-log_sigma)
    return -0.5 * z * z - log_sigma - _HALF_LOG_2PI


def _student_t(eta: Eta, rows: Rows, position: Position, link: Link) -> Eta:
    """y ~ η + σ t, t having ν degrees of freedom."""
    log_sigma, log_df = position["log_sigma"], position["log_df"]
    df = jnp.exp(log_df)
    z = (rows["y"] - eta) * jnp.exp(-log_sigma)
    constant = log_rising_factorial(0.5 * df, jnp.full_like(df, 0.5))
    constant = constant - 0.5 * (log_df + _LOG_PI) - log_sigma
    return constant - 0.5 * (df + 1.0) * log1p(z * z / df)


def _logistic(eta: Eta, rows: Rows, position: Position, link: Link) -> Eta:
    """y ~ Bernoulli(1 / (1 + e^−η))."""
    return rows["y"] * eta - softplus(eta)


def _probit(eta: Eta, rows: Rows, position: Position, link: Link) -> Eta:
    """y ~ Bernoulli(Φ(η))."""
    return log_normal_cdf((2.0 * rows["y"] - 1.0) * eta)


def _poisson(eta: Eta, rows: Rows, position: Position, link: Link) -> Eta:
    """y ~ Poisson(μ)."""
    return rows["y"] * link.log_inverse(eta) - link.inverse(eta) - rows["log_factorial"]


def _negative_binomial(eta: Eta, rows: Rows, position: Position, link: Link) -> Eta:
    """y ~ NegativeBinomial with mean μ and variance μ + μ²/φ."""
    y, log_phi = rows["y"], position["log_phi"]
    phi = jnp.exp(log_phi)
    log_odds = link.log_inverse(eta) - log_phi  # of μ / (μ + φ)
    choose = log_rising_factorial(phi, y) - rows["log_factorial"]
    return choose + y * log_odds - (y + phi) * softplus(log_odds)


def _with_log_factorial(rows: Rows) -> Rows:
    """log y! of counts, computed once."""
    return {**rows, "log_factorial": log_factorial(rows["y"])}


# -- families -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Family:
    """What a family is made of.

    Attributes
    ----------
    pointwise
        ``pointwise(eta, rows, position, link)``: log-likelihood of each row.
    links
        Those that it knows, its default first.
    response
        What its response must be.
    parameters
        Positive parameters besides the coefficients.
    prepare
        Adds to prepared rows what need not be computed at every evaluation.
    """

    pointwise: Callable[[Eta, Rows, Position, Link], Eta]
    links: tuple[Link, ...]
    response: Response
    parameters: tuple[Parameter, ...] = ()
    prepare: Callable[[Rows], Rows] = lambda rows: rows


_IDENTITY, _LOGIT, _PROBIT, _LOG, _SOFTPLUS = LINKS.values()
_OF_COUNTS: dict[str, Any] = {
    "links": (_LOG, _SOFTPLUS),
    "response": COUNT,
    "prepare": _with_log_factorial,
}

FAMILIES = {
    "gaussian": Family(_gaussian, (_IDENTITY,), REAL, (_SIGMA,)),
    "student_t": Family(_student_t, (_IDENTITY,), REAL, (_SIGMA, _DF)),
    "logistic": Family(_logistic, (_LOGIT,), BINARY),
    "probit": Family(_probit, (_PROBIT,), BINARY),
    "poisson": Family(_poisson, **_OF_COUNTS),
    "negative_binomial": Family(_negative_binomial, parameters=(_PHI,), **_OF_COUNTS),
}
"""Families by name."""
