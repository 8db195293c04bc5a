"""What a JAX function computes, and from which arguments, read off its trace.

A likelihood may have a linear predictor and not say so. Its trace is then followed as long as it
stays linear in the parameters: through x @ β, effects[group], sums of such. Where that ends in one
number for each row, and the parameters meet the rows nowhere else, it is the predictor, and what
follows is pointwise.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal
from jaxtyping import Array, Float, PyTree

from coremcmc.base import Position, Rows

__all__ = [
    "LinearSplit",
    "compute",
    "dependencies",
    "digest",
    "evaluate",
    "split_linear",
]

Sources = frozenset[int]

_CALLS = ("jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call", "remat2")


def dependencies(function: Callable[..., PyTree], *arguments: PyTree) -> PyTree:
    """Return, for each leaf of the output, the numbers of the arguments that it is computed from.

    Nothing is computed. An argument of which only the shape is used does not count. Of a loop or a
    branch, every output counts as computed from every input.
    """
    traced, shape = jax.make_jaxpr(function, return_shape=True)(*arguments)
    inputs = [frozenset({i}) for i, x in enumerate(arguments) for _ in jax.tree.leaves(x)]
    return jax.tree.unflatten(jax.tree.structure(shape), _outputs(traced.jaxpr, inputs))


def _outputs(jaxpr: Jaxpr, inputs: list[Sources]) -> list[Sources]:
    known: dict[Any, Sources] = dict(zip(jaxpr.invars, inputs, strict=True))

    def sources(variable: Any) -> Sources:
        return frozenset() if isinstance(variable, Literal) else known.get(variable, frozenset())

    for equation in jaxpr.eqns:
        given = [sources(variable) for variable in equation.invars]
        inner = _called(equation)
        if inner is None or len(inner.invars) != len(given):
            found = [frozenset().union(*given)] * len(equation.outvars)
        else:
            found = _outputs(inner, given)
        known.update(zip(equation.outvars, found, strict=True))
    return [sources(variable) for variable in jaxpr.outvars]


def _called(equation: Any) -> Jaxpr | None:
    """Return the function that an equation calls once, on all of its inputs; None for others."""
    if equation.primitive.name not in _CALLS:
        return None
    inner = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
    inner = inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner
    return inner if isinstance(inner, Jaxpr) else None


_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")


def digest(function: Callable[..., PyTree], *arguments: PyTree) -> str:
    """Return a digest of what a function computes of arguments of these shapes.

    It is the same in every process. Constants count with their values, wherever the function has
    them from.
    """
    traced = jax.make_jaxpr(function)(*arguments)
    content = hashlib.blake2b(_ADDRESS.sub("", str(traced.jaxpr)).encode(), digest_size=12)
    for constant in _constants(traced):
        is_key = jnp.issubdtype(jnp.result_type(constant), jax.dtypes.prng_key)
        array = np.asarray(jax.random.key_data(constant) if is_key else constant)
        content.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return content.hexdigest()


def _constants(traced: Any) -> Iterator[Any]:
    if isinstance(traced, ClosedJaxpr):
        yield from traced.consts
        traced = traced.jaxpr
    for equation in traced.eqns:
        yield from (v.val for v in equation.invars if isinstance(v, Literal))
        inner = jax.tree.leaves(equation.params, is_leaf=lambda x: isinstance(x, _JAXPRS))
        for called in inner:
            if isinstance(called, _JAXPRS):
                yield from _constants(called)


_JAXPRS = (ClosedJaxpr, Jaxpr)


def evaluate(
    jaxpr: Jaxpr,
    constants: Sequence[Any],
    arguments: Sequence[Any],
    step: Callable[[Any, list[Any]], Sequence[Any] | None],
) -> dict[Any, Any]:
    """Compute the variables of a trace, equation by equation.

    ``step(equation, inputs)`` returns the outputs of an equation; where it returns None, the
    equation is left out, and so is all that needs it.
    """
    known: dict[Any, Any] = dict(zip(jaxpr.constvars, constants, strict=True))
    known.update(zip(jaxpr.invars, arguments, strict=True))
    for equation in jaxpr.eqns:
        if all(isinstance(v, Literal) or v in known for v in equation.invars):
            inputs = [v.val if isinstance(v, Literal) else known[v] for v in equation.invars]
            outputs = step(equation, inputs)
            if outputs is not None:
                known.update(zip(equation.outvars, outputs, strict=True))
    known.update({v: v.val for v in jaxpr.outvars if isinstance(v, Literal)})
    return known


def compute(equation: Any, inputs: Sequence[Any]) -> Sequence[Any]:
    """Compute the outputs of one equation."""
    parameters = equation.primitive.get_bind_params(equation.params)
    if isinstance(parameters, tuple):  # in earlier versions of JAX: the functions that it calls
        functions, parameters = parameters
        inputs = [*functions, *inputs]
    outputs = equation.primitive.bind(*inputs, **parameters)
    return outputs if equation.primitive.multiple_results else [outputs]


# -- the linear predictor -------------------------------------------------------------------------

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

        def step(equation: Any, inputs: Any) -> Any:
            is_needed = self.nonlinear.isdisjoint(equation.outvars)
            return compute(equation, inputs) if is_needed else None

        known = evaluate(self.jaxpr, self.constants, jax.tree.leaves((position, rows)), step)
        return known[self.eta]

    def pointwise(
        self, eta: Float[Array, " rows"], rows: Rows, position: Position
    ) -> Float[Array, " rows"]:
        """Return the log-likelihoods given the predictor."""

        def step(equation: Any, inputs: Any) -> Any:
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
