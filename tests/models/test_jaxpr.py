"""What a function computes, and from which arguments."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coremcmc.models.jaxpr import dependencies, digest

ONES = np.ones(3)
NONE, FIRST, SECOND, BOTH = (frozenset(s) for s in ((), (0,), (1,), (0, 1)))


def loop(a, b):
    return jax.lax.scan(lambda carry, x: (carry + x, carry), 0.0, a)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda a, b: (a, b, a + b, 3.0), (FIRST, SECOND, BOTH, NONE)),
        (lambda a, b: jnp.zeros_like(b) + a, FIRST),
        (lambda a, b: a * b.shape[0], FIRST),
        (lambda a, b: jnp.where(b > 0, a, 0.0), BOTH),
        (jax.jit(lambda a, b: [jnp.sin(a), jax.nn.softplus(b)]), [FIRST, SECOND]),
        (jax.checkpoint(lambda a, b: (a * 2, b * 2)), (FIRST, SECOND)),
        (lambda a, b: jax.nn.relu(a), FIRST),
        (loop, (FIRST, FIRST)),
        (lambda a, b: jax.lax.cond(b[0] > 0, jnp.sin, jnp.cos, a), BOTH),
    ],
)  # fmt: skip
def test_dependencies(function, expected):
    assert dependencies(function, ONES, ONES) == expected


def test_leaves_of_an_argument_are_one():
    found = dependencies(lambda tree, b: (tree["x"] + tree["y"], b), {"x": ONES, "y": ONES}, ONES)
    assert found == (FIRST, SECOND)


def shifted(constant):
    return lambda x: jnp.sin(x) + constant


@pytest.mark.parametrize(
    ("function", "other"),
    [
        (shifted(1.0), shifted(1.0 + 1e-15)),
        (shifted(np.arange(3.0)), shifted(np.arange(3.0) + 1e-15)),
        (shifted(jnp.arange(3.0)), shifted(jnp.arange(3.0) + 1e-15)),
        (jax.jit(shifted(np.arange(3.0))), jax.jit(shifted(np.arange(1.0, 4.0)))),
        (jnp.sin, jnp.cos),
    ],
)
def test_a_digest_tells_functions_apart(function, other):
    assert digest(function, ONES) != digest(other, ONES)


def test_a_digest_is_of_what_is_computed():
    assert digest(shifted(2.0), ONES) == digest(lambda y: jnp.sin(y) + 2.0, ONES)
    assert digest(shifted(2.0), ONES) != digest(shifted(2.0), np.ones(4))
