"""Logarithms replaced by faster ones: same values, same derivatives, same edges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import ClosedJaxpr
from jax.scipy.special import logsumexp, xlogy

from coremcmc.models.fast_logarithms import with_fast_logarithms

rng = np.random.default_rng(0)
POSITIVE = np.concatenate(
    [
        10.0 ** rng.uniform(-307, 308, 20_000),
        1.0 + np.concatenate([1, -1] * 10.0 ** rng.uniform(-16, -1, (5_000, 2))),
        [1.0, np.sqrt(0.5), np.sqrt(2.0), 2.2250738585072014e-308, 1.7976931348623157e308],
    ]
)
ABOVE_MINUS_ONE = np.concatenate(
    [
        10.0 ** rng.uniform(-300, 308, 20_000),
        -(10.0 ** rng.uniform(-300, 0, 20_000)),
        rng.uniform(-1.0, 3.0, 20_000),
        [np.sqrt(0.5) - 1.0, np.sqrt(2.0) - 1.0, -1.0 + 2.0**-53, 0.0],
    ]
)


@pytest.mark.parametrize(
    ("function", "expected", "points"),
    [(jnp.log, np.log, POSITIVE), (jnp.log1p, np.log1p, ABOVE_MINUS_ONE)],
)
def test_exact_to_a_few_units_in_the_last_place(function, expected, points):
    found = np.asarray(jax.jit(with_fast_logarithms(function))(points))
    exact = expected(points)
    error = np.abs(found - exact) / np.maximum(np.abs(exact), 1e-300)
    assert error.max() < 5e-16


@pytest.mark.parametrize("function", [jnp.log, jnp.log1p])
def test_edges_are_those_of_the_original(function):
    points = jnp.asarray([0.0, -0.0, -1.0, -2.0, np.inf, -np.inf, np.nan, 1e-310, -1e-310])
    found = jax.jit(with_fast_logarithms(function))(points)
    np.testing.assert_array_equal(found, jax.jit(function)(points))


FUNCTIONS = {
    "softplus": jax.nn.softplus,
    "log_sigmoid": jax.nn.log_sigmoid,
    "logaddexp": lambda x: jnp.logaddexp(x, 2.0 - x),
    "logsumexp": lambda x: logsumexp(jnp.stack([x, x**2]), axis=0),
    "log_softmax": lambda x: jax.nn.log_softmax(jnp.stack([x, 2.0 * x]), axis=0).sum(0),
    "xlogy": lambda x: xlogy(jnp.asarray([0.0, 1.0, 2.0, 0.0, 1.0, 3.0]), x**2 + 1.0),
    "log of a log": lambda x: jnp.log(jax.nn.softplus(x)),
    "jitted": jax.jit(lambda x: jnp.log1p(x**2)),
    "no logarithm": lambda x: jax.nn.relu(x) * jnp.sin(x),
    "in a loop": lambda x: jax.lax.scan(lambda c, _: (jnp.log1p(c**2), c), x, None, 2)[0],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_of_all_orders_are_those_of_the_original(name):
    function = FUNCTIONS[name]
    fast = with_fast_logarithms(function)
    points = jnp.asarray([-30.0, -1.3, 0.0, 1e-9, 0.7, 25.0])

    def derivatives(f):
        def total(x):
            return f(x).sum()

        def along(x):
            return jax.jvp(f, (x,), (jnp.ones_like(x),))[1]

        return f(points), jax.grad(total)(points), along(points), jax.jacfwd(along)(points)

    found = jax.jit(lambda: derivatives(fast))()
    expected = jax.jit(lambda: derivatives(function))()
    for value, original in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, original, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"in a loop"}))
def test_no_slow_logarithm_is_left(name):
    points = jnp.linspace(-1.0, 2.0, 6)
    fast = with_fast_logarithms(FUNCTIONS[name])
    for function in (fast, jax.grad(lambda x: fast(x).sum())):
        assert not {"log", "log1p"} & set(primitives(jax.make_jaxpr(function)(points).jaxpr))


def primitives(jaxpr):
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        for value in equation.params.values():
            if isinstance(value, ClosedJaxpr):
                yield from primitives(value.jaxpr)


def test_narrow_floats_are_left_alone():
    points = jnp.asarray([0.5, 2.0], jnp.float32)
    found = with_fast_logarithms(jnp.log)(points)
    assert found.dtype == jnp.float32
    np.testing.assert_array_equal(found, jnp.log(points))


def test_pytrees_in_and_out():
    fast = with_fast_logarithms(lambda a, b: {"sum": jnp.log(a["x"]) + b, "n": a["n"] + 1})
    found = fast({"x": jnp.asarray(2.0), "n": jnp.asarray(3)}, jnp.ones(2))
    np.testing.assert_allclose(found["sum"], np.log(2.0) + 1.0)
    assert int(found["n"]) == 4
