"""A generalized linear model of a formula: standardized inside, the user's scale outside."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Array, Float

from coremcmc.base import LinearPredictorModel, Position, PRNGKey, Rows
from coremcmc.identity import describe
from coremcmc.models.glm import GLM

__all__ = ["FormulaModel"]


@dataclass(frozen=True)
class FormulaModel(LinearPredictorModel):
    """What :func:`coremcmc.from_formula` makes: a :class:`coremcmc.GLM` of standardized columns.

    Rows are ``{"x", "y"}``, the columns of the design (without a column of ones) and the response,
    on the user's scale. The model subtracts locations and divides by scales; its position and its
    priors speak of what results, while :meth:`constrain_fn` gives a number of its own to each
    coefficient, on the user's scale.

    Attributes
    ----------
    glm
        The model of the standardized columns.
    formula
        As the user wrote it.
    names
        The columns of ``x``.
    location, scale
        Of each column. Locations are zero where there is no intercept.
    response_location, response_scale
        Of ``y``; 0 and 1 but for families of real responses.
    """

    glm: GLM
    formula: str
    names: tuple[str, ...]
    location: tuple[float, ...]
    scale: tuple[float, ...]
    response_location: float = 0.0
    response_scale: float = 1.0
    fields: ClassVar[tuple[str, ...]] = ("x", "y")

    def __post_init__(self) -> None:
        if not len(self.names) == len(self.location) == len(self.scale):
            raise ValueError(
                f"names, location and scale must have the same length, not {len(self.names)}, "
                f"{len(self.location)} and {len(self.scale)}."
            )

    @property
    def has_independent_prior(self) -> bool:  # type: ignore[override]
        """Whether the position may be lengthened."""
        return self.glm.has_independent_prior

    @property
    def coefficient_names(self) -> tuple[str, ...]:
        """Names of the entries of ``beta``, the intercept's first."""
        return ("Intercept", *self.names) if self.glm.intercept else self.names

    def logprior_fn(self, position: Position) -> Float[Array, ""]:
        """Priors of the standardized coefficients."""
        return self.glm.logprior_fn(position)

    def predictor(self, position: Position, rows: Rows) -> Float[Array, " rows"]:
        """η = [1 x] β, of standardized columns."""
        return self.glm.predictor(position, rows)

    def pointwise(
        self, eta: Float[Array, " rows"], rows: Rows, position: Position
    ) -> Float[Array, " rows"]:
        """Log density of the response on the user's scale."""
        return self.glm.pointwise(eta, rows, position) - math.log(self.response_scale)

    def prepare_rows(self, rows: Rows) -> Rows:
        """Standardize."""
        x = (rows["x"].astype(float) - np.array(self.location)) / np.array(self.scale)
        y = (rows["y"].astype(float) - self.response_location) / self.response_scale
        return self.glm.prepare_rows({"x": x, "y": y})

    def initial_position(self, rng_key: PRNGKey, rows: Rows) -> Position:
        """Small coefficients."""
        return self.glm.initial_position(rng_key, rows)

    def check_rows(self, rows: Rows) -> None:
        """The columns of the formula, and responses of the family's kind."""
        shape = rows["x"].shape
        if len(shape) != 2 or shape[1] != len(self.names):
            raise ValueError(
                f"data['x'] must have a column for each of {len(self.names)} names, but its shape "
                f"is {shape}. Take model and data from the same call of from_formula."
            )
        self.glm.check_response(rows)

    def constrain_fn(self, position: Position) -> Mapping[str, Array]:
        """Coefficients by name on the user's scale, then the family's parameters."""
        found = dict(self.glm.constrain_fn(position))
        beta = found.pop("beta")
        slopes = self.response_scale * (beta[-len(self.names) :] if self.names else beta[:0])
        slopes = slopes / np.array(self.scale)
        named = {}
        if self.glm.intercept:
            shift = slopes @ np.array(self.location)
            named["Intercept"] = self.response_location + self.response_scale * beta[0] - shift
        named.update((name, slopes[i]) for i, name in enumerate(self.names))
        for name, value in found.items():
            value = value * self.response_scale if name in self.glm.scales else value
            named[name if name not in named else f"family.{name}"] = value
        return named

    def describe(self) -> str:
        """Return the formula, the model, and digests of names and scales."""
        numbers = (*self.location, *self.scale, self.response_location, self.response_scale)
        digests = f"{describe(np.array(self.names, 'U'))}, {describe(np.array(numbers))}"
        return f"FormulaModel({self.formula!r}, {self.glm.describe()}, {digests})"
