"""A function's own logarithms replaced by those that the compiler vectorises.

A likelihood written by others calls XLA's float64 ``log`` and ``log1p``, which on a CPU take most
of its time. The function is traced, and the trace evaluated with our own in their place. They
agree with XLA's to a few units in the last place, everywhere.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Jaxpr
from jaxtyping import Array, Float

from coremcmc.models.jaxpr import compute, evaluate
from coremcmc.models.special import _two_atanh as two_atanh

__all__ = ["with_fast_logarithms"]

_LN2, _SQRT_HALF = 0.6931471805599453, 0.7071067811865476
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD  # the float64 1/√2 as an integer
_SMALLEST = 2.2250738585072014e-308  # the smallest normal float64


def with_fast_logarithms(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that computes the same. Its arguments are pytrees of arrays."""

    @functools.wraps(function)
    def fast(*arguments: Any) -> Any:
        traced, shape = jax.make_jaxpr(function, return_shape=True)(*arguments)
        values = _evaluate(traced.jaxpr, traced.consts, jax.tree.leaves(arguments))
        return jax.tree.unflatten(jax.tree.structure(shape), values)

    return fast


def _evaluate(jaxpr: Jaxpr, constants: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
    known = evaluate(jaxpr, constants, arguments, _step)
    return [known[variable] for variable in jaxpr.outvars]


def _step(equation: Any, inputs: list[Any]) -> Sequence[Any]:
    if _is_logarithm(equation):
        return [_LOGARITHMS[equation.primitive.name](jnp.asarray(inputs[0]))]
    if equation.primitive.name in _CALLS:
        inner = equation.params["jaxpr"]
        return _evaluate(inner.jaxpr, inner.consts, inputs)
    if _has_own_rule(equation) and _has_logarithm(equation.params["call_jaxpr"].jaxpr):
        return _with_own_rule(equation)(*inputs)
    return compute(equation, inputs)


def _is_logarithm(equation: Any) -> bool:
    return equation.primitive.name in _LOGARITHMS and equation.outvars[0].aval.dtype == jnp.float64


def _has_own_rule(equation: Any) -> bool:
    """Whether an equation has a derivative of its own, and floats alone to take it by."""
    is_float = [jnp.issubdtype(v.aval.dtype, jnp.floating) for v in equation.invars]
    return equation.primitive.name == "custom_jvp_call" and all(is_float)


def _has_logarithm(jaxpr: Jaxpr) -> bool:
    return any(
        _is_logarithm(equation)
        or (equation.primitive.name in _CALLS and _has_logarithm(equation.params["jaxpr"].jaxpr))
        or (_has_own_rule(equation) and _has_logarithm(equation.params["call_jaxpr"].jaxpr))
        for equation in jaxpr.eqns
    )


def _with_own_rule(equation: Any) -> Callable[..., Any]:
    """Return what an equation computes, with fast logarithms, and its own derivative, too."""
    inner = equation.params["call_jaxpr"]

    def original(*inputs):
        return list(compute(equation, inputs))

    @jax.custom_jvp
    def fast(*inputs):
        return _evaluate(inner.jaxpr, inner.consts, inputs)

    @fast.defjvp
    def fast_jvp(primals, tangents):
        def slopes(primals, tangents):
            return jax.jvp(original, primals, tangents)[1]

        return fast(*primals), with_fast_logarithms(slopes)(primals, tangents)

    return fast


def _split(x: Float[Array, "..."]) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Return e and m with x = 2^e m and m in [√½, √2), of a positive, normal x."""
    bits = jax.lax.bitcast_convert_type(x, jnp.int64)
    exponent = (bits - _SQRT_HALF_BITS) >> 52
    mantissa = jax.lax.bitcast_convert_type(bits - (exponent << 52), jnp.float64)
    return exponent.astype(jnp.float64), mantissa


@jax.custom_jvp
def _log(x: Float[Array, "..."]) -> Float[Array, "..."]:
    exponent, mantissa = _split(x)
    value = exponent * _LN2 + two_atanh((mantissa - 1.0) / (mantissa + 1.0), 10)
    return _within(x, value)


@_log.defjvp
def _log_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return _log(x), dx / x


@jax.custom_jvp
def _log1p(x: Float[Array, "..."]) -> Float[Array, "..."]:
    one_more = 1.0 + x
    exponent, mantissa = _split(one_more)
    is_small = (x > _SQRT_HALF - 1.0) & (x < 2.0 * _SQRT_HALF - 1.0)
    exponent = jnp.where(is_small, 0.0, exponent)
    part = jnp.where(is_small, x, mantissa - 1.0)
    whole = jnp.where(is_small, 2.0 + x, mantissa + 1.0)
    value = exponent * _LN2 + two_atanh(part / whole, 10)
    return _within(one_more, value)


@_log1p.defjvp
def _log1p_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return _log1p(x), dx / (1.0 + x)


def _within(x: Float[Array, "..."], value: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return a logarithm of x where x is positive, normal and finite, else what XLA returns."""
    value = jnp.where(x < _SMALLEST, -jnp.inf, jnp.where(x < jnp.inf, value, x))
    return jnp.where(x < 0.0, jnp.nan, value)


_LOGARITHMS = {"log": _log, "log1p": _log1p}
_CALLS = ("jit", "pjit")
