"""What a function computes, and from which arguments."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coremcmc import LinearPredictorModel
from coremcmc.models.functions import FunctionModel
from coremcmc.models.jaxpr import dependencies, digest, split_linear
from coremcmc.posterior.derivatives import weighted_derivatives
from tests.models.numpyro.numpyro_models import adapted

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


# -- linear predictors: where there is one, where there is none, and that it is --------------------

rng = np.random.default_rng(0)
NUM_ROWS = 11
ROWS = {
    "x": rng.standard_normal((NUM_ROWS, 3)),
    "y": rng.standard_normal(NUM_ROWS),
    "group": rng.integers(0, 4, NUM_ROWS),
    "offset": rng.standard_normal(NUM_ROWS),
}
POSITION = {
    "slopes": rng.standard_normal(3),
    "effects": rng.standard_normal(4),
    "shift": np.array(0.7),
    "log_sigma": np.array(-0.3),
}


def normal(mean, rows, p):
    return -0.5 * ((rows["y"] - mean) * jnp.exp(-p["log_sigma"])) ** 2 - p["log_sigma"]


LINEAR = {
    "product": lambda p, r: normal(r["x"] @ p["slopes"], r, p),
    "intercept": lambda p, r: normal(p["shift"] + r["x"] @ p["slopes"], r, p),
    "sum of products": lambda p, r: normal((r["x"] * p["slopes"]).sum(-1), r, p),
    "groups": lambda p, r: normal(p["effects"][r["group"]], r, p),
    "groups and slopes": lambda p, r: normal(
        p["effects"][r["group"]] - r["x"] @ p["slopes"] / 2.0, r, p
    ),
    "first slope apart": lambda p, r: normal(
        r["x"][:, 0] * p["slopes"][0] + r["x"][:, 1:] @ p["slopes"][1:], r, p
    ),
    "offset": lambda p, r: normal(r["x"] @ p["slopes"] + r["offset"], r, p),
    "used twice": lambda p, r: (lambda eta: r["y"] * eta - jnp.exp(eta))(r["x"] @ p["slopes"]),
    "nothing else": lambda p, r: r["x"] @ p["slopes"],
}
NOT_LINEAR = {
    "two predictors": lambda p, r: (
        r["y"] * (r["x"] @ p["slopes"]) - jnp.exp(r["x"][:, 0] * p["shift"])
    ),
    "product of parameters": lambda p, r: normal(r["x"] @ (p["slopes"] * p["shift"]), r, p),
    "groups of a curve": lambda p, r: normal(jnp.exp(p["effects"])[r["group"]], r, p),
    "curve beside": lambda p, r: normal(
        r["x"] @ p["slopes"] + jnp.exp(p["effects"])[r["group"]], r, p
    ),
    "two outcomes": lambda p, r: jnp.sin(
        r["x"][:, :2] @ p["slopes"].reshape(3, 1)[:2] * jnp.ones((1, 2))
    ).sum(-1),
    "no parameters at the rows": lambda p, r: normal(p["shift"], r, p),
}


@pytest.mark.parametrize("name", LINEAR)
def test_found_and_linear(name):
    function = LINEAR[name]
    for count in (1, 2, NUM_ROWS):
        rows = {k: jnp.asarray(x[:count]) for k, x in ROWS.items()}
        position = jax.tree.map(jnp.asarray, POSITION)
        split = split_linear(function, position, rows)
        eta = split.predictor(position, rows)
        assert eta.shape == (count,)
        other = jax.tree.map(lambda x: x**2 + 1.0, position)
        mixed = jax.tree.map(lambda a, b: 2.0 * a - 3.0 * b, position, other)
        np.testing.assert_allclose(
            split.predictor(mixed, rows), 2.0 * eta - 3.0 * split.predictor(other, rows), rtol=1e-12
        )
        found = split.pointwise(eta, rows, position)
        np.testing.assert_allclose(found, function(position, rows), rtol=1e-14)
        # Given the predictor, rows are read no more through the slopes.
        steep = {**position, "slopes": position["slopes"] + 5.0, "effects": 3.0 * other["effects"]}
        np.testing.assert_array_equal(split.pointwise(eta, rows, steep), found)


@pytest.mark.parametrize("name", NOT_LINEAR)
def test_not_found(name):
    position, rows = (jax.tree.map(jnp.asarray, tree) for tree in (POSITION, ROWS))
    assert NOT_LINEAR[name](position, rows).shape == (NUM_ROWS,)
    assert split_linear(NOT_LINEAR[name], position, rows) is None


@pytest.mark.parametrize(
    ("name", "is_linear"),
    [
        *((name, True) for name in ("logistic", "linear", "poisson_without_plate", "hierarchy")),
        *((name, True) for name in ("masked", "weighted", "transformed_rows", "binomial")),
        *((name, False) for name in ("not_centred", "two_sites", "matrix_of_slopes", "mixture")),
    ],
)
def test_numpyro_models_with_a_linear_predictor_have_it_found(name, is_linear):
    assert isinstance(adapted(name).model, LinearPredictorModel) == is_linear


@pytest.mark.parametrize("name", ["linear", "hierarchy", "binomial"])
def test_derivatives_through_the_predictor_are_those_without(name):
    model, data = adapted(name)
    rows = model.prepare_rows(jax.tree.map(lambda x: jnp.asarray(x[:9]), data))
    position = {k: 0.3 + jnp.zeros(shape) for k, shape in model.sites.latents}
    plain = FunctionModel(model.logprior_fn, model.loglikelihood_fn, lambda key: position)
    weights = jnp.linspace(0.0, 2.0, 9)
    found, expected = jax.jit(
        lambda: [weighted_derivatives(m, position, rows, weights) for m in (model, plain)]
    )()
    for value, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, other, rtol=1e-11, atol=1e-11)
