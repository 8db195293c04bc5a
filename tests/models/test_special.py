"""The special functions against extended precision and against their analytic derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats
from jax.extend.core import ClosedJaxpr
from jax.scipy.special import logsumexp, xlogy

from coremcmc.models.special import (
    log,
    log1p,
    log_factorial,
    log_normal_cdf,
    log_rising_factorial,
    log_softplus,
    softplus,
    with_fast_logarithms,
)

# Dense where the functions bend, and out to where exp(x) overflows or underflows.
X = np.concatenate(
    [
        np.linspace(-800.0, 800.0, 4001),
        np.linspace(-50.0, 50.0, 20_001),
        [-745.2, -708.4, -40.0, np.nextafter(-40.0, 0.0), -1e-300, 0.0, 1e-300, 709.8],
    ]
)
FEW_ULPS = 1e-15  # 4.5 units in the last place
TINY = np.finfo(np.float64).tiny  # below it, or where an intermediate is, XLA flushes to zero


def softplus_extended(x):
    return np.logaddexp(np.longdouble(0), np.asarray(x, np.longdouble))


def log_softplus_extended(x):
    """Below −30, log log(1 + u) = log u − u/2 + O(u²) with u = eˣ < 1e-13."""
    x = np.asarray(x, np.longdouble)
    return np.where(x < -30, x - np.exp(x) / 2, np.log(softplus_extended(np.maximum(x, -30))))


def assert_close(actual, expected, rtol, atol=0.0):
    """Compare in extended precision, so that rounding the reference costs nothing."""
    actual = np.asarray(actual, np.longdouble)
    error = np.abs(actual - expected)
    assert np.isfinite(actual).all()
    assert (error <= atol + rtol * np.abs(expected)).all(), (
        error / (np.abs(expected) + TINY)
    ).max()


def test_log_is_exact_to_a_few_units_in_the_last_place_over_all_normal_floats():
    rng = np.random.default_rng(0)
    powers = np.exp2(np.arange(-1022.0, 1024.0))
    x = np.concatenate(
        [
            np.ldexp(rng.uniform(1.0, 2.0, 100_000), rng.integers(-1022, 1024, 100_000)),
            rng.uniform(0.5, 2.0, 100_000),
            powers,
            np.nextafter(powers[1:], 0.0),
            [TINY, np.finfo(np.float64).max, np.sqrt(0.5), np.sqrt(2.0), 1.0],
            1.0 + np.arange(-5, 6) * np.finfo(np.float64).eps,
        ]
    )
    assert_close(jax.jit(log)(x), np.log(x.astype(np.longdouble)), FEW_ULPS)


def test_softplus_is_exact_to_a_few_units_in_the_last_place():
    assert_close(jax.jit(softplus)(X), softplus_extended(X), FEW_ULPS, atol=2 * TINY)


def test_log_softplus_is_exact_to_a_few_units_in_the_last_place():
    # It is zero at log(e − 1): there the error is absolute, of a number near 1.
    near_zero = np.log(np.e - 1) + np.linspace(-1e-6, 1e-6, 1001)
    x = np.concatenate([X, near_zero])
    assert_close(jax.jit(log_softplus)(x), log_softplus_extended(x), FEW_ULPS, atol=FEW_ULPS)


def test_log_factorial_is_log_gamma_of_the_next_number():
    # Near 0! = 1! = 1 terms of size 20 cancel: 1e-14 absolute there, relative elsewhere.
    y = np.concatenate([np.arange(2001.0), np.linspace(0.0, 50.0, 777), [1e4, 1e5, 1e6, 1e9]])
    actual = jax.jit(log_factorial)(y)
    np.testing.assert_allclose(actual, scipy.special.gammaln(y + 1.0), rtol=2e-15, atol=1e-14)


def test_log_factorial_is_the_sum_of_logarithms():
    expected = np.concatenate([[0], np.cumsum(np.log(np.arange(1, 2001, dtype=np.longdouble)))])
    assert_close(jax.jit(log_factorial)(np.arange(2001.0)), expected, rtol=2e-15, atol=1e-14)


def test_derivative_of_softplus_is_the_logistic_function():
    slope = jax.jit(jax.vmap(jax.grad(softplus)))(X)
    assert np.isfinite(slope).all()
    np.testing.assert_allclose(slope, scipy.special.expit(X), rtol=1e-14, atol=TINY)


def test_derivative_of_log_softplus_is_the_logistic_function_over_softplus():
    # Below −30 the ratio is 1 − u/2 + O(u²) with u = eˣ.
    slope = jax.jit(jax.vmap(jax.grad(log_softplus)))(X)
    expected = np.where(
        X < -30,
        1 - np.exp(np.minimum(X, -30)) / 2,
        scipy.special.expit(X) / softplus_extended(np.maximum(X, -30)).astype(float),
    )
    assert np.isfinite(slope).all()
    np.testing.assert_allclose(slope, expected, rtol=1e-14)


@pytest.mark.parametrize("function", [softplus, log_softplus])
@pytest.mark.parametrize("x", [-800.0, 800.0])
def test_second_derivatives_are_finite_and_vanish_far_out(function, x):
    curvature = float(jax.grad(jax.grad(function))(jnp.asarray(x)))
    # softplus'' = σ(1 − σ) ~ e^−|x|; log_softplus'' ~ −1/x² on the right, −e^x/2 on the left.
    expected = -1 / x**2 if (function is log_softplus and x > 0) else 0.0
    assert curvature == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_derivatives_of_log_and_of_log_factorial_are_not_lost_in_the_bits():
    x = np.array([0.3, 1.0, 2.0, 1e3])
    np.testing.assert_allclose(jax.vmap(jax.grad(log))(jnp.asarray(x)), 1 / x, rtol=1e-12)
    np.testing.assert_allclose(
        jax.vmap(jax.grad(log_factorial))(jnp.asarray(x)), scipy.special.digamma(x + 1), rtol=1e-10
    )


def test_log1p_is_exact_to_a_few_units_in_the_last_place():
    x = np.concatenate([np.geomspace(1e-300, 1e300, 20_001), np.linspace(0.0, 3.0, 20_001), [1.0]])
    assert_close(jax.jit(log1p)(x), np.log1p(x.astype(np.longdouble)), FEW_ULPS)
    np.testing.assert_allclose(jax.vmap(jax.grad(log1p))(x), 1 / (1 + x), rtol=1e-15)
    assert np.isnan(log1p(jnp.asarray(np.nan)))


# -- the normal distribution function -------------------------------------------------------------

TAILS = np.concatenate([np.linspace(-37.0, 37.0, 10_001), np.linspace(-40.0, 40.0, 1_001)])


def test_log_normal_cdf_is_that_of_scipy_on_both_tails():
    far = np.concatenate([TAILS, -np.geomspace(1.0, 1e8, 500)])
    actual = np.asarray(jax.jit(log_normal_cdf)(far))
    expected = scipy.special.log_ndtr(far)
    np.testing.assert_allclose(actual, expected, rtol=1e-14, atol=1e-28)


def test_derivatives_of_log_normal_cdf_hold_out_to_forty_and_beyond():
    """Slope φ/Φ = m, and curvature −m (x + m), in extended precision by a continued fraction."""
    x = np.concatenate([TAILS, -np.geomspace(40.0, 1e10, 200)])
    slope = np.asarray(jax.vmap(jax.grad(log_normal_cdf))(x))
    curvature = np.asarray(jax.vmap(jax.grad(jax.grad(log_normal_cdf)))(x))
    u = -x[x < -8].astype(np.longdouble)
    tail = u
    for k in range(300, 1, -1):  # m = u + 1/(u + 2/(u + 3/(u + …)))
        tail = u + k / tail
    assert_close(slope[x < -8], u + 1 / tail, rtol=1e-14)
    assert_close(curvature[x < -8], -(u + 1 / tail) / tail, rtol=1e-11)
    middle = x[x >= -8]
    m = np.exp(scipy.stats.norm.logpdf(middle) - scipy.special.log_ndtr(middle))
    np.testing.assert_allclose(slope[x >= -8], m, rtol=1e-12, atol=TINY)
    np.testing.assert_allclose(curvature[x >= -8], -m * (middle + m), rtol=1e-10, atol=1e-300)


# -- ratios of gamma functions --------------------------------------------------------------------


@pytest.mark.parametrize("a", [1e-8, 0.01, 0.5, 3.0, 1e2, 1e5, 1e9, 1e15, 1e60])
def test_log_rising_factorial_is_the_sum_of_logarithms(a):
    y = np.array([0, 1, 2, 3, 10, 57, 1000])
    terms = [np.log(np.longdouble(a) + np.arange(n, dtype=np.longdouble)).sum() for n in y]
    actual = jax.jit(log_rising_factorial)(jnp.asarray(a), jnp.asarray(y, float))
    assert_close(actual, np.array(terms), rtol=1e-15, atol=1e-15)


def test_log_rising_factorial_by_halves_and_its_derivatives():
    a = np.geomspace(1e-3, 1e3, 50)
    half = np.full(50, 0.5)
    expected = scipy.special.gammaln(a + 0.5) - scipy.special.gammaln(a)
    np.testing.assert_allclose(
        jax.jit(log_rising_factorial)(a, half), expected, rtol=1e-12, atol=1e-12
    )
    for order, reference in ((1, scipy.special.digamma), (2, lambda v: scipy.special.zeta(2, v))):
        function = log_rising_factorial
        for _ in range(order):
            function = jax.grad(function)
        actual = jax.vmap(function)(a, half)
        expected = reference(a + 0.5) - reference(a)
        np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-12)


def test_float32_stays_float32():
    x = np.linspace(-30.0, 30.0, 601, dtype=np.float32)
    for function, expected in (
        (softplus, softplus_extended),
        (log_softplus, log_softplus_extended),
    ):
        actual = function(jnp.asarray(x))
        assert actual.dtype == jnp.float32
        assert_close(actual, expected(x), rtol=1e-6, atol=1e-6)
    positive = np.exp(x)
    np.testing.assert_allclose(log(jnp.asarray(positive)), np.log(positive), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("a", [1e-3, 0.1, 1.0, 30.0, 1e3, 1e6, 1e9])
def test_second_derivative_of_log_rising_factorial_is_a_sum_of_inverse_squares(a):
    y = np.array([0, 1, 2, 5, 40, 10_000])
    exact = [-np.sum((a + np.arange(n, dtype=np.longdouble)) ** -2) for n in y]
    second = jax.vmap(jax.grad(jax.grad(log_rising_factorial)), in_axes=(None, 0))
    found = second(jnp.asarray(a), jnp.asarray(y, float))
    np.testing.assert_allclose(found, np.array(exact, float), rtol=1e-14)


# -- logarithms replaced: same values, same derivatives, same edges --------------------------------

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
