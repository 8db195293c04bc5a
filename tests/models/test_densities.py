"""Every built-in density against scipy and numpyro, and the weighted target built on them."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import scipy.special
import scipy.stats
from numpyro.infer.util import log_density

from coremcmc import (
    BradleyTerry,
    FunctionModel,
    GaussianLocation,
    LinearRegression,
    LogisticRegression,
    PoissonRegression,
    SparseRegression,
)
from coremcmc.posterior.target import Target

M, P, TEAMS = 37, 3, 8
TIGHT = {"rtol": 1e-10, "atol": 1e-10}


def case(name, rng):
    """A model, stored rows (narrow types, as users have them) and a random position."""
    x = rng.normal(size=(M, P)).astype(np.float32)
    beta = {"beta": rng.normal(size=P + 1)}
    slope = {"beta": rng.normal(size=P)}
    labels = rng.integers(0, 2, M).astype(np.int8)
    counts = rng.poisson(3.0, M)
    log_sigma2 = {"log_sigma2": rng.normal()}
    gamma = {"gamma": rng.integers(0, 2, P).astype(float), "sigma2": rng.uniform(0.3, 3.0)}
    home = rng.integers(0, TEAMS, M)
    games = {"home": home, "away": (home + rng.integers(1, TEAMS, M)) % TEAMS, "y": labels}
    real = rng.normal(2.0, 3.0, M)
    return {
        "linear": (LinearRegression(), {"x": x, "y": real}, beta | log_sigma2),
        "linear, no intercept": (LinearRegression(False), {"x": x, "y": real}, slope | log_sigma2),
        "logistic": (LogisticRegression(), {"x": x, "y": labels}, beta),
        "logistic, no intercept": (LogisticRegression(False), {"x": x, "y": labels}, slope),
        "poisson": (PoissonRegression(), {"x": x, "y": counts}, beta),
        "poisson, no intercept": (PoissonRegression(False), {"x": x, "y": counts}, slope),
        "sparse": (SparseRegression(), {"x": x, "y": real}, slope | gamma),
        "sparse, other constants": (
            SparseRegression(nu=3.0, lam=2.5, q=0.4, tau=0.3, c=7.0),
            {"x": x, "y": real},
            slope | gamma,
        ),
        "bradley-terry": (BradleyTerry(TEAMS), games, {"theta": 300 * rng.normal(size=TEAMS)}),
        "gaussian": (GaussianLocation(), {"x": x}, {"theta": rng.normal(size=P)}),
    }[name]


LINEAR_PREDICTOR = [
    "linear",
    "linear, no intercept",
    "logistic",
    "logistic, no intercept",
    "poisson",
    "poisson, no intercept",
    "bradley-terry",
]
ALL = [*LINEAR_PREDICTOR, "sparse", "sparse, other constants", "gaussian"]


def prepared(model, stored):
    return model.prepare_rows(jax.tree.map(jnp.asarray, stored))


def on_device(position):
    return jax.tree.map(jnp.asarray, position)


def target_of(name, seed):
    rng = np.random.default_rng(seed)
    model, stored, position = case(name, rng)
    weights = jnp.asarray(rng.uniform(0.0, 50.0, M))
    direction = jax.tree.map(lambda x: jnp.asarray(rng.normal(size=np.shape(x))), position)
    return Target(model, prepared(model, stored), weights), on_device(position), direction


def eta_of(name, stored, position):
    if name == "bradley-terry":
        return (position["theta"][stored["home"]] - position["theta"][stored["away"]]) / 400
    x, beta = stored["x"].astype(np.float64), position["beta"]
    return x @ beta if len(beta) == P else np.column_stack([np.ones(M), x]) @ beta


def scipy_logprior(name, model, position):
    stats = scipy.stats
    if name.startswith("linear"):
        return stats.norm.logpdf(np.append(position["beta"], position["log_sigma2"])).sum()
    if name.startswith("logistic"):
        return stats.cauchy.logpdf(position["beta"]).sum()
    if name.startswith("sparse"):
        in_model = position["gamma"] == 1
        sd = np.where(in_model, model.c * model.tau, model.tau)
        return (
            stats.invgamma(model.nu / 2, scale=model.nu * model.lam / 2).logpdf(position["sigma2"])
            + stats.bernoulli(model.q).logpmf(in_model.astype(int)).sum()
            + stats.norm(0, sd).logpdf(position["beta"]).sum()
        )
    (coefficients,) = position.values()
    return stats.multivariate_normal(np.zeros(len(coefficients))).logpdf(coefficients)


def scipy_loglikelihood(name, stored, position):
    stats = scipy.stats
    if name == "gaussian":
        x = stored["x"].astype(np.float64)
        return stats.multivariate_normal(position["theta"], np.eye(P)).logpdf(x)
    eta = eta_of(name, stored, position)
    if name.startswith("linear"):
        return stats.norm(eta, np.exp(position["log_sigma2"] / 2)).logpdf(stored["y"])
    if name.startswith("sparse"):
        return stats.norm(eta, np.sqrt(position["sigma2"])).logpdf(stored["y"])
    if name.startswith("poisson"):
        return stats.poisson(np.log1p(np.exp(eta))).logpmf(stored["y"])
    return stats.bernoulli(scipy.special.expit(eta)).logpmf(stored["y"])


def numpyro_likelihood(name, stored, position):
    if name == "gaussian":
        return dist.Normal(position["theta"], 1.0).to_event(1).log_prob(stored["x"].astype(float))
    eta = eta_of(name, stored, position)
    if name.startswith("linear"):
        return dist.Normal(eta, np.exp(position["log_sigma2"] / 2)).log_prob(stored["y"])
    if name.startswith("sparse"):
        return dist.Normal(eta, np.sqrt(position["sigma2"])).log_prob(stored["y"])
    if name.startswith("poisson"):
        return dist.Poisson(np.logaddexp(0.0, eta)).log_prob(stored["y"])
    return dist.Bernoulli(logits=eta).log_prob(stored["y"])


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", ALL)
def test_logprior_is_that_of_scipy(name, seed):
    model, _, position = case(name, np.random.default_rng(seed))
    expected = scipy_logprior(name, model, position)
    np.testing.assert_allclose(model.logprior_fn(on_device(position)), expected, **TIGHT)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", ALL)
def test_loglikelihood_of_every_row_is_that_of_scipy_and_numpyro(name, seed):
    model, stored, position = case(name, np.random.default_rng(seed))
    actual = model.loglikelihood_fn(on_device(position), prepared(model, stored))
    assert actual.shape == (M,)
    assert actual.dtype == jnp.float64
    np.testing.assert_allclose(actual, scipy_loglikelihood(name, stored, position), **TIGHT)
    np.testing.assert_allclose(actual, numpyro_likelihood(name, stored, position), **TIGHT)


def numpyro_linear(x, y):
    beta = numpyro.sample("beta", dist.Normal(0, 1).expand([P + 1]).to_event(1))
    log_sigma2 = numpyro.sample("log_sigma2", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(beta[0] + x @ beta[1:], jnp.exp(log_sigma2 / 2)), obs=y)


def numpyro_logistic(x, y):
    beta = numpyro.sample("beta", dist.Cauchy(0, 1).expand([P + 1]).to_event(1))
    numpyro.sample("y", dist.Bernoulli(logits=beta[0] + x @ beta[1:]), obs=y)


def numpyro_poisson(x, y):
    beta = numpyro.sample("beta", dist.Normal(0, 1).expand([P + 1]).to_event(1))
    numpyro.sample("y", dist.Poisson(jax.nn.softplus(beta[0] + x @ beta[1:])), obs=y)


def numpyro_bradley_terry(home, away, y):
    theta = numpyro.sample("theta", dist.Normal(0, 1).expand([TEAMS]).to_event(1))
    numpyro.sample("y", dist.Bernoulli(logits=(theta[home] - theta[away]) / 400), obs=y)


@pytest.mark.parametrize(
    ("name", "program"),
    [
        ("linear", numpyro_linear),
        ("logistic", numpyro_logistic),
        ("poisson", numpyro_poisson),
        ("bradley-terry", numpyro_bradley_terry),
    ],
)
def test_target_at_unit_weights_is_the_log_density_of_a_numpyro_program(name, program):
    model, stored, position = case(name, np.random.default_rng(5))
    stored = {k: v.astype(float) if v.dtype == np.float32 else v for k, v in stored.items()}
    expected, _ = log_density(program, (), jax.tree.map(jnp.asarray, stored), on_device(position))
    target = Target(model, prepared(model, stored), jnp.ones(M))
    np.testing.assert_allclose(target(on_device(position)), expected, rtol=1e-10)


@pytest.mark.parametrize("name", ALL)
def test_target_is_the_weighted_sum_plus_the_prior(name):
    rng = np.random.default_rng(7)
    model, stored, position = case(name, rng)
    weights = rng.uniform(0.0, 50.0, M)
    expected = scipy_loglikelihood(name, stored, position) @ weights + scipy_logprior(
        name, model, position
    )
    target = Target(model, prepared(model, stored), jnp.asarray(weights))
    np.testing.assert_allclose(target(on_device(position)), expected, rtol=1e-10)


@pytest.mark.parametrize("eta", [-700.5, -750.0, -800.0, -1e5])
def test_poisson_is_finite_and_right_where_its_rate_underflows(eta):
    # log(1 + e^η) = e^η to 1e-300, so ℓ = y η − log y! − e^η.
    y = np.array([0, 1, 2, 7, 400])
    model = PoissonRegression()
    rows = prepared(model, {"x": np.ones((5, 1)), "y": y})
    actual = model.loglikelihood_fn({"beta": jnp.array([eta / 4, 3 * eta / 4])}, rows)
    np.testing.assert_allclose(actual, y * eta - scipy.special.gammaln(y + 1), **TIGHT)


@pytest.mark.parametrize("eta", [-800.0, 800.0])
def test_logistic_is_finite_and_right_where_its_probability_rounds(eta):
    model = LogisticRegression(intercept=False)
    rows = prepared(model, {"x": np.full((2, 1), eta), "y": np.array([0, 1])})
    actual = model.loglikelihood_fn({"beta": jnp.ones(1)}, rows)
    np.testing.assert_allclose(actual, [min(-eta, 0.0), min(eta, 0.0)], **TIGHT)


@pytest.mark.parametrize("name", ALL)
def test_prepared_rows_are_float64_with_the_stored_values_and_leave_indices_alone(name):
    model, stored, _ = case(name, np.random.default_rng(0))
    rows = prepared(model, stored)
    for column, values in stored.items():
        is_index = column in ("home", "away")
        assert rows[column].dtype == (values.dtype if is_index else np.float64)
        np.testing.assert_array_equal(rows[column], values)


@pytest.mark.parametrize("name", ALL)
def test_initial_position_has_the_shape_of_the_models_parameters(name):
    target, position, _ = target_of(name, 0)
    start = target.model.initial_position(jax.random.key(0), target.rows)
    assert jax.tree.map(jnp.shape, start) == jax.tree.map(jnp.shape, position)
    assert np.isfinite(target(start))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", LINEAR_PREDICTOR)
def test_predictor_is_additive_and_homogeneous(name, seed):
    target, here, there = target_of(name, seed)
    predictor = target.model.predictor
    at_sum = predictor(jax.tree.map(lambda a, b: a + b, here, there), target.rows)
    sum_of = predictor(here, target.rows) + predictor(there, target.rows)
    np.testing.assert_allclose(at_sum, sum_of, rtol=1e-12, atol=1e-12)
    tripled = predictor(jax.tree.map(lambda a: -3.0 * a, here), target.rows)
    np.testing.assert_allclose(tripled, -3.0 * predictor(here, target.rows), rtol=1e-12, atol=1e-12)


def function_target(seed):
    """A model nonlinear in its position, which is a tuple."""
    rng = np.random.default_rng(seed)
    model = FunctionModel(
        lambda p: -jnp.sum(jnp.cosh(p[0])) - p[1] ** 2,
        lambda p, rows: -((rows["y"] - jnp.sin(rows["x"] @ p[0]) * p[1]) ** 2),
        lambda key: (jnp.zeros(P), jnp.zeros(())),
    )
    rows = {"x": rng.normal(size=(M, P)), "y": rng.normal(size=M)}
    position, direction = ((rng.normal(size=P), rng.normal()) for _ in range(2))
    weights = jnp.asarray(rng.uniform(0.0, 50.0, M))
    return Target(model, prepared(model, rows), weights), on_device(position), on_device(direction)


@pytest.mark.parametrize("t", [0.0, 1e-3, -0.7, 4.0])
@pytest.mark.parametrize("name", [*LINEAR_PREDICTOR, "function"])
def test_target_along_a_line_is_the_target_at_its_points(name, t):
    target, position, direction = function_target(1) if name == "function" else target_of(name, 1)
    there = jax.tree.map(lambda x, d: x + t * d, position, direction)
    actual = target.along(position, direction)(jnp.asarray(t))
    np.testing.assert_allclose(actual, target(there), rtol=1e-9)


@pytest.mark.parametrize("name", LINEAR_PREDICTOR)
def test_further_points_on_a_line_cost_no_matrix_product(name):
    target, position, direction = target_of(name, 2)
    # What reads all coefficients of every row: the data matrix, or a gather of team strengths.
    reads_data = " gather[" if name == "bradley-terry" else f"f64[{M},{P}]"
    on_line = str(jax.make_jaxpr(target.along(position, direction))(0.5))
    assert reads_data not in on_line
    # One product is left, that with the weights.
    assert on_line.count("dot_general[") == 1
    # And the whole target does read them, so that the search above can find something.
    assert reads_data in str(jax.make_jaxpr(target)(position))


@pytest.mark.parametrize("name", [n for n in LINEAR_PREDICTOR if n != "bradley-terry"])
def test_opening_a_line_multiplies_the_data_matrix_once(
    name,
):
    target, position, direction = target_of(name, 2)

    def three_points(position, direction):
        line = target.along(position, direction)
        return line(0.5), line(1.5), line(2.5)

    # Besides, each of the three points multiplies with the weights.
    products = str(jax.make_jaxpr(three_points)(position, direction)).count("dot_general[")
    assert products == 1 + 3


@pytest.mark.parametrize("along", [False, True], ids=["at a point", "along a line"])
def test_rows_of_weight_zero_count_for_nothing_even_at_minus_infinity(along):
    model = FunctionModel(
        lambda p: -0.5 * p**2,
        lambda p, rows: jnp.where(rows > p, -rows, -jnp.inf),
        lambda key: jnp.zeros(()),
    )
    target = Target(model, jnp.array([1.0, 2.0, -5.0]), jnp.array([3.0, 0.5, 0.0]))
    zero, one = jnp.zeros(()), jnp.ones(())
    value = target.along(zero, one)(0.5 * one) if along else target(0.5 * one)
    assert float(value) == pytest.approx(-(3.0 * 1.0 + 0.5 * 2.0) - 0.125, rel=1e-14)


def test_a_weighted_row_at_minus_infinity_rules_the_position_out():
    model = FunctionModel(
        lambda p: -0.5 * p**2,
        lambda p, rows: jnp.where(rows > p, -rows, -jnp.inf),
        lambda key: jnp.zeros(()),
    )
    target = Target(model, jnp.array([1.0, -5.0]), jnp.array([0.0, 1e-300]))
    assert float(target(jnp.zeros(()))) == -np.inf


def test_gaussian_posterior_is_the_normalised_target():
    target, _, _ = target_of("gaussian", 3)
    mean, variance = GaussianLocation.posterior(target.rows, target.weights)
    theta = np.random.default_rng(0).normal(size=(20, P))
    density = scipy.stats.multivariate_normal(mean, variance * np.eye(P)).logpdf(theta)
    difference = [float(target({"theta": jnp.asarray(t)})) for t in theta] - density
    np.testing.assert_allclose(difference, difference[0], rtol=1e-10)


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("linear", {"beta", "sigma"}),
        ("logistic", {"beta"}),
        ("poisson", {"beta"}),
        ("sparse", {"beta", "gamma", "sigma2"}),
        ("bradley-terry", {"theta"}),
        ("gaussian", {"theta"}),
    ],
)
def test_constrained_parameters_have_their_names(name, names):
    target, position, _ = target_of(name, 0)
    constrained = target.model.constrain_fn(position)
    assert set(constrained) == names
    for parameter in names & set(position):
        np.testing.assert_array_equal(constrained[parameter], position[parameter])


def test_linear_regression_reports_the_standard_deviation():
    constrained = LinearRegression().constrain_fn(
        {"beta": jnp.zeros(2), "log_sigma2": jnp.log(jnp.asarray(9.0))}
    )
    assert float(constrained["sigma"]) == pytest.approx(3.0, rel=1e-14)


@pytest.mark.parametrize(
    ("position", "names"),
    [
        ({"b": 1.0, "a": 2.0}, {"b": 1.0, "a": 2.0}),
        ((1.0, 2.0), {"0": 1.0, "1": 2.0}),
        (3.0, {"position": 3.0}),
        ({"layers": [{"bias": 1.0}, {"bias": 2.0}]}, {"layers.0.bias": 1.0, "layers.1.bias": 2.0}),
    ],
    ids=["dict", "tuple", "bare array", "nested"],
)
def test_function_model_names_the_parts_of_a_position_by_their_paths(position, names):
    model = FunctionModel(jnp.sum, lambda p, rows: rows, lambda key: None)
    constrained = model.constrain_fn(jax.tree.map(lambda x: jnp.full(2, x), position))
    assert set(constrained) == set(names)
    for name, value in names.items():
        np.testing.assert_array_equal(constrained[name], [value, value])


def test_function_model_takes_the_users_own_names():
    model = FunctionModel(
        jnp.sum, lambda p, rows: rows, lambda key: None, lambda p: {"scale": jnp.exp(p)}
    )
    constrained = model.constrain_fn(jnp.asarray(2.0))
    assert set(constrained) == {"scale"}
    assert float(constrained["scale"]) == pytest.approx(np.exp(2.0))


@pytest.mark.parametrize("name", ALL)
def test_equal_models_hash_equal_so_that_compiled_programs_are_found_again(name):
    first, second = (case(name, np.random.default_rng(0))[0] for _ in range(2))
    assert first is not second
    assert first == second
    assert hash(first) == hash(second)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64])
def test_whole_numbers_of_few_bits_are_computed_with_in_64(dtype):
    """JAX alone makes float32 of the logarithm and the quotient, and lets 100 · 100 overflow."""
    model = FunctionModel(
        lambda p: -0.5 * p**2,
        lambda p, rows: p * (jnp.log(rows["y"]) + rows["y"] / 3 - rows["y"] * rows["y"]),
        lambda key: jnp.zeros(()),
    )
    y = np.array([1, 3, 7, 100])
    rows = model.prepare_rows({"y": jnp.asarray(y.astype(dtype))})
    found = model.loglikelihood_fn(jnp.asarray(1.0), rows)
    assert found.dtype == jnp.float64
    np.testing.assert_allclose(found, np.log(y) + y / 3 - y * y, rtol=1e-14)
