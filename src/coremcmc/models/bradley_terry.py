"""The Bradley-Terry model of paired comparisons, on the Elo scale."""

from dataclasses import dataclass
from typing import ClassVar

import jax
from jaxtyping import Array, Float

from coremcmc.base import LinearPredictorModel, Position, PRNGKey, Rows
from coremcmc.models.row_checks import require_binary, require_indices
from coremcmc.models.special import softplus, standard_normal_logpdf

__all__ = ["BradleyTerry"]


@dataclass(frozen=True)
class BradleyTerry(LinearPredictorModel):
    """y_n ~ Bernoulli(1 / (1 + exp((θ_v − θ_h) / 400))) with θ ~ N(0, I).

    Rows are ``{"home", "away", "y"}``: the two teams, 0 … num_teams − 1, and 1 if home won.
    """

    num_teams: int
    has_independent_prior: ClassVar[bool] = True
    fields: ClassVar[tuple[str, ...]] = ("home", "away", "y")

    def logprior_fn(self, position: Position) -> Float[Array, ""]:
        """Independent standard normals."""
        return standard_normal_logpdf(position["theta"]).sum()

    def predictor(self, position: Position, rows: Rows) -> Float[Array, " rows"]:
        """η = (θ_h − θ_v) / 400."""
        theta = position["theta"]
        return (theta[rows["home"]] - theta[rows["away"]]) / 400.0

    def pointwise(
        self, eta: Float[Array, " rows"], rows: Rows, position: Position
    ) -> Float[Array, " rows"]:
        """y η − log(1 + e^η)."""
        return rows["y"] * eta - softplus(eta)

    def prepare_rows(self, rows: Rows) -> Rows:
        """Team numbers stay integers; the outcome becomes a float."""
        return {**rows, "y": rows["y"].astype(float)}

    def initial_position(self, rng_key: PRNGKey, rows: Rows) -> Position:
        """θ ~ N(0, I)."""
        return {"theta": jax.random.normal(rng_key, (self.num_teams,))}

    def check_rows(self, rows: Rows) -> None:
        """Teams exist and outcomes are 0 or 1."""
        for side in ("home", "away"):
            require_indices(side, rows[side], self.num_teams)
        require_binary("y", rows["y"])
