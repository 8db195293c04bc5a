"""A NumPyro model as a function of its rows: its other arguments are fixed.

Log densities are NumPyro's own. What is added is only the choice of sites: the potential energy
of a model from which its observed rows are hidden is the prior.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from coremcmc.base import Position, Rows, wide

__all__ = ["Program", "bind", "is_valid", "log_terms", "parameters_of"]


@dataclass(frozen=True, eq=False)
class Program:
    """A NumPyro model whose only free arguments are its rows.

    Attributes
    ----------
    function
        The model as the user wrote it, handlers around it included.
    positional
        Names of the arguments that it takes by position only.
    constants
        The arguments that are no rows.
    """

    function: Callable
    positional: tuple[str, ...]
    constants: Mapping[str, Any]

    def __call__(self, rows: Mapping[str, Any]) -> Any:
        """Run the model."""
        arguments = {**self.constants, **rows}
        first = [arguments.pop(name) for name in self.positional if name in arguments]
        return self.function(*first, **arguments)

    def trace(self, position: Position, rows: Rows) -> dict[str, Any]:
        """Run the model at an unconstrained position; return its sites by name."""
        from numpyro import handlers
        from numpyro.distributions.transforms import biject_to

        def constrained(site: Any) -> Any:
            if site["type"] == "sample" and site["name"] in position:
                return biject_to(site["fn"].support)(position[site["name"]])
            return None

        placed = handlers.substitute(self, substitute_fn=constrained)
        return handlers.trace(placed).get_trace(rows)

    def logdensity(
        self, position: Position, rows: Rows, hidden: Iterable[str] = ()
    ) -> Float[Array, ""]:
        """Log density of an unconstrained position, but for the hidden sites.

        It includes the Jacobians of the maps from unconstrained to constrained values.
        """
        from numpyro import handlers
        from numpyro.infer.util import potential_energy

        shown = handlers.block(self, hide=list(hidden))
        return -jnp.asarray(potential_energy(shown, (rows,), {}, position), float)


def log_terms(site: Mapping[str, Any]) -> Array:
    """Return the log density of a site, entry by entry, scaled as its handlers say."""
    terms = jnp.asarray(site["fn"].log_prob(site["value"]))
    return terms if site["scale"] is None else site["scale"] * terms


def is_valid(site: Mapping[str, Any]) -> Any:
    """Whether an observed site's entries are in its support; None where that is not known."""
    from numpyro import distributions

    distribution, masks = site["fn"], []
    while isinstance(distribution, distributions.MaskedDistribution):
        masks.append(distribution._mask)
        distribution = distribution.base_dist
    if not site["is_observed"] or jnp.size(site["value"]) == 0:  # the latter: numpyro.factor
        return None
    try:
        valid = distribution.support(site["value"])
    except (NotImplementedError, TypeError):
        return None
    for mask in masks:
        valid = valid | ~jnp.asarray(mask)
    return valid


def bind(function: Any, rows: Mapping[str, Any], constants: Mapping[str, Any]) -> Program:
    """Match rows and constants with the model's arguments; raise ``ValueError`` on a mismatch."""
    if not callable(function):
        raise ValueError(
            f"model must be a NumPyro model, a function with sample statements, not {function!r}."
        )
    both = sorted(set(rows) & set(constants))
    if both:
        raise ValueError(
            f"the argument(s) {', '.join(both)} are both in data and in constants. Rows belong in "
            "data, everything else in constants."
        )
    parameters = parameters_of(function).values()
    named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    given = {*rows, *constants}
    missing = [p.name for p in named if p.default is p.empty and p.name not in given]
    if missing:
        raise ValueError(
            f"the model needs the argument(s) {', '.join(missing)}. Give what has one entry per "
            "row in data, everything else in constants."
        )
    unknown = sorted(given - {p.name for p in named})
    if unknown and not any(p.kind is p.VAR_KEYWORD for p in parameters):
        names = ", ".join(p.name for p in named)
        raise ValueError(
            f"the model has no argument(s) {', '.join(unknown)}; it takes {names}. A model "
            "conditioned from outside gets its observations as an argument like this: "
            "lambda x, y: numpyro.handlers.condition(model, data={'y': y})(x)."
        )
    positional = tuple(p.name for p in named if p.kind is p.POSITIONAL_ONLY)
    with jax.enable_x64(True):
        fixed = {name: jax.tree.map(_fixed, value) for name, value in constants.items()}
    return Program(function, positional, fixed)


def parameters_of(function: Callable) -> Mapping[str, inspect.Parameter]:
    """Return the arguments of a model, seen through the handlers around it."""
    try:
        return inspect.signature(_inside(function)).parameters
    except (TypeError, ValueError):  # a callable that does not say
        anything = inspect.Parameter("arguments", inspect.Parameter.VAR_KEYWORD)
        return {"arguments": anything}


def _inside(function: Any) -> Any:
    from numpyro.primitives import Messenger

    while isinstance(function, Messenger) and function.fn is not None:
        function = function.fn
    return function


def _fixed(value: Any) -> Any:
    """Copy an array, so that it does not change any more, with 64 bits a number."""
    if isinstance(value, jax.Array):
        return value.astype(wide(value.dtype))
    if isinstance(value, np.generic) or not hasattr(value, "__array__"):
        return value
    array = np.array(value)
    array = array.astype(wide(array.dtype))
    array.setflags(write=False)
    return array
