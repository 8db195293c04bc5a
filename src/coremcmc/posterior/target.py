"""The weighted posterior that the Markov chains target."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from coremcmc.base import LinearPredictorModel, Model, Position, Rows

__all__ = ["Target"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Target:
    """The coreset posterior π_w(θ) ∝ exp(Σ_m w_m ℓ_m(θ)) π_0(θ) at given weights.

    A pytree and a callable, so that BlackJAX samplers take it as their ``logdensity_fn``.

    Attributes
    ----------
    model
        The prior and the likelihood.
    rows
        The coreset's M rows.
    weights
        w, one a row, non-negative.
    """

    model: Model = field(metadata={"static": True})
    rows: Rows
    weights: Float[Array, " M"]

    def __call__(self, position: Position) -> Float[Array, ""]:
        """Log density up to a constant."""
        return self.logdensity(position, self.loglikelihoods(position))

    def loglikelihoods(self, position: Position) -> Float[Array, " M"]:
        """Log-likelihood ℓ_m(θ) of each coreset row, unweighted."""
        return self.model.loglikelihood_fn(position, self.rows).astype(float)

    def log_potential(self, loglikelihoods: Float[Array, " M"]) -> Float[Array, ""]:
        """Σ_m w_m ℓ_m, where a row of weight zero counts for nothing even at ℓ = −∞."""
        return jnp.where(self.weights > 0, loglikelihoods, 0.0) @ self.weights

    def logdensity(
        self, position: Position, loglikelihoods: Float[Array, " M"]
    ) -> Float[Array, ""]:
        """Log density of a position whose per-row terms are known."""
        return self.log_potential(loglikelihoods) + self.model.logprior_fn(position)

    def along(
        self, position: Position, direction: Position
    ) -> Callable[[Float[Array, ""]], Float[Array, ""]]:
        """Restrict the log density to the line θ + t·direction, as a function of t.

        For a linear predictor the one matrix product happens here; the function is O(M).
        """
        model, rows = self.model, self.rows

        def point(t: Any) -> Any:
            return jax.tree.map(lambda x, d: x + t * d, position, direction)

        if isinstance(model, LinearPredictorModel):
            both = jax.tree.map(lambda x, d: jnp.stack([x, d]), position, direction)
            here, slope = jax.vmap(model.predictor, in_axes=(0, None))(both, rows)

            def logdensity(t: Any) -> Any:
                there = point(t)
                return self.logdensity(there, model.pointwise(here + t * slope, rows, there))

            return logdensity
        return lambda t: self(point(t))
