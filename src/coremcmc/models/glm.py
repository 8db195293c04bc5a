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
from coremcmc.models.families import FAMILIES, Family, Link, Parameter, Response
from coremcmc.models.paper_regressions import _Regression
from coremcmc.models.priors import (
    CoefficientPrior,
    PositivePrior,
    Priors,
    StudentT,
    prior_from_text,
    with_old_keywords,
)

__all__ = ["GLM"]


@dataclass(frozen=True, init=False)
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
    priors
        By the name of the parameter: ``{"beta": "normal(1)", "sigma": "exponential(1)"}``.
        ``beta`` are the coefficients, ``Intercept`` is the intercept, and the others are those of
        the family. Each prior is an object of ``coremcmc.models.priors``, ``Normal``, ``StudentT``
        or ``Cauchy`` for the former two and ``HalfNormal``, ``HalfStudentT``, ``Exponential`` or
        ``Gamma`` for the others, or its text. By default ``StudentT(2.5)``, with 3 degrees of
        freedom, for ``beta`` and ``Intercept``; ``HalfStudentT(2.5)`` for ``sigma``;
        ``Gamma(2, 0.1)`` for ``df``; ``HalfStudentT(10)`` for ``phi``, which is the closer to
        Poisson the larger it is. They speak of the columns as they are given, so that their scales
        should fit: :func:`coremcmc.from_formula` standardizes columns.
    df
        The degrees of freedom of ``student_t``, if they are known; they are learned otherwise.
    **old
        ``prior``, ``intercept_prior``, ``scale_prior``, ``dispersion_prior`` and ``df_prior``,
        which go in the next release, in favour of ``priors``.

    Examples
    --------
    >>> GLM("poisson", priors={"beta": "normal(1)"}).link
    'log'
    """

    intercept: bool = field(default=True, kw_only=True)
    family: str
    link: str | None = field(default=None, kw_only=True)
    priors: Mapping[str, Any] = field(default=Priors(), kw_only=True)
    df: Any = field(default=None, kw_only=True)

    def __init__(
        self,
        family: str,
        *,
        intercept: bool = True,
        link: str | None = None,
        priors: Mapping[str, Any] | None = None,
        df: Any = None,
        **old: Any,
    ):
        known = [found.name for found in _known("family", family, FAMILIES).links]
        if link is not None and link not in known:
            raise ValueError(
                f"link={link!r} does not go with family={family!r}; choose from {', '.join(known)}."
            )
        self._set(intercept=intercept, family=family, link=known[0] if link is None else link)
        self._set(df=self._known_df(df))
        self._set(priors=self._all_priors(with_old_keywords(priors, old)))

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _all_priors(self, given: Mapping[str, Any]) -> Priors:
        """Check the priors that are given, and add those that are not."""
        defaults: dict[str, Any] = {"beta": StudentT(2.5), "Intercept": StudentT(2.5)}
        defaults |= {parameter.name: parameter.prior for parameter in self._learned}
        for name in given:
            if name not in defaults:
                close = difflib.get_close_matches(str(name), defaults, n=1)
                hint = f" Did you mean {close[0]!r}?" if close else " Leave it out."
                raise ValueError(
                    f"priors names {name!r}, which {self._says} does not learn; it learns "
                    f"{', '.join(defaults)}.{hint}"
                )
        found = {name: _prior(name, given.get(name, prior)) for name, prior in defaults.items()}
        if found["Intercept"].length is not None:
            raise ValueError("priors['Intercept'] must have one scale and one location.")
        return Priors(found)

    def _known_df(self, df: Any) -> float | None:
        if df is None:
            return None
        if "df" not in [parameter.name for parameter in self._family.parameters]:
            raise ValueError(f"df belongs to family='student_t', not to {self.family!r}.")
        is_number = isinstance(df, (int, float)) and not isinstance(df, bool)
        if not is_number or not 0 < df < math.inf:
            raise ValueError(
                f"df must be a positive number, or None to learn it, not {df!r}. For a normal "
                "likelihood use family='gaussian'."
            )
        return float(df)

    @property
    def response(self) -> Response:
        """What the response must be."""
        return self._family.response

    @property
    def _family(self) -> Family:
        return FAMILIES[self.family]

    @property
    def _link(self) -> Link:
        return next(link for link in self._family.links if link.name == self.link)

    @property
    def _says(self) -> str:
        """The family in an error message."""
        return f"family={self.family!r}" + ("" if self.df is None else f" with df={self.df:g}")

    @property
    def _learned(self) -> tuple[Parameter, ...]:
        """Positive parameters that are sampled."""
        return tuple(p for p in self._family.parameters if p.name != "df" or self.df is None)

    @property
    def scales(self) -> tuple[str, ...]:
        """Names of the parameters in units of the response."""
        return tuple(parameter.name for parameter in self._learned if parameter.is_scale)

    @property
    def has_independent_prior(self) -> bool:  # type: ignore[override]
        """Whether the position may be lengthened: not where each coefficient has its own prior."""
        return self.priors["beta"].length is None

    def logprior_fn(self, position: Position) -> Float[Array, ""]:
        """Independent priors; those of positive parameters with their Jacobians."""
        beta = position["beta"]
        prior, intercept_prior = self.priors["beta"], self.priors["Intercept"]
        if not self.intercept:
            total = prior.logpdf(beta).sum()
        elif prior.length is None:  # no slice, which a GPU kernel does not know
            is_intercept = jnp.arange(beta.shape[0]) == 0
            terms = (intercept_prior.logpdf(beta), prior.logpdf(beta))
            total = jnp.where(is_intercept, *terms).sum()
        else:
            total = intercept_prior.logpdf(beta[0]) + prior.logpdf(beta[1:]).sum()
        for parameter in self._learned:
            log_density = self.priors[parameter.name].log_density
            total = total + log_density(position[f"log_{parameter.name}"])
        return total

    def pointwise(
        self, eta: Float[Array, " rows"], rows: Rows, position: Position
    ) -> Float[Array, " rows"]:
        """Log-likelihood of each row, as the family has it."""
        if self.df is not None:
            position = {**position, "log_df": jnp.asarray(math.log(self.df), eta.dtype)}
        return self._family.pointwise(eta, rows, position, self._link)

    def prepare_rows(self, rows: Rows) -> Rows:
        """All columns as float64, and what the family computes of them once."""
        return self._family.prepare(super().prepare_rows(rows))

    def check_rows(self, rows: Rows) -> None:
        """A matrix of features, and responses of the family's kind.

        Blocks of the rows come one by one, so that a block with a single class is no fault here.
        """
        super().check_rows(rows)
        self.check_response(rows)

    def check_response(self, rows: Rows) -> None:
        """Responses of the family's kind, and as many coefficients as there are priors."""
        self.response.require("y", rows["y"])
        num_features = rows["x"].shape[1]
        length = self.priors["beta"].length
        if length not in (None, num_features):
            raise ValueError(
                f"priors['beta'] was given for {length} coefficients, but data['x'] has "
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
            position[f"log_{parameter.name}"] = parameter.start(rows["y"]) + jitter
        return position

    def constrain_fn(self, position: Position) -> Mapping[str, Array]:
        """β, and the parameters of the family."""
        others = {p.name: jnp.exp(position[f"log_{p.name}"]) for p in self._learned}
        return {"beta": jnp.asarray(position["beta"]), **others}


def _prior(name: str, given: Any) -> Any:
    """Accept a prior of the right kind, or its text."""
    is_coefficient = name in ("beta", "Intercept")
    kind: type = CoefficientPrior if is_coefficient else PositivePrior
    found = prior_from_text(given) if isinstance(given, str) else given
    if not isinstance(found, kind) or type(found) is kind:
        what = "coefficient" if is_coefficient else "positive parameter"
        example = "normal(2.5)" if is_coefficient else "exponential(1)"
        raise ValueError(
            f"priors[{name!r}] must be the prior of a {what}, such as {example!r}, not {given!r}."
        )
    return found


def _known(argument: str, name: Any, known: Mapping[str, Any]) -> Any:
    if isinstance(name, str) and name in known:
        return known[name]
    close = difflib.get_close_matches(str(name), known, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"{argument}={name!r} is unknown; choose from {', '.join(known)}.{hint}")
