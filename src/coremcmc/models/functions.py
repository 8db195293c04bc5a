"""A model from two JAX functions that the user wrote."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from jaxtyping import Array

from coremcmc.base import Model, Position, PRNGKey, Rows
from coremcmc.identity import describe

__all__ = ["FunctionModel"]


@dataclass(frozen=True)
class FunctionModel(Model):
    """A model from a user's functions.

    Numbers, arrays, lists and mappings that the functions read by a global name belong to the
    model: where one has changed, a fit sees it, and an earlier run cannot be resumed.

    Parameters
    ----------
    logprior
        ``logprior(position)``: log density of the prior, a scalar.
    loglikelihood
        ``loglikelihood(position, rows)``: one value per row.
    initial
        ``initial(rng_key)``: where a chain starts.
    constrain
        ``constrain(position)``: named parameters for output; the position itself if omitted.
    """

    logprior: Callable[[Position], Array]
    loglikelihood: Callable[[Position, Rows], Array]
    initial: Callable[[Array], Position]
    constrain: Callable[[Position], dict[str, Array]] | None = None

    def logprior_fn(self, position: Position) -> Array:
        """The user's log prior; its shape is checked by ``fit``."""
        return self.logprior(position)

    def loglikelihood_fn(self, position: Position, rows: Rows) -> Array:
        """The user's log-likelihoods; their shape is checked by ``fit``."""
        return self.loglikelihood(position, rows)

    def initial_position(self, rng_key: PRNGKey, rows: Rows) -> Position:
        """The user's start."""
        return self.initial(rng_key)

    def constrain_fn(self, position: Position) -> Mapping[str, Array]:
        """The user's names, or the position's own."""
        return (
            super().constrain_fn(position) if self.constrain is None else self.constrain(position)
        )

    def describe(self) -> str:
        """Names of the functions with digests of their code: their addresses change."""
        parts = (self.logprior, self.loglikelihood, self.initial, self.constrain)
        return f"FunctionModel{describe(parts)}"
