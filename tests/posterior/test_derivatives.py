"""Derivatives of the weighted sum, against JAX's own derivatives of the plain expression."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from coremcmc.models import (
    BradleyTerry,
    FunctionModel,
    GaussianLocation,
    LinearRegression,
    LogisticRegression,
    PoissonRegression,
)
from coremcmc.posterior.derivatives import (
    SumDerivatives,
    SumOfLogLikelihoods,
    taylor_terms,
    weighted_derivatives,
)

NUM_ROWS = 17


def _heavy_tails(position, rows):
    """A Student regression with a free scale, which no linear predictor states."""
    scale = jnp.exp(position["scale"])
    residual = (rows["y"] - rows["x"] @ position["slope"]) / scale
    return -2.0 * jnp.log1p(residual**2 / 3.0) - position["scale"]


def problems():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((NUM_ROWS, 3))
    real, binary = rng.standard_normal(NUM_ROWS), rng.integers(0, 2, NUM_ROWS)
    home = rng.integers(0, 4, NUM_ROWS)
    games = {"home": home, "away": (home + 1 + rng.integers(0, 3, NUM_ROWS)) % 4, "y": binary}
    student = FunctionModel(
        logprior=lambda p: -0.5 * jnp.sum(p["slope"] ** 2) - 0.5 * p["scale"] ** 2,
        loglikelihood=_heavy_tails,
        initial=lambda key: {
            "slope": jax.random.normal(key, (3,)),
            "scale": jax.random.normal(jax.random.fold_in(key, 1)),
        },
    )
    return {
        "linear": (LinearRegression(), {"x": x, "y": real}),
        "linear without intercept": (LinearRegression(intercept=False), {"x": x, "y": real}),
        "logistic": (LogisticRegression(), {"x": x, "y": binary}),
        "Poisson": (PoissonRegression(), {"x": x, "y": rng.poisson(2.0, NUM_ROWS)}),
        "Bradley-Terry": (BradleyTerry(4), games),
        "Gaussian": (GaussianLocation(), {"x": x}),
        "two functions": (student, {"x": x, "y": real}),
    }


PROBLEMS = problems()


@pytest.fixture(params=PROBLEMS)
def problem(request):
    model, rows = PROBLEMS[request.param]
    rows = model.prepare_rows(jax.tree.map(jnp.asarray, rows))
    position = model.initial_position(jax.random.key(1), rows)
    # Bradley-Terry divides by 400: without large positions its curvature would not be seen.
    scale = 400.0 if request.param == "Bradley-Terry" else 1.0
    return model, jax.tree.map(lambda x: scale * x, position), rows


derivatives = jax.jit(weighted_derivatives, static_argnums=0)


@functools.partial(jax.jit, static_argnums=0)
def plain(model, position, rows, weights):
    """Value, gradient and Hessian by JAX of Σ w_n ℓ_n as a mathematician writes it."""
    flat, unravel = ravel_pytree(position)

    def total(flat):
        return jnp.sum(weights * model.loglikelihood_fn(unravel(flat), rows))

    return total(flat), jax.grad(total)(flat), jax.jacfwd(jax.grad(total))(flat)


def test_value_gradient_and_hessian_are_those_of_the_plain_sum(problem):
    model, position, rows = problem
    weights = jnp.asarray(np.random.default_rng(2).gamma(1.0, 3.0, NUM_ROWS)).at[4].set(0.0)
    found = derivatives(model, position, rows, weights)
    value, gradient, hessian = plain(model, position, rows, weights)
    assert np.abs(hessian).max() > 0
    for got, expected in zip(found, (value, gradient, hessian), strict=True):
        size = np.abs(expected).max()
        np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-12 * size)
    np.testing.assert_allclose(found.hessian, found.hessian.T, rtol=1e-12, atol=1e-12)


def test_the_scale_of_a_linear_regression_is_mixed_with_its_coefficients():
    """The block that a derivative through η alone would miss; by hand."""
    model, rows = PROBLEMS["linear"]
    rows = jax.tree.map(jnp.asarray, rows)
    position = {"beta": jnp.array([0.3, -1.0, 0.5, 2.0]), "log_sigma2": jnp.array(0.7)}
    found = derivatives(model, position, rows, jnp.ones(NUM_ROWS))
    design = np.column_stack([np.ones(NUM_ROWS), rows["x"]])
    residual = np.asarray(rows["y"]) - design @ np.asarray(position["beta"])
    precision = np.exp(-0.7)
    np.testing.assert_allclose(found.hessian[:4, :4], -precision * design.T @ design, rtol=1e-12)
    np.testing.assert_allclose(found.hessian[:4, 4], -precision * design.T @ residual, rtol=1e-12)
    np.testing.assert_allclose(
        found.hessian[4, 4], -0.5 * precision * residual @ residual, rtol=1e-12
    )
    np.testing.assert_allclose(
        found.gradient[4], 0.5 * (precision * residual @ residual - NUM_ROWS), rtol=1e-12
    )


class _Broken(LogisticRegression):
    """A linear predictor whose terms are not finite in rows where y is −1."""

    def pointwise(self, eta, rows, position):
        terms = super().pointwise(eta, rows, position)
        return jnp.where(rows["y"] == -1, jnp.nan, jnp.where(rows["y"] == -2, -jnp.inf, terms))


@pytest.mark.parametrize("is_linear", [True, False])
@pytest.mark.parametrize("bad", [-1.0, -2.0], ids=["NaN", "infinite"])
def test_rows_of_weight_zero_count_for_nothing(is_linear, bad):
    broken = _Broken()
    model = (
        broken
        if is_linear
        else FunctionModel(
            broken.logprior_fn, broken.loglikelihood_fn, lambda key: {"beta": jnp.zeros(4)}
        )
    )
    rng = np.random.default_rng(3)
    rows = {"x": jnp.asarray(rng.standard_normal((5, 3))), "y": jnp.array([1.0, 0, bad, 1, 0])}
    position = {"beta": jnp.asarray(rng.standard_normal(4))}
    weights = jnp.array([2.0, 0.5, 0.0, 3.0, 1.0])
    found = derivatives(model, position, rows, weights)
    kept = jnp.array([0, 1, 3, 4])
    fewer = {name: column[kept] for name, column in rows.items()}
    expected = derivatives(model, position, fewer, weights[kept])
    for got, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-12)
    counted = derivatives(model, position, rows, weights.at[2].set(1.0))
    assert not np.isfinite(counted.value)


@pytest.mark.parametrize("problem", ["linear", "Bradley-Terry"], indirect=True)
def test_a_block_sums_over_its_rows_and_not_over_its_padding(problem):
    model, position, rows = problem
    is_row = jnp.arange(NUM_ROWS) < 11
    found = jax.jit(SumDerivatives(model))(position, rows, is_row)
    for got, expected in zip(
        found, plain(model, position, rows, jnp.where(is_row, 1.0, 0.0)), strict=True
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-12 * np.abs(expected).max())
    shifts = np.linspace(-0.5, 0.5, 21)  # more than one batch of the map
    positions = jax.tree.map(lambda x: np.stack([np.asarray(x) + s for s in shifts]), position)
    totals = jax.jit(SumOfLogLikelihoods(model))(positions, rows, is_row)
    terms = jax.jit(jax.vmap(lambda p: model.loglikelihood_fn(p, rows)[:11].sum()))(positions)
    np.testing.assert_allclose(totals, terms, rtol=1e-12)


def test_taylor_terms_are_the_second_order_polynomial_of_each_row(problem):
    model, centre, rows = problem
    flat, unravel = ravel_pytree(centre)
    step = np.random.default_rng(5).standard_normal(flat.size) * (0.3 * np.abs(flat).max())

    def terms(flat):
        return model.loglikelihood_fn(unravel(flat), rows)

    @jax.jit
    def by_explicit_derivatives(flat):
        return terms(flat + step), terms(flat), jax.jacfwd(terms)(flat), jax.hessian(terms)(flat)

    @jax.jit
    def along_the_line(scale):
        return taylor_terms(model, centre, unravel(flat + scale * step), rows)

    there, here, first, second = by_explicit_derivatives(flat)
    expected = here + first @ step + 0.5 * np.einsum("nij,i,j->n", second, step, step)
    values, polynomial = along_the_line(1.0)
    np.testing.assert_allclose(values, there, rtol=1e-10)
    np.testing.assert_allclose(polynomial, expected, rtol=1e-9, atol=1e-11)

    def remainder(scale):
        values, polynomial = along_the_line(scale)
        return np.abs(values - polynomial).max()

    if isinstance(model, GaussianLocation):
        assert remainder(1.0) < 1e-12  # it is its own polynomial
    else:  # of third order: half the step, an eighth of the remainder
        assert remainder(0.02) / remainder(0.04) == pytest.approx(1 / 8, rel=0.2)
