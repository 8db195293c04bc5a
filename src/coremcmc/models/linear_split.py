"""The linear predictor of a likelihood that does not say that it has one.

The log-likelihoods are traced, and the trace is followed as long as it stays linear in the
parameters: through x @ β, effects[group], sums of such. Where that ends in one number for each row,
and the parameters meet the rows nowhere else, it is the predictor, and what follows is pointwise.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import Jaxpr, Literal
from jaxtyping import Array, Float

from coremcmc.base import Position, Rows
from coremcmc.models.jaxpr import compute, evaluate

__all__ = ["LinearSplit", "split_linear"]

_MOVES = ("reshape", "broadcast_in_dim", "squeeze", "expand_dims", "transpose", "slice", "rev")
_UNARY = (*_MOVES, "neg", "reduce_sum", "cumsum", "convert_element_type", "copy", "copy_p")
_SUMS = ("add", "sub", "add_any", "concatenate")
_PRODUCTS = ("mul", "dot_general")
_OF_FIRST = ("div", "gather", "dynamic_slice")
_SPREADING = ("dot_general", "gather", "dynamic_slice")


class LinearSplit(NamedTuple):
    """A trace of the log-likelihoods, cut at the linear predictor."""

    jaxpr: Jaxpr
    constants: Any
    eta: Any
    nonlinear: frozenset[Any]

    def predictor(self, position: Position, rows: Rows) -> Float[Array, " rows"]:
        """Return the linear predictor of each row."""

        def step(equation, inputs):
            is_needed = self.nonlinear.isdisjoint(equation.outvars)
            return compute(equation, inputs) if is_needed else None

        known = evaluate(self.jaxpr, self.constants, jax.tree.leaves((position, rows)), step)
        return known[self.eta]

    def pointwise(
        self, eta: Float[Array, " rows"], rows: Rows, position: Position
    ) -> Float[Array, " rows"]:
        """Return the log-likelihoods given the predictor."""

        def step(equation, inputs):
            return [eta] if equation.outvars == [self.eta] else compute(equation, inputs)

        known = evaluate(self.jaxpr, self.constants, jax.tree.leaves((position, rows)), step)
        return known[self.jaxpr.outvars[0]]


def split_linear(
    function: Callable[[Position, Rows], Array], position: Position, rows: Rows
) -> LinearSplit | None:
    """Split log-likelihoods at their linear predictor; None where there is none.

    Parameters
    ----------
    function
        ``function(position, rows)``: one value per row. Calls of jitted functions in its trace
        are not followed.
    position, rows
        For their shapes.
    """
    traced = jax.make_jaxpr(function)(position, rows)
    jaxpr = traced.jaxpr
    parameters = jaxpr.invars[: len(jax.tree.leaves(position))]
    of_rows = _reached(jaxpr, jaxpr.invars[len(parameters) :])
    dependent = _reached(jaxpr, parameters)
    linear = set(parameters)
    for equation in jaxpr.eqns:
        used = [v for v in _variables(equation) if v in dependent]
        if used and linear.issuperset(used) and _is_linear(equation, used):
            linear.update(equation.outvars)
    shape = (jax.tree.leaves(rows)[0].shape[0],)
    candidates = [v for equation in jaxpr.eqns for v in equation.outvars if v in linear & of_rows]
    for eta in reversed(candidates):  # of y η and η, the latter, on which the other depends
        if eta.aval.shape == shape and eta.aval.dtype == jnp.float64:
            beside = _reached(jaxpr, parameters, eta)
            if not any(_meets(equation, beside, linear, of_rows) for equation in jaxpr.eqns):
                return LinearSplit(jaxpr, traced.consts, eta, frozenset(dependent - linear))
    return None


def _variables(equation: Any) -> list[Any]:
    return [v for v in equation.invars if not isinstance(v, Literal)]


def _reached(jaxpr: Jaxpr, sources: list[Any], barrier: Any = None) -> set[Any]:
    """Return the variables that are computed from the sources, other than through the barrier."""
    found = set(sources)
    for equation in jaxpr.eqns:
        if not found.isdisjoint(_variables(equation)) and equation.outvars != [barrier]:
            found.update(equation.outvars)
    return found


def _meets(equation: Any, beside: set[Any], linear: set[Any], of_rows: set[Any]) -> bool:
    """Whether parameters meet rows in an equation, beside the predictor and not linearly.

    A number such as a scale may do so; what has one value per row, or is spread over the rows, may
    not.
    """
    if linear.issuperset(equation.outvars):
        return False
    used = beside.intersection(_variables(equation))
    spreads = equation.primitive.name in _SPREADING and not of_rows.isdisjoint(equation.outvars)
    return bool(used) and (spreads or not of_rows.isdisjoint(used & linear))


def _is_linear(equation: Any, used: list[Any]) -> bool:
    """Whether an equation is linear, without a constant, in the used inputs together."""
    name, inputs = equation.primitive.name, equation.invars
    if name in _UNARY:
        return equation.outvars[0].aval.dtype == inputs[0].aval.dtype
    if name in _SUMS:
        return len(used) == len(inputs)
    if name in _PRODUCTS:
        return len(used) == 1
    if name in _OF_FIRST:
        return len(used) == 1 and used[0] is inputs[0]
    if name == "select_n":
        return len(used) == len(inputs) - 1 and inputs[0] not in used
    return False
