"""The adapter against PyMC itself: log densities, derivatives, constrained values."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.special import erfcx

import coremcmc
from coremcmc.models.pymc.ops import _erfcx
from coremcmc.models.special import log_normal_cdf
from coremcmc.posterior.derivatives import taylor_terms, weighted_derivatives
from tests.models.pymc.pymc_models import (
    MODELS,
    NUM_ROWS,
    build,
    hierarchy,
    linear,
    logistic,
    multivariate,
    negative_binomial,
    pm,
)

pytestmark = pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS")


@functools.cache
def adapted(write):
    """A PyMC model, whose rows the test does not change, and its translation."""
    pymc_model = build(write)
    return (pymc_model, *coremcmc.from_pymc(pymc_model))


def random_positions(model, number, seed=0):
    rng = np.random.default_rng(seed)
    point = model.initial_point()
    return [
        {k: x + rng.uniform(-1, 1, np.shape(x)) for k, x in point.items()} for _ in range(number)
    ]


def take(data, index):
    return {name: column[index] for name, column in data.items()}


def show(pymc_model, data, index):
    """Give PyMC other rows; its row dimension may have coordinates."""
    named = "obs" in pymc_model.coords and pymc_model.coords["obs"] is not None
    if named:
        pymc_model.set_dim("obs", len(index), coord_values=range(len(index)))
    for name, column in take(data, index).items():
        pymc_model.set_data(name, column)


@pytest.mark.parametrize("write", MODELS, ids=lambda write: write.__name__)
def test_prior_and_rows_add_up_to_pymcs_log_density(write):
    pymc_model = build(write)
    model, data = coremcmc.from_pymc(pymc_model)
    data = {name: column.copy() for name, column in data.items()}
    is_linear = isinstance(model, coremcmc.LinearPredictorModel)
    assert is_linear == MODELS[write]
    positions = random_positions(pymc_model, 3)
    rng = np.random.default_rng(1)
    subsets = [np.arange(NUM_ROWS), rng.permutation(NUM_ROWS)[:7], np.array([11])]

    @jax.jit
    def ours(positions):
        def one(position):
            prior = model.logprior_fn(position)
            each = [
                model.loglikelihood_fn(position, model.prepare_rows(take(data, index))).sum()
                for index in subsets
            ]
            return prior + jnp.stack(each)

        return jax.vmap(one)(positions)

    found = ours(jax.tree.map(lambda *xs: jnp.stack(xs), *positions))
    logp = pymc_model.compile_logp(mode="FAST_COMPILE")
    for k, index in enumerate(subsets):
        show(pymc_model, data, index)
        expected = [logp(position) for position in positions]
        np.testing.assert_allclose(found[:, k], expected, rtol=1e-10)


@pytest.mark.parametrize("write", [hierarchy, negative_binomial])
def test_derivatives_are_pymcs(write):
    pymc_model, model, data = adapted(write)
    (position,) = random_positions(pymc_model, 1)
    in_our_order = sorted(
        pymc_model.free_RVs, key=lambda variable: pymc_model.rvs_to_values[variable].name
    )
    gradient = pymc_model.compile_dlogp(vars=in_our_order, mode="FAST_COMPILE")
    flat, unravel = ravel_pytree(position)

    def gradient_at(x):
        return gradient({k: np.asarray(v) for k, v in unravel(x).items()})

    @jax.jit
    def ours(x):
        rows = model.prepare_rows(data)
        found = weighted_derivatives(model, unravel(x), rows, jnp.ones(NUM_ROWS))
        slope = jax.grad(lambda y: model.logprior_fn(unravel(y)))
        return found.gradient + slope(x), found.hessian + jax.jacfwd(slope)(x)

    slopes, hessian = ours(flat)
    np.testing.assert_allclose(slopes, gradient_at(flat), rtol=1e-9, atol=1e-9)
    steps = 1e-5 * np.eye(len(flat))
    differences = [(gradient_at(flat + s) - gradient_at(flat - s)) / 2e-5 for s in steps]
    np.testing.assert_allclose(hessian, differences, rtol=1e-6, atol=1e-6 * np.abs(hessian).max())


def test_taylor_polynomials_of_rows_agree_with_a_generic_model():
    """A linear predictor is a promise: derivatives along lines may be taken through it."""
    pymc_model, model, data = adapted(hierarchy)
    generic = coremcmc.FunctionModel(model.logprior_fn, model.loglikelihood_fn, lambda key: None)
    centre, position = random_positions(pymc_model, 2)
    rows = model.prepare_rows(data)
    terms = jax.jit(taylor_terms, static_argnums=0)
    found = terms(model, centre, position, rows)
    expected = terms(generic, centre, position, rows)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("write", [write for write, is_linear in MODELS.items() if is_linear][:5])
def test_a_linear_predictor_is_linear(write):
    pymc_model, model, data = adapted(write)
    rows = model.prepare_rows(data)
    first, second = random_positions(pymc_model, 2)
    both = {name: 2.0 * first[name] - 3.0 * second[name] for name in first}
    predictor = jax.jit(model.predictor)
    eta = [np.asarray(predictor(position, rows)) for position in (first, second, both)]
    np.testing.assert_allclose(eta[2], 2.0 * eta[0] - 3.0 * eta[1], rtol=1e-12, atol=1e-12)


def test_parameters_out_of_range_give_what_pymc_gives():
    def write():
        y = pm.Data("y", np.array([0.1, -0.4, 0.9]))
        pm.Normal("o", 0, pm.Normal("sigma", initval=1.0), observed=y)

    pymc_model = build(write)
    model, data = coremcmc.from_pymc(pymc_model)
    position = {"sigma": np.array(-0.5)}
    assert pymc_model.compile_logp(mode="FAST_COMPILE")(position) == -np.inf
    assert (model.loglikelihood_fn(position, model.prepare_rows(data)) == -np.inf).all()


def test_far_out_the_gradient_stays_finite():
    """PyTensor's own softplus has a NaN slope in JAX beyond 709."""
    _, model, data = adapted(logistic)
    position = {"intercept": jnp.array(800.0), "slopes": jnp.zeros(3)}
    rows = model.prepare_rows(data)
    slopes = jax.jit(jax.grad(lambda p: model.loglikelihood_fn(p, rows).sum()))(position)
    np.testing.assert_allclose(slopes["intercept"], -np.sum(data["y"] == 0))


def test_rows_far_in_the_tails_have_finite_derivatives():
    """The form of log Φ that is not taken there is infinite, with an infinite slope."""

    def write():
        y = pm.Data("y", np.array([-1.0, -1.0, 1.0, 1.0, 0.2, 0.3]))
        x = pm.Data("x", np.array([-50.0, 50.0, -50.0, 50.0, 0.1, 0.4]))
        latent = pm.Normal.dist(x * pm.Normal("slope"), pm.HalfNormal("sigma"))
        pm.Censored("o", latent, lower=-1, upper=1, observed=y)

    model, data = coremcmc.from_pymc(build(write))
    rows = model.prepare_rows(data)
    position = {"slope": jnp.array(1.0), "sigma_log__": jnp.array(0.0)}

    def terms(slope):
        return model.loglikelihood_fn({**position, "slope": slope}, rows)

    def expected(slope):
        z = jnp.array([-1.0, -1.0, -1.0, -1.0]) + jnp.array([50.0, -50.0, -50.0, 50.0]) * slope
        return log_normal_cdf(z)

    for of in (jax.jacfwd, jax.jacrev, lambda f: jax.jacfwd(jax.jacrev(f))):
        found = jax.jit(of(terms))(position["slope"])
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found[:4], of(expected)(position["slope"]), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("write", [multivariate, hierarchy, linear])
def test_output_is_on_pymcs_scale(write):
    pymc_model, model, _ = adapted(write)
    (position,) = random_positions(pymc_model, 1)
    expected = pymc_model.compile_fn(
        pymc_model.replace_rvs_by_values(pymc_model.unobserved_RVs),
        inputs=pymc_model.value_vars,
        mode="FAST_COMPILE",
    )(position)
    found = jax.jit(model.constrain_fn)(position)
    assert set(found) == {variable.name for variable in pymc_model.unobserved_RVs}
    for variable, value in zip(pymc_model.unobserved_RVs, expected, strict=True):
        np.testing.assert_allclose(found[variable.name], value, rtol=1e-12)


def test_scaled_complementary_error_function():
    x = np.concatenate([np.linspace(-5, 5, 101), [20.0, 100.0]])
    found, slope = jax.vmap(jax.value_and_grad(_erfcx))(jnp.asarray(x))
    np.testing.assert_allclose(found, erfcx(x), rtol=1e-11)
    expected = 2 * x * erfcx(x) - 2 / np.sqrt(np.pi)
    np.testing.assert_allclose(slope, expected, rtol=1e-10, atol=1e-11)
