"""The controlled estimate of the sum over all rows is unbiased for any centre, and quiet near it.

Subsamples are those of the data source itself, by the thousand; every test of a mean has a
false-alarm probability of at most 1e-4 over the choice of seeds.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from coremcmc.data import MemoryData
from coremcmc.gradient.control_variate import (
    ControlVariate,
    controlled_totals,
    row_spreads,
)
from coremcmc.gradient.kl import plain_totals
from coremcmc.models import FunctionModel, LinearRegression, LogisticRegression, PoissonRegression
from coremcmc.posterior.derivatives import weighted_derivatives
from coremcmc.posterior.mode import laplace_approximation
from tests.standard_errors import assert_unbiased, is_biased

pytestmark = pytest.mark.statistical

N = 90


@functools.cache
def problem(kind):
    """Rows in order of their size, a few of them far out: what could go wrong, would be seen."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.standard_normal((N, 2)), axis=0)
    x[-3:] *= 4.0
    eta = x @ [1.0, -0.5] + 0.3
    model, y = {
        "logistic": (LogisticRegression(), rng.random(N) < 1 / (1 + np.exp(-eta))),
        "Poisson": (PoissonRegression(), rng.poisson(np.log1p(np.exp(eta)))),
        "linear": (LinearRegression(), eta + rng.standard_normal(N)),
        "functions": (student_model(), eta + rng.standard_t(3, N)),
    }[kind]
    rows = {"x": x, "y": np.asarray(y, float)}
    start = model.initial_position(jax.random.key(0), jax.tree.map(jnp.asarray, rows))
    return model, rows, laplace_approximation(model, MemoryData(rows), start)


def student_model():
    def loglikelihood(beta, rows):
        return -2.0 * jnp.log1p((rows["y"] - rows["x"] @ beta[1:] - beta[0]) ** 2 / 3.0)

    return FunctionModel(
        lambda beta: -0.5 * jnp.sum(beta**2), loglikelihood, lambda key: jnp.zeros(3)
    )


def control_at(model, rows, centre, exact):
    prepared = model.prepare_rows(jax.tree.map(jnp.asarray, rows))
    found = jax.jit(weighted_derivatives, static_argnums=0)(model, centre, prepared, jnp.ones(N))
    kept = jax.tree.map(lambda x: x[np.asarray(exact)], prepared)
    return ControlVariate(centre, found.gradient, found.hessian, kept, jnp.asarray(exact))


def positions_near(laplace, size, scale=1.0, seed=1):
    unravel = ravel_pytree(laplace.position)[1]
    draws = laplace.draw(np.random.default_rng(seed), size)
    each = [unravel(x) for x in laplace.mean + scale * (draws - laplace.mean)]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *each)


def exact_totals(model, rows, positions):
    prepared = model.prepare_rows(jax.tree.map(jnp.asarray, rows))
    total = jax.jit(jax.vmap(lambda p: model.loglikelihood_fn(p, prepared).sum()))
    totals = np.asarray(total(positions))
    return totals - totals.mean()


def estimates(model, rows, control, positions, size, num_replicates=4_000):
    feed = MemoryData(rows).feed()

    def one(key):
        indices, stored = feed.draw(key, jnp.zeros((), int), size)
        subsample = model.prepare_rows(stored)
        is_exact = control.has_exact(indices)
        found = controlled_totals(model, control, positions, subsample, is_exact, N)
        plain = plain_totals(model, positions, subsample, N)
        return found.value - found.value.mean(), plain, found

    keys = jax.random.split(jax.random.key(2), num_replicates)
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(one))(keys))


def bad_centre(laplace):
    flat, unravel = ravel_pytree(laplace.position)
    return unravel(flat + 12.0 * np.asarray(laplace.sd) * np.array([1, -1] * 2)[: flat.size])


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        ("logistic", "mode"),
        ("logistic", "bad centre"),
        ("linear", "bad centre"),
        ("functions", "mode"),
    ],
)
def test_unbiased_over_subsamples(kind, where):
    """Differences of the total between chains, with a third of the rows exact."""
    model, rows, laplace = problem(kind)
    centre = laplace.position if where == "mode" else bad_centre(laplace)
    exact = np.sort(np.random.default_rng(3).choice(N, 30, replace=False))
    control = control_at(model, rows, centre, exact)
    positions = positions_near(laplace, 3, scale=2.0)
    found, plain, _ = estimates(model, rows, control, positions, size=7)
    truth = exact_totals(model, rows, positions)
    assert_unbiased(found[:, :2], truth[:2])  # the third is minus their sum
    assert_unbiased(plain[:, :2], truth[:2])
    assert found.std() > 1e-8, "nothing was estimated"


def test_a_polynomial_that_is_not_the_datas_would_be_seen():
    """The power of the test above: a gradient that is off by one sd's worth."""
    model, rows, laplace = problem("logistic")
    control = control_at(model, rows, laplace.position, np.arange(5))
    control = control._replace(gradient=control.gradient + 1.0)
    positions = positions_near(laplace, 3)
    found, _, _ = estimates(model, rows, control, positions, size=7)
    assert is_biased(found[:, :2], exact_totals(model, rows, positions)[:2])


def test_exact_rows_that_count_twice_would_be_seen():
    model, rows, laplace = problem("logistic")
    control = control_at(model, rows, bad_centre(laplace), np.arange(60, N))
    positions = positions_near(laplace, 3, scale=2.0)
    feed = MemoryData(rows).feed()

    def twice(key):
        subsample = model.prepare_rows(feed.draw(key, jnp.zeros((), int), 7)[1])
        none = jnp.zeros(7, bool)
        value = controlled_totals(model, control, positions, subsample, none, N).value
        return value - value.mean()

    found = jax.jit(jax.vmap(twice))(jax.random.split(jax.random.key(2), 4_000))
    assert is_biased(np.asarray(found)[:, :2], exact_totals(model, rows, positions)[:2])


@pytest.mark.parametrize("where", ["mode", "bad centre"])
@pytest.mark.parametrize("num_exact", [1, 30])
def test_a_subsample_of_all_rows_gives_the_exact_value(where, num_exact):
    model, rows, laplace = problem("logistic")
    centre = laplace.position if where == "mode" else bad_centre(laplace)
    exact = np.sort(np.random.default_rng(4).choice(N, num_exact, replace=False))
    control = control_at(model, rows, centre, exact)
    positions = positions_near(laplace, 4, scale=3.0)
    found, _, _ = estimates(model, rows, control, positions, size=N, num_replicates=3)
    truth = exact_totals(model, rows, positions)
    np.testing.assert_allclose(found, np.broadcast_to(truth, found.shape), atol=1e-9)


def test_where_all_rows_are_exact_any_subsample_will_do():
    model, rows, laplace = problem("Poisson")
    control = control_at(model, rows, bad_centre(laplace), np.arange(N))
    positions = positions_near(laplace, 3)
    found, _, totals = estimates(model, rows, control, positions, size=2, num_replicates=20)
    truth = exact_totals(model, rows, positions)
    np.testing.assert_allclose(found, np.broadcast_to(truth, found.shape), atol=1e-9)
    np.testing.assert_array_equal(totals.remaining_variance, 0.0)


@pytest.mark.parametrize("kind", ["logistic", "functions"])
def test_near_the_mode_the_noise_is_far_smaller(kind):
    model, rows, laplace = problem(kind)
    positions = positions_near(laplace, 3)
    none, some = (
        control_at(model, rows, laplace.position, np.asarray(exact))
        for exact in ([0], largest_remainders(model, rows, laplace))
    )
    found, plain, totals = estimates(model, rows, none, positions, size=9)
    better, _, _ = estimates(model, rows, some, positions, size=9)
    assert found.var(axis=0).mean() < 0.1 * plain.var(axis=0).mean()
    assert better.var(axis=0).mean() < found.var(axis=0).mean()
    reported = totals.remaining_variance.mean() / totals.plain_variance.mean()
    assert reported < 0.1


def largest_remainders(model, rows, laplace):
    spreads = row_spreads(model, laplace.position, positions_near(laplace, 32), rows)
    return np.sort(np.argsort(np.asarray(spreads[1]))[-10:])


def test_row_spreads_are_variances_over_the_positions():
    model, rows, laplace = problem("Poisson")
    positions = positions_near(laplace, 16)
    prepared = model.prepare_rows(jax.tree.map(jnp.asarray, rows))
    terms = jax.jit(jax.vmap(lambda p: model.loglikelihood_fn(p, prepared)))
    values = np.asarray(terms(positions))
    variance, remainder = row_spreads(model, laplace.position, positions, rows)
    np.testing.assert_allclose(variance, values.var(axis=0), rtol=1e-9)
    assert (np.asarray(remainder) >= 0).all()
    assert np.asarray(remainder).sum() < 0.1 * np.asarray(variance).sum()


@pytest.mark.parametrize("exact", [[0], [89], [0, 89], [3, 4, 5, 40, 88], list(range(N))])
def test_every_index_is_told_exact_or_not(exact):
    control = ControlVariate({}, jnp.zeros(0), jnp.zeros((0, 0)), {}, jnp.asarray(exact))
    found = control.has_exact(jnp.arange(N))
    np.testing.assert_array_equal(found, np.isin(np.arange(N), exact))
    shuffled = np.random.default_rng(5).permutation(N).astype(np.int32)
    np.testing.assert_array_equal(
        control.has_exact(jnp.asarray(shuffled)), np.isin(shuffled, exact)
    )
