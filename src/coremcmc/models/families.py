"""The likelihoods of generalized linear models, row by row, and what each family is made of.

A new family is one function and one entry of :data:`FAMILIES`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float

from coremcmc.base import Position, Rows
from coremcmc.models.special import (
    log1p,
    log_normal_cdf,
    log_rising_factorial,
    log_softplus,
    softplus,
)

__all__ = ["FAMILIES", "Family"]

Eta = Float[Array, " rows"]
_HALF_LOG_2PI = 0.9189385332046727
_LOG_PI = 1.1447298858494002


def _gaussian(eta: Eta, rows: Rows, position: Position, link: str) -> Eta:
    """y ~ N(η, σ²)."""
    log_sigma = position["log_sigma"]
    z = (rows["y"] - eta) * jnp.exp(-log_sigma)
    return -0.5 * z * z - log_sigma - _HALF_LOG_2PI


def _student_t(eta: Eta, rows: Rows, position: Position, link: str) -> Eta:
    """y ~ η + σ t, t having ν degrees of freedom."""
    log_sigma, log_df = position["log_sigma"], position["log_df"]
    df = jnp.exp(log_df)
    z = (rows["y"] - eta) * jnp.exp(-log_sigma)
    constant = log_rising_factorial(0.5 * df, jnp.full_like(df, 0.5))
    constant = constant - 0.5 * (log_df + _LOG_PI) - log_sigma
    return constant - 0.5 * (df + 1.0) * log1p(z * z / df)


def _logistic(eta: Eta, rows: Rows, position: Position, link: str) -> Eta:
    """y ~ Bernoulli(1 / (1 + e^−η))."""
    return rows["y"] * eta - softplus(eta)


def _probit(eta: Eta, rows: Rows, position: Position, link: str) -> Eta:
    """y ~ Bernoulli(Φ(η))."""
    return log_normal_cdf((2.0 * rows["y"] - 1.0) * eta)


def _poisson(eta: Eta, rows: Rows, position: Position, link: str) -> Eta:
    """y ~ Poisson(μ)."""
    log_mean, mean = _mean(eta, link)
    return rows["y"] * log_mean - mean - rows["log_factorial"]


def _negative_binomial(eta: Eta, rows: Rows, position: Position, link: str) -> Eta:
    """y ~ NegativeBinomial with mean μ and variance μ + μ²/φ."""
    y, log_phi = rows["y"], position["log_phi"]
    phi = jnp.exp(log_phi)
    log_odds = _mean(eta, link)[0] - log_phi  # of μ / (μ + φ)
    choose = log_rising_factorial(phi, y) - rows["log_factorial"]
    return choose + y * log_odds - (y + phi) * softplus(log_odds)


def _mean(eta: Eta, link: str) -> tuple[Eta, Eta]:
    """log μ and μ of a count."""
    if link == "softplus":
        return log_softplus(eta), softplus(eta)
    return eta, jnp.exp(eta)


@dataclass(frozen=True)
class Family:
    """What a family is made of.

    Attributes
    ----------
    pointwise
        ``pointwise(eta, rows, position, link)``: log-likelihood of each row.
    links
        Names of the links that it knows, its default first.
    response
        What its response is: ``"real"``, ``"binary"`` or ``"count"``.
    parameters
        Positive parameters besides the coefficients; a position holds their logarithms.
    """

    pointwise: Callable[[Eta, Rows, Position, str], Eta]
    links: tuple[str, ...]
    response: str
    parameters: tuple[str, ...] = ()


FAMILIES = {
    "gaussian": Family(_gaussian, ("identity",), "real", ("sigma",)),
    "student_t": Family(_student_t, ("identity",), "real", ("sigma", "df")),
    "logistic": Family(_logistic, ("logit",), "binary"),
    "probit": Family(_probit, ("probit",), "binary"),
    "poisson": Family(_poisson, ("log", "softplus"), "count"),
    "negative_binomial": Family(_negative_binomial, ("log", "softplus"), "count", ("phi",)),
}
"""Families by name."""
