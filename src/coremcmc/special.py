"""Special functions that the compiler vectorises.

XLA's own float64 ``log``, ``log1p`` and ``lgamma`` on a CPU cost several times an ``exp``. The
functions below are made of ``exp``, divisions and short polynomials, and are exact to a few units
in the last place.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

__all__ = ["log", "log_factorial", "log_softplus", "softplus", "standard_normal_logpdf"]

_LN2 = 0.6931471805599453
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD  # the float64 1/√2 as an integer


def _two_atanh(z: Float[Array, "..."], num_terms: int) -> Float[Array, "..."]:
    """2 artanh(z) = log((1 + z) / (1 − z)), by its odd power series."""
    z_squared = z * z
    series = jnp.full_like(z, 1.0 / (2 * num_terms + 1))
    for k in range(num_terms - 1, 0, -1):
        series = series * z_squared + 1.0 / (2 * k + 1)
    return 2.0 * z + 2.0 * z * z_squared * series


@jax.custom_jvp
def log(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """Logarithm of positive, normal floats (anything else gives a meaningless number)."""
    if x.dtype != jnp.float64:
        return jnp.log(x)
    bits = jax.lax.bitcast_convert_type(x, jnp.int64)
    exponent = (bits - _SQRT_HALF_BITS) >> 52
    mantissa = jax.lax.bitcast_convert_type(bits - (exponent << 52), jnp.float64)  # in [√½, √2)
    return exponent.astype(x.dtype) * _LN2 + _two_atanh((mantissa - 1.0) / (mantissa + 1.0), 10)


@log.defjvp
def _log_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return log(x), dx / x


@jax.custom_jvp
def softplus(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """log(1 + eˣ), without overflow."""
    u = jnp.exp(-jnp.abs(x))
    return jnp.maximum(x, 0.0) + _two_atanh(u / (2.0 + u), 16)


@softplus.defjvp
def _softplus_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return softplus(x), jax.nn.sigmoid(x) * dx


@jax.custom_jvp
def log_softplus(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """log(log(1 + eˣ)), which is x itself far on the left, where eˣ underflows."""
    return jnp.where(x > -40.0, log(softplus(x)), x)


@log_softplus.defjvp
def _log_softplus_jvp(primals, tangents):
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
    series = jnp.zeros_like(z)
    for coefficient in reversed(_STIRLING):
        series = series * inverse * inverse + coefficient
    return (z - 0.5) * log(z) - z + _HALF_LOG_2PI + series * inverse - log(product)


def standard_normal_logpdf(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """log N(x; 0, 1), in operations that a GPU kernel knows."""
    return -0.5 * (x * x) - _HALF_LOG_2PI
