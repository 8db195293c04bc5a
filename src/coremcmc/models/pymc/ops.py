"""JAX functions for PyTensor operations whose own translation is slow, inexact or missing."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from coremcmc.models.special import log_normal_cdf, softplus

__all__ = ["convert"]

_SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)
_ERFCX_OVERFLOWS = -26.0
_SQRT_2, _TWO_OVER_SQRT_PI = float(np.sqrt(2.0)), float(2.0 / np.sqrt(np.pi))


def convert(dispatch: Any, op: Any, node: Any = None, **kwargs: Any) -> Callable[..., Any]:
    """Return a JAX function for an operation: one of ours, or else that of PyTensor's dispatch.

    Raises ``ValueError`` with the name of an operation that has none.
    """
    ours = _OURS.get(type(getattr(op, "scalar_op", op)).__name__)
    if ours is not None:
        function = ours
    else:
        try:
            function = dispatch.jax_funcify(op, node=node, **kwargs)
        except NotImplementedError as error:
            raise ValueError(
                f"the model uses the operation {op}, which PyTensor cannot translate to JAX "
                f"({error}). Write that part of the model with other operations."
            ) from error
    if not hasattr(op, "scalar_op") or hasattr(op, "axis"):
        return function
    dtype = np.dtype(node.outputs[0].dtype)
    is_from_integers = not any("float" in x.dtype for x in node.inputs)
    if not (np.issubdtype(dtype, np.floating) and is_from_integers):
        return function
    # JAX makes 32-bit floats of 32-bit integers, even where floats have 64 bits.
    return lambda *xs: function(*(jnp.asarray(x, dtype) for x in xs))


# PyMC switches between two forms of a function, such as the logarithm of a distribution function,
# of which one is infinite where the other is taken. JAX multiplies its slope by zero, which gives
# NaN if the slope is infinite, too; so the slopes below are zero where the value is infinite.


@jax.custom_jvp
def _log(x: Float[Array, "..."]) -> Float[Array, "..."]:
    return jnp.log(x)


@_log.defjvp
def _log_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    is_positive = x >= _SMALLEST_NORMAL
    return _log(x), jnp.where(is_positive, 1.0 / jnp.where(is_positive, x, 1.0), 0.0) * dx


@jax.custom_jvp
def _log1p(x: Float[Array, "..."]) -> Float[Array, "..."]:
    return jnp.log1p(x)


@_log1p.defjvp
def _log1p_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    is_positive = x > -1.0
    return _log1p(x), jnp.where(is_positive, 1.0 / jnp.where(is_positive, 1.0 + x, 1.0), 0.0) * dx


@jax.custom_jvp
def _erfcx(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """exp(x²) erfc(x)."""
    return 2.0 * jnp.exp(x * x + log_normal_cdf(-_SQRT_2 * x))


@_erfcx.defjvp
def _erfcx_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    is_finite = x > _ERFCX_OVERFLOWS
    inside = jnp.where(is_finite, x, 0.0)
    slope = 2.0 * inside * _erfcx(inside) - _TWO_OVER_SQRT_PI
    return _erfcx(x), jnp.where(is_finite, slope, 0.0) * dx


def _is_positive_definite(matrix: Float[Array, "p p"]) -> Bool[Array, ""]:
    return jnp.isfinite(jnp.linalg.cholesky(matrix)).all()


_OURS: dict[str, Callable[..., Any]] = {
    "Softplus": softplus,  # PyTensor's has an infinite slope in the branch not taken
    "Log": _log,
    "Log1p": _log1p,
    "Erfcx": _erfcx,
    "PosDefMatrix": _is_positive_definite,
}
