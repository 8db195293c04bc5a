"""What a JAX function computes, and from which arguments, read off its trace."""

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal
from jaxtyping import PyTree

__all__ = ["compute", "dependencies", "digest", "evaluate"]

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
