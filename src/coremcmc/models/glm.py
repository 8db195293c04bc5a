"""Generalized linear models: a family, a link, and priors that the user chooses."""

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from coremcmc.base import Position, PRNGKey, Rows
from coremcmc.models.families import FAMILIES, Family
from coremcmc.models.paper_regressions import _Regression
from coremcmc.models.priors import (
    CoefficientPrior,
    Gamma,
    HalfStudentT,
    PositivePrior,
    StudentT,
    prior_from_text,
)
from coremcmc.models.row_checks import require_binary, require_counts
from coremcmc.models.special import log_factorial

__all__ = ["GLM"]

# A positive parameter, the argument that is its prior, and the prior when none is given.
_POSITIVE = {
    "sigma": ("scale_prior", HalfStudentT(2.5)),
    "df": ("df_prior", Gamma(2.0, 0.1)),
    "phi": ("dispersion_prior", HalfStudentT(10.0)),
}


@dataclass(frozen=True)
class GLM(_Regression):
    """A generalized linear model: η_n = [1 x_nᵀ] β, and y_n distributed around it.

    ====================  =================================  ======================  ===========
    family                y_n                                links                   parameters
    ====================  =================================  ======================  ===========
    gaussian              N(η, σ²)                           identity                sigma
    student_t             η + σ t, t with ν df               identity                sigma, df
    logistic              Bernoulli(1 / (1 + e^−η))          logit                   none
    probit                Bernoulli(Φ(η))                    probit                  none
    poisson               Poisson(μ)                         log, softplus           none
    negative_binomial     mean μ, variance μ + μ²/φ          log, softplus           phi
    ====================  =================================  ======================  ===========

    Rows are ``{"x", "y"}``: a matrix of features without a column of ones, and a vector. The
    position holds ``beta``, the intercept first, and the logarithms of the parameters.

    Parameters
    ----------
    family
        A name from the table.
    link
        A name from the table; the first by default. With ``"log"``, μ = e^η; with ``"softplus"``,
        μ = log(1 + e^η).
    intercept
        Whether there is one.
    prior
        Of the coefficients: ``Normal``, ``StudentT`` or ``Cauchy`` from
        ``coremcmc.models.priors``, or text such as ``"normal(2.5)"``. It speaks of the columns as
        they are given, so that its scale should fit theirs: :func:`coremcmc.from_formula`
        standardizes them. ``StudentT(2.5)``, with 3 degrees of freedom, by default.
    intercept_prior
        Of the intercept; ``StudentT(2.5)`` by default.
    scale_prior
        Of σ: ``HalfNormal``, ``HalfStudentT``, ``Exponential`` or ``Gamma``;
        ``HalfStudentT(2.5)`` by default.
    dispersion_prior
        Of φ, likewise; ``HalfStudentT(10)`` by default. The larger φ, the closer to Poisson.
    df
        The degrees of freedom of ``student_t``, if they are known; they are learned otherwise.
    df_prior
        Of ν where it is learned; ``Gamma(2, 0.1)`` by default.

    Examples
    --------
    >>> GLM("poisson", prior="normal(1)").link
    'log'
    """

    family: str
    intercept: bool = field(default=True, kw_only=True)
    link: str | None = field(default=None, kw_only=True)
    prior: Any = field(default=StudentT(2.5), kw_only=True)
    intercept_prior: Any = field(default=StudentT(2.5), kw_only=True)
    scale_prior: Any = field(default=None, kw_only=True)
    dispersion_prior: Any = field(default=None, kw_only=True)
    df: Any = field(default=None, kw_only=True)
    df_prior: Any = field(default=None, kw_only=True)

    def __post_init__(self):
        links = _known("family", self.family, FAMILIES).links
        link = links[0] if self.link is None else self.link
        if link not in links:
            raise ValueError(
                f"link={link!r} does not go with family={self.family!r}; choose from "
                f"{', '.join(links)}."
            )
        object.__setattr__(self, "link", link)
        for name in ("prior", "intercept_prior"):
            found = _prior(name, getattr(self, name), CoefficientPrior, "normal(2.5)")
            object.__setattr__(self, name, found)
        if self.intercept_prior.length is not None:
            raise ValueError("intercept_prior must have one scale and one location.")
        self._check_df()
        for parameter, (name, default) in _POSITIVE.items():
            given = getattr(self, name)
            if parameter in self._learned:
                given = default if given is None else given
                object.__setattr__(self, name, _prior(name, given, PositivePrior, "exponential(1)"))
            elif given is not None:
                raise ValueError(
                    f"{name} is the prior of {parameter}, which {self._says} does not learn. "
                    "Leave it out."
                )

    def _check_df(self) -> None:
        if self.df is None:
            return
        if "df" not in self._family.parameters:
            raise ValueError(f"df belongs to family='student_t', not to {self.family!r}.")
        is_number = isinstance(self.df, (int, float)) and not isinstance(self.df, bool)
        if not is_number or not 0 < self.df < math.inf:
            raise ValueError(
                f"df must be a positive number, or None to learn it, not {self.df!r}. For a "
                "normal likelihood use family='gaussian'."
            )
        object.__setattr__(self, "df", float(self.df))

    @property
    def response(self) -> str:
        """What the response is: ``"real"``, ``"binary"`` or ``"count"``."""
        return self._family.response

    @property
    def _family(self) -> Family:
        return FAMILIES[self.family]

    @property
    def _says(self) -> str:
        """The family in an error message."""
        return f"family={self.family!r}" + ("" if self.df is None else f" with df={self.df:g}")

    @property
    def _learned(self) -> tuple[str, ...]:
        """Positive parameters that are sampled."""
        return tuple(p for p in self._family.parameters if p != "df" or self.df is None)

    @property
    def has_independent_prior(self) -> bool:  # type: ignore[override]
        """Whether the position may be lengthened: not where each coefficient has its own prior."""
        return self.prior.length is None

    def logprior_fn(self, position: Position) -> Float[Array, ""]:
        """Independent priors; those of positive parameters with their Jacobians."""
        beta = position["beta"]
        if not self.intercept:
            total = self.prior.logpdf(beta).sum()
        elif self.prior.length is None:  # no slice, which a GPU kernel does not know
            is_intercept = jnp.arange(beta.shape[0]) == 0
            terms = (self.intercept_prior.logpdf(beta), self.prior.logpdf(beta))
            total = jnp.where(is_intercept, *terms).sum()
        else:
            total = self.intercept_prior.logpdf(beta[0]) + self.prior.logpdf(beta[1:]).sum()
        for parameter in self._learned:
            prior = getattr(self, _POSITIVE[parameter][0])
            total = total + prior.log_density(position[f"log_{parameter}"])
        return total

    def pointwise(
        self, eta: Float[Array, " rows"], rows: Rows, position: Position
    ) -> Float[Array, " rows"]:
        """Log-likelihood of each row, as the family has it."""
        if self.df is not None:
            position = {**position, "log_df": jnp.asarray(math.log(self.df), eta.dtype)}
        return self._family.pointwise(eta, rows, position, str(self.link))

    def prepare_rows(self, rows: Rows) -> Rows:
        """All columns as float64; log y! of counts is computed once."""
        rows = super().prepare_rows(rows)
        if self.response == "count":
            return {**rows, "log_factorial": log_factorial(rows["y"])}
        return rows

    def check_rows(self, rows: Rows) -> None:
        """A matrix of features, and responses of the family's kind.

        Blocks of the rows come one by one, so that a block with a single class is no fault here.
        """
        super().check_rows(rows)
        self.check_response(rows)

    def check_response(self, rows: Rows) -> None:
        """Responses of the family's kind, and as many coefficients as there are priors."""
        if self.response == "binary":
            require_binary("y", rows["y"])
        elif self.response == "count":
            require_counts("y", rows["y"])
        num_features = rows["x"].shape[1]
        if self.prior.length not in (None, num_features):
            raise ValueError(
                f"prior was given for {self.prior.length} coefficients, but data['x'] has "
                f"{num_features} columns. Give one number, or one for each column."
            )

    def initial_position(self, rng_key: PRNGKey, rows: Rows) -> Position:
        """Small coefficients, so that e^η does not overflow whatever the units of the features."""
        key_beta, key_other = jax.random.split(rng_key)
        size = jnp.sqrt(jnp.mean(rows["x"] ** 2, axis=0))
        size = jnp.maximum(size, 1.0)
        if self.intercept:
            size = jnp.concatenate([jnp.ones(1), size])
        beta = jax.random.normal(key_beta, (self.num_coefficients(rows),)) / size
        position = {"beta": beta / math.sqrt(max(1, beta.size))}
        noise = 0.5 * jax.random.normal(key_other, (len(self._learned),))
        for parameter, jitter in zip(self._learned, noise, strict=True):
            start = jnp.zeros(())
            if parameter == "sigma":
                start = 0.5 * jnp.log(1.0 + jnp.mean(rows["y"] ** 2))
            elif parameter == "df":
                start = jnp.log(10.0)
            position[f"log_{parameter}"] = start + jitter
        return position

    def constrain_fn(self, position: Position) -> Mapping[str, Array]:
        """β, and σ, ν or φ."""
        others = {p: jnp.exp(position[f"log_{p}"]) for p in self._learned}
        return {"beta": jnp.asarray(position["beta"]), **others}


def _prior(argument: str, given: Any, kind: type, example: str) -> Any:
    """Accept a prior of the right kind, or its text."""
    found = prior_from_text(given) if isinstance(given, str) else given
    if not isinstance(found, kind) or type(found) is kind:
        what = "coefficient" if kind is CoefficientPrior else "positive parameter"
        raise ValueError(
            f"{argument} must be the prior of a {what}, such as {example!r}, not {given!r}."
        )
    return found


def _known(argument: str, name: Any, known: Mapping[str, Any]) -> Any:
    if isinstance(name, str) and name in known:
        return known[name]
    close = difflib.get_close_matches(str(name), known, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"{argument}={name!r} is unknown; choose from {', '.join(known)}.{hint}")
