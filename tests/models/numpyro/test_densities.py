"""The adapter against NumPyro itself: log densities, derivatives, constrained values."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from jax.extend.core import ClosedJaxpr, Jaxpr
from jax.flatten_util import ravel_pytree
from numpyro.infer.util import constrain_fn, log_likelihood, potential_energy
from scipy import stats

import coremcmc
from coremcmc.posterior.derivatives import taylor_terms, weighted_derivatives
from tests.models.numpyro.numpyro_models import (
    CASES,
    COUNTS,
    NUM_ROWS,
    REALS,
    X,
    adapted,
    linear,
    normals,
)

NUM_POSITIONS = 3
SINGLE = ("logistic", "matrix_of_slopes", "rows_last", "masked", "weighted")  # tried on one row
DIFFERENTIATED = ("logistic", "poisson_without_plate", "simplex_and_ordered", "not_centred")


def random_positions(model):
    rng = np.random.default_rng(7)
    shapes = dict(model.sites.latents)
    return {k: jnp.asarray(rng.uniform(-1.5, 1.5, (NUM_POSITIONS, *s))) for k, s in shapes.items()}


def some_rows(model, data, index):
    return model.prepare_rows(jax.tree.map(lambda x: jnp.asarray(x[index]), data))


def own_density(case, rows, position):
    arguments, keywords = case.arguments(rows)
    return -potential_energy(case.model, arguments, keywords, position)


@pytest.mark.parametrize("name", CASES)
def test_prior_and_rows_are_the_models_own_log_density(name):
    model, data = adapted(name)
    positions, rng = random_positions(model), np.random.default_rng(1)

    @jax.jit
    def both(positions, rows):
        def at(position):
            terms = model.loglikelihood_fn(position, rows)
            own = own_density(CASES[name], rows, position)
            return model.logprior_fn(position), terms, own

        return jax.vmap(at)(positions)

    for count in (1 if name in SINGLE else 3, NUM_ROWS):
        rows = some_rows(model, data, rng.permutation(NUM_ROWS)[:count])
        prior, terms, own = both(positions, rows)
        assert terms.shape == (NUM_POSITIONS, count)
        magnitude = 1.0 + np.abs(prior) + np.abs(terms).sum(axis=1)
        assert np.isfinite(own).all()
        assert np.max(np.abs(prior + terms.sum(axis=1) - own) / magnitude) < 1e-10


@pytest.mark.parametrize("name", ["logistic", "two_sites", "hierarchy"])
def test_each_row_has_the_log_likelihood_that_numpyro_gives_it(name):
    case, (model, data) = CASES[name], adapted(name)
    position = jax.tree.map(lambda x: x[0], random_positions(model))
    rows = some_rows(model, data, np.arange(NUM_ROWS))
    arguments, keywords = case.arguments(rows)
    constrained = constrain_fn(case.model, arguments, keywords, position)
    each = log_likelihood(case.model, constrained, *arguments, batch_ndims=0, **keywords)
    np.testing.assert_allclose(
        jax.jit(model.loglikelihood_fn)(position, rows), sum(each.values()), rtol=1e-12
    )


def test_the_prior_of_a_scale_includes_its_jacobian():
    model, _ = adapted("linear")
    slopes, log_sigma = np.array([0.3, -1.2, 0.5]), -0.7
    expected = stats.norm.logpdf(slopes, 0.0, 2.0).sum()
    expected += stats.halfnorm.logpdf(np.exp(log_sigma), scale=2.0) + log_sigma
    position = {"slopes": jnp.asarray(slopes), "sigma": jnp.asarray(log_sigma)}
    np.testing.assert_allclose(model.logprior_fn(position), expected, rtol=1e-13)


@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_derivatives_are_those_of_the_models_own_log_density(name):
    case, (model, data) = CASES[name], adapted(name)
    position = jax.tree.map(lambda x: x[0], random_positions(model))
    rows = some_rows(model, data, np.arange(9))
    flat, unravel = ravel_pytree(position)

    @jax.jit
    def both(flat):
        def likelihood(x):
            return own_density(case, rows, unravel(x)) - model.logprior_fn(unravel(x))

        found = weighted_derivatives(model, unravel(flat), rows, jnp.ones(9))
        expected = jax.grad(likelihood)(flat), jax.hessian(likelihood)(flat)
        return (found.gradient, found.hessian), expected

    for value, expected in zip(*both(flat), strict=True):
        scale = 1.0 + np.abs(expected).max()
        np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-10 * scale)


def test_taylor_polynomials_follow_the_log_likelihood_closely():
    model, data = adapted("logistic")
    centre = jax.tree.map(lambda x: x[0], random_positions(model))
    rows = some_rows(model, data, np.arange(NUM_ROWS))
    errors = []
    for step in (0.02, 0.01):
        near = jax.tree.map(lambda x, s=step: x + s, centre)
        values, polynomials = taylor_terms(model, centre, near, rows)
        errors.append(np.abs(values - polynomials).max())
    assert 7.0 < errors[0] / errors[1] < 9.0  # of third order


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_computed_in_32_bits(name):
    model, data = adapted(name)
    position = jax.tree.map(lambda x: x[0], random_positions(model))
    stored = jax.tree.map(lambda x: x[:5], data)

    def everything(position, stored):
        rows = model.prepare_rows(stored)
        return model.logprior_fn(position), model.loglikelihood_fn(position, rows)

    for function in (everything, jax.grad(lambda p, r: sum(x.sum() for x in everything(p, r)))):
        traced = jax.make_jaxpr(function)(position, stored)
        found = {v.aval.dtype for v in variables(traced.jaxpr)}
        assert np.dtype(np.float64) in found
        assert np.dtype(np.float32) not in found


def variables(jaxpr):
    for equation in jaxpr.eqns:
        yield from equation.outvars
        for value in jax.tree.leaves(equation.params, is_leaf=lambda x: isinstance(x, JAXPRS)):
            if isinstance(value, JAXPRS):
                yield from variables(value.jaxpr if isinstance(value, ClosedJaxpr) else value)


JAXPRS = (ClosedJaxpr, Jaxpr)


@pytest.mark.parametrize(
    ("name", "outputs"),
    [
        ("linear", {"slopes": (3,), "sigma": (), "precision": ()}),
        ("simplex_and_ordered", {"shares": (3,), "cuts": (2,)}),
        ("pairs_with_lkj", {"mean": (2,), "factor": (2, 2), "scale": (2,)}),
        (
            "not_centred",
            {"centre": (), "spread": (), "effects_decentered": (4,), "effects": (4,)},
        ),
    ],
)
def test_output_has_the_models_names_and_scales(name, outputs):
    case, (model, data) = CASES[name], adapted(name)
    position = jax.tree.map(lambda x: x[0], random_positions(model))
    rows = some_rows(model, data, np.arange(NUM_ROWS))
    expected = constrain_fn(
        case.model, (), case.arguments(rows)[1], position, return_deterministic=True
    )
    found = jax.jit(model.constrain_fn)(position)
    assert {k: x.shape for k, x in found.items()} == outputs
    for key, value in found.items():
        np.testing.assert_allclose(value, expected[key], rtol=1e-14)


def test_narrow_integers_count_in_64_bits():
    """JAX makes 32-bit floats of 32-bit integers, and log y! of them has eight digits."""
    counts = COUNTS.astype(np.int16) * 1000
    model, data = coremcmc.from_numpyro(CASES["poisson_without_plate"].model, {"x": X, "y": counts})
    slopes = np.array([0.2, -0.1, 0.3])
    terms = jax.jit(model.loglikelihood_fn)(
        {"slopes": jnp.asarray(slopes)}, some_rows(model, data, np.arange(NUM_ROWS))
    )
    expected = stats.poisson.logpmf(counts.astype(float), np.exp(X @ slopes))
    np.testing.assert_allclose(terms, expected, rtol=1e-12)


def test_rows_may_change_without_a_new_program():
    runs = []

    def counted(x, y=None):
        runs.append(x.shape)
        linear(x, y)

    model, data = coremcmc.from_numpyro(counted, {"x": X, "y": REALS})
    position = jax.tree.map(lambda x: x[0], random_positions(model))
    terms = jax.jit(model.loglikelihood_fn)
    runs.clear()
    values = [terms(position, some_rows(model, data, slice(i, i + 9))) for i in range(20)]
    assert len(runs) == 1
    assert len({float(value.sum()) for value in values}) == 20


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_iterations_do_not_run_the_model():
    runs = []

    def counted(x, y):
        runs.append(x.shape)
        numpyro.sample("y", dist.Normal(x @ normals(), 1.0), obs=y)

    problem = coremcmc.from_numpyro(counted, {"x": X, "y": REALS})
    runs.clear()
    options = {"preset": "paper", "num_iterations": 2_000, "progress": False}
    fit = coremcmc.fit(*problem, coreset_size=20, **options)
    assert fit.iteration == 2_000
    assert 0 < len(runs) < 100


def test_starts_lie_in_the_support():
    """Where U(-2, 2) overflows, starts come nearer to zero until the density is finite."""
    model, data = coremcmc.from_numpyro(
        CASES["poisson_without_plate"].model, {"x": 2e4 * X, "y": COUNTS}
    )
    rows = some_rows(model, data, np.arange(NUM_ROWS))
    keys = jax.random.split(jax.random.key(0), 8)
    starts = jax.jit(jax.vmap(lambda key: model.initial_position(key, rows)))(keys)
    terms = jax.jit(jax.vmap(lambda p: model.loglikelihood_fn(p, rows)))(starts)
    assert np.isfinite(terms).all()
    assert len(np.unique(starts["slopes"])) == starts["slopes"].size


def test_starts_are_uniform_where_that_is_finite():
    model, data = adapted("linear")
    rows = some_rows(model, data, np.arange(NUM_ROWS))
    keys = jax.random.split(jax.random.key(0), 2_000)
    starts = jax.jit(jax.vmap(lambda key: model.initial_position(key, rows)))(keys)
    for values in starts.values():
        assert stats.kstest(np.ravel(values), stats.uniform(-2, 4).cdf).pvalue > 1e-3
