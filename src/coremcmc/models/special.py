"""Special functions that the compiler vectorises.

XLA's own float64 ``log``, ``log1p`` and ``lgamma`` on a CPU cost several times an ``exp``. The
functions below are made of ``exp``, divisions and short polynomials, and are exact to a few units
in the last place.

A likelihood written by others calls XLA's logarithms, which take most of its time. It is traced,
and the trace evaluated with those of this module in their place.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Jaxpr
from jaxtyping import Array, Float

from coremcmc.models.jaxpr import compute, evaluate

__all__ = [
    "log",
    "log1p",
    "log_factorial",
    "log_normal_cdf",
    "log_rising_factorial",
    "log_softplus",
    "softplus",
    "standard_normal_logpdf",
    "with_fast_logarithms",
]

_LN2, _SQRT_HALF = 0.6931471805599453, 0.7071067811865476
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD  # the float64 1/√2 as an integer


def _two_atanh(z: Float[Array, "..."], num_terms: int) -> Float[Array, "..."]:
    """2 artanh(z) = log((1 + z) / (1 − z)), by its odd power series."""
    z_squared = z * z
    series = jnp.full_like(z, 1.0 / (2 * num_terms + 1))
    for k in range(num_terms - 1, 0, -1):
        series = series * z_squared + 1.0 / (2 * k + 1)
    return 2.0 * z + 2.0 * z * z_squared * series


def _split(x: Float[Array, "..."]) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Return e and m with x = 2^e m and m in [√½, √2), of a positive, normal x."""
    bits = jax.lax.bitcast_convert_type(x, jnp.int64)
    exponent = (bits - _SQRT_HALF_BITS) >> 52
    mantissa = jax.lax.bitcast_convert_type(bits - (exponent << 52), jnp.float64)
    return exponent.astype(jnp.float64), mantissa


@jax.custom_jvp
def log(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """Logarithm of positive, normal floats (anything else gives a meaningless number)."""
    if x.dtype != jnp.float64:
        return jnp.log(x)
    exponent, mantissa = _split(x)
    return exponent * _LN2 + _two_atanh((mantissa - 1.0) / (mantissa + 1.0), 10)


@log.defjvp
def _log_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    return log(x), dx / x


@jax.custom_jvp
def log1p(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """log(1 + x) of x ≥ 0, as exact for small x as for large."""
    small = jnp.minimum(x, 1.0)
    return jnp.where(x >= 1.0, log(1.0 + x), _two_atanh(small / (2.0 + small), 16))


@log1p.defjvp
def _log1p_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    return log1p(x), dx / (1.0 + x)


@jax.custom_jvp
def softplus(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """log(1 + eˣ), without overflow."""
    u = jnp.exp(-jnp.abs(x))
    return jnp.maximum(x, 0.0) + _two_atanh(u / (2.0 + u), 16)


@softplus.defjvp
def _softplus_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    return softplus(x), jax.nn.sigmoid(x) * dx


@jax.custom_jvp
def log_softplus(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """log(log(1 + eˣ)), which is x itself far on the left, where eˣ underflows."""
    return jnp.where(x > -40.0, log(softplus(x)), x)


@log_softplus.defjvp
def _log_softplus_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    right = jnp.maximum(x, -40.0)
    slope = jnp.where(x > -40.0, jax.nn.sigmoid(right) / softplus(right), 1.0)
    return log_softplus(x), slope * dx


_HALF_LOG_2PI = 0.9189385332046727
# Bernoulli numbers over 2k (2k − 1): Stirling's series for log Γ.
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def log_factorial(y: Float[Array, "..."]) -> Float[Array, "..."]:
    """log y! = log Γ(y + 1) of y ≥ 0, by Stirling's series eight places up."""
    below = y + 1.0
    product = below
    for k in range(1, 8):
        product = product * (below + k)
    z = below + 8.0
    inverse = 1.0 / z
    return (z - 0.5) * log(z) - z + _HALF_LOG_2PI + _stirling(inverse) - log(product)


def _stirling(inverse: Float[Array, "..."]) -> Float[Array, "..."]:
    """What Stirling's formula lacks of log Γ(z), z = 1/inverse."""
    series = jnp.zeros_like(inverse)
    for coefficient in reversed(_STIRLING):
        series = series * inverse * inverse + coefficient
    return series * inverse


_FOURS = ((0, 1, 2, 3), (4, 5, 6, 7))  # a product of all eight would overflow at a = 1e38


@jax.custom_jvp
@jax.jit  # traced once, not at each of the many places that a derivative visits
def log_rising_factorial(a: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, "..."]:
    """log Γ(a + y) − log Γ(a) of a > 0 and y ≥ 0, without the cancellation at large a.

    Stirling's series eight places up; its leading terms are subtracted by hand. y is data: no
    derivative is taken with respect to it.
    """
    z, ratio = a + 8.0, jnp.ones_like(a + y)
    for four in _FOURS:
        above, below = ratio, jnp.ones_like(a)
        for k in four:
            above, below = above * (a + y + k), below * (a + k)
        ratio = above / below
    leading = y * log(z) + (z + y - 0.5) * log1p(y / z) - y
    return leading + _stirling(1.0 / (z + y)) - _stirling(1.0 / z) - log(ratio)


@log_rising_factorial.defjvp
def _log_rising_factorial_jvp(primals: Any, tangents: Any) -> Any:
    (a, y), (da, _) = primals, tangents
    return log_rising_factorial(a, y), _digamma_difference(a, y) * da


@jax.custom_jvp
@jax.jit
def _digamma_difference(a: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, "..."]:
    """ψ(a + y) − ψ(a): the derivative of the above."""
    z, total = a + 8.0, jnp.zeros_like(a + y)
    for four in _FOURS:  # Σ 1/(a + k)(a + y + k) over a common denominator
        above, below = jnp.zeros_like(a + y), jnp.ones_like(a + y)
        for k in four:
            above, below = above * (a + y + k) + below * (1.0 / (a + k)), below * (a + y + k)
        total = total + above / below
    leading = log1p(y / z) + 0.5 * y / (z * (z + y))
    return leading + _stirling_slope(1.0 / (z + y)) - _stirling_slope(1.0 / z) + y * total


@_digamma_difference.defjvp
def _digamma_difference_jvp(primals: Any, tangents: Any) -> Any:
    (a, y), (da, _) = primals, tangents
    return _digamma_difference(a, y), _trigamma_difference(a, y) * da


@jax.jit
def _trigamma_difference(a: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, "..."]:
    """ψ'(a + y) − ψ'(a): the second derivative."""
    total = jnp.zeros_like(a + y)
    for k in range(8):  # 1/(a + y + k)² − 1/(a + k)², without the cancellation
        low, high = 1.0 / (a + k), 1.0 / (a + y + k)
        total = total - low * high * (low + high)
    low, high = 1.0 / (a + 8.0), 1.0 / (a + y + 8.0)
    leading = total - low * high * (1.0 + 0.5 * (low + high))
    return y * leading + _stirling_bend(high) - _stirling_bend(low)


def _stirling_bend(inverse: Float[Array, "..."]) -> Float[Array, "..."]:
    """Second derivative of Stirling's series with respect to z = 1/inverse."""
    series = jnp.zeros_like(inverse)
    for k in reversed(range(len(_STIRLING))):
        series = series * inverse * inverse + (2 * k + 1) * (2 * k + 2) * _STIRLING[k]
    return series * inverse * inverse * inverse


def _stirling_slope(inverse: Float[Array, "..."]) -> Float[Array, "..."]:
    """Derivative of Stirling's series with respect to z = 1/inverse."""
    series = jnp.zeros_like(inverse)
    for k in reversed(range(len(_STIRLING))):
        series = series * inverse * inverse - (2 * k + 1) * _STIRLING[k]
    return series * inverse * inverse


def standard_normal_logpdf(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """log N(x; 0, 1), in operations that a GPU kernel knows."""
    return -0.5 * (x * x) - _HALF_LOG_2PI


_SQRT_2_OVER_PI = 0.7978845608028654
# (1 + 2x) exp(x²) erfc(x) on x ≥ 0 as a polynomial in (x − 3)/(x + 3): its Chebyshev expansion,
# computed with 160 digits, ends below the last place of a float64 at degree 22.
_ERFCX = (
    1.2530080582697296, -0.13562110612457576, -0.04756229435342028, 0.12964515870228335,
    -0.11927366341676246, 0.0683080273563862, -0.023770514891504106, 0.002529391667188187,
    0.0018886900975868704, -0.0007798312796609344, -0.00010515831238414909,
    0.00012509531060166806, 4.9441228888620625e-06, -2.0089997597292724e-05,
    -7.187860531175186e-07, 3.4542945531364686e-06, 3.3669548427095464e-07,
    -5.963982411631245e-07, -1.205398502494385e-07, 8.765877682985017e-08,
    2.7843303070559006e-08, -7.641958177373454e-09, -3.1812620685893003e-09,
)  # fmt: skip


def _erfcx(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """exp(x²) erfc(x) of x ≥ 0."""
    t = (x - 3.0) / (x + 3.0)
    series = jnp.full_like(x, _ERFCX[-1])
    for coefficient in reversed(_ERFCX[:-1]):
        series = series * t + coefficient
    return series / (1.0 + 2.0 * x)


@jax.custom_jvp
def log_normal_cdf(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """log Φ(x), Φ being the standard normal distribution function, on both tails."""
    distance = jnp.abs(x)
    scaled = 0.5 * _erfcx(distance * _SQRT_HALF)
    half_square = 0.5 * distance * distance
    beyond = scaled * jnp.exp(-half_square)  # Φ(−|x|)
    return jnp.where(x < 0.0, log(scaled) - half_square, -_two_atanh(beyond / (2.0 - beyond), 16))


@jax.custom_jvp
def _inverse_mills(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """Slope of log Φ: φ(x) / Φ(x)."""
    distance = jnp.abs(x)
    scaled = _erfcx(distance * _SQRT_HALF)
    bell = jnp.exp(-0.5 * distance * distance)
    return _SQRT_2_OVER_PI * jnp.where(x < 0.0, 1.0 / scaled, bell / (2.0 - bell * scaled))


@_inverse_mills.defjvp
def _inverse_mills_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    ratio = _inverse_mills(x)
    # On the left the ratio is about −x; far out its asymptotic series says what the sum leaves.
    inverse = 1.0 / jnp.maximum(-x, 100.0)
    square = inverse * inverse
    far = inverse * (1.0 - square * (2.0 - square * (10.0 - 74.0 * square)))
    return ratio, -ratio * jnp.where(x < -100.0, far, x + ratio) * dx


@log_normal_cdf.defjvp
def _log_normal_cdf_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    return log_normal_cdf(x), _inverse_mills(x) * dx


# -- logarithms of other people's functions -------------------------------------------------------

_SMALLEST = 2.2250738585072014e-308  # the smallest normal float64


def _within(x: Float[Array, "..."], value: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return a logarithm of x where x is positive, normal and finite, else what XLA returns."""
    value = jnp.where(x < _SMALLEST, -jnp.inf, jnp.where(x < jnp.inf, value, x))
    return jnp.where(x < 0.0, jnp.nan, value)


@jax.custom_jvp
def _log_anywhere(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """:func:`log`, with XLA's values at zero, infinity and below zero."""
    return _within(x, log(x))


@_log_anywhere.defjvp
def _log_anywhere_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    return _log_anywhere(x), dx / x


@jax.custom_jvp
def _log1p_anywhere(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """log(1 + x) of any x; one series where :func:`log1p`, whose values fits rest on, has two."""
    one_more = 1.0 + x
    exponent, mantissa = _split(one_more)
    is_small = (x > _SQRT_HALF - 1.0) & (x < 2.0 * _SQRT_HALF - 1.0)
    exponent = jnp.where(is_small, 0.0, exponent)
    part = jnp.where(is_small, x, mantissa - 1.0)
    whole = jnp.where(is_small, 2.0 + x, mantissa + 1.0)
    value = exponent * _LN2 + _two_atanh(part / whole, 10)
    return _within(one_more, value)


@_log1p_anywhere.defjvp
def _log1p_anywhere_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    return _log1p_anywhere(x), dx / (1.0 + x)


_LOGARITHMS = {"log": _log_anywhere, "log1p": _log1p_anywhere}
_CALLS = ("jit", "pjit")


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

    def original(*inputs: Any) -> list[Any]:
        return list(compute(equation, inputs))

    @jax.custom_jvp
    def fast(*inputs: Any) -> Any:
        return _evaluate(inner.jaxpr, inner.consts, inputs)

    @fast.defjvp
    def fast_jvp(primals: Any, tangents: Any) -> Any:
        def slopes(primals: Any, tangents: Any) -> Any:
            return jax.jvp(original, primals, tangents)[1]

        return fast(*primals), with_fast_logarithms(slopes)(primals, tangents)

    return fast
