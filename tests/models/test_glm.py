"""Generalized linear models: densities against scipy, derivatives, refusals, and whole fits."""

import math
import pickle
import subprocess
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import scipy.stats
from jax.flatten_util import ravel_pytree

import coremcmc
from coremcmc.kernels import HitAndRun, slice_along_lines
from coremcmc.kernels import slice_on_gpu as fused_lines
from coremcmc.models.families import BINARY, FAMILIES
from coremcmc.models.glm import GLM
from coremcmc.models.priors import (
    Cauchy,
    Exponential,
    Gamma,
    HalfNormal,
    HalfStudentT,
    Normal,
    StudentT,
    prior_from_text,
)
from coremcmc.posterior.target import Target

M, P = 41, 3
TIGHT = {"rtol": 1e-10, "atol": 1e-10}

MODELS = {
    "gaussian": GLM("gaussian"),
    "student_t": GLM("student_t"),
    "student_t, df known": GLM("student_t", df=4),
    "logistic": GLM("logistic"),
    "probit": GLM("probit"),
    "poisson": GLM("poisson"),
    "poisson, softplus": GLM("poisson", link="softplus"),
    "negative_binomial": GLM("negative_binomial"),
    "negative_binomial, softplus": GLM("negative_binomial", link="softplus"),
}
each_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())


def responses(family, rng, eta):
    """Draw responses from a family, or from something near."""
    kind = FAMILIES[family].response.name
    if kind == "real":
        return eta + rng.standard_t(4, len(eta))
    if kind == "binary":
        return rng.integers(0, 2, len(eta)).astype(np.int8)
    return rng.poisson(np.exp(np.minimum(eta, 3.0)) * rng.gamma(2.0, 0.5, len(eta)))


def case(model, seed=0):
    """Stored rows and a random position."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(M, P)).astype(np.float32)
    beta = rng.normal(size=P + model.intercept)
    eta = x @ beta[-P:] + (beta[0] if model.intercept else 0.0)
    position = {"beta": jnp.asarray(beta)}
    for parameter in model._learned:
        position[f"log_{parameter.name}"] = jnp.asarray(rng.normal())
    return {"x": x, "y": responses(model.family, rng, eta)}, position, eta.astype(float)


def prepared(model, stored):
    return model.prepare_rows(jax.tree.map(jnp.asarray, stored))


def scipy_loglikelihood(model, y, eta, position):
    sigma = np.exp(position.get("log_sigma", 0.0))
    mean = np.logaddexp(0.0, eta) if model.link == "softplus" else np.exp(np.minimum(eta, 700))
    if model.family == "gaussian":
        return scipy.stats.norm(eta, sigma).logpdf(y)
    if model.family == "student_t":
        df = model.df or np.exp(position["log_df"])
        return scipy.stats.t(df, eta, sigma).logpdf(y)
    if model.family == "logistic":
        return scipy.stats.bernoulli(scipy.special.expit(eta)).logpmf(y)
    if model.family == "probit":
        return np.where(y == 1, scipy.stats.norm.logcdf(eta), scipy.stats.norm.logsf(eta))
    if model.family == "poisson":
        return scipy.stats.poisson(mean).logpmf(y)
    phi = np.exp(position["log_phi"])
    return scipy.stats.nbinom(phi, phi / (phi + mean)).logpmf(y)


# -- densities ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@each_model
def test_loglikelihood_is_that_of_scipy(model, seed):
    stored, position, eta = case(model, seed)
    rows = prepared(model, stored)
    actual = model.loglikelihood_fn(position, rows)
    assert actual.shape == (M,)
    assert actual.dtype == jnp.float64
    expected = scipy_loglikelihood(model, stored["y"], model.predictor(position, rows), position)
    np.testing.assert_allclose(actual, expected, **TIGHT)
    np.testing.assert_allclose(model.predictor(position, rows), eta, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("log_phi", [-8.0, 0.0, 8.0, 16.0])
def test_negative_binomial_from_clumped_to_poisson(log_phi):
    """scipy's own gamma functions cancel at large φ: compared with the sum of logarithms there."""
    y = np.array([0, 1, 2, 5, 30, 200])
    eta = np.array([-2.0, 0.0, 1.0, 2.0, 3.0, 5.0])
    model = GLM("negative_binomial")
    rows = prepared(model, {"x": eta[:, None], "y": y})
    actual = model.pointwise(jnp.asarray(eta), rows, {"log_phi": jnp.asarray(log_phi)})
    phi, mean = np.exp(np.longdouble(log_phi)), np.exp(eta.astype(np.longdouble))
    rising = np.array([np.log(phi + np.arange(n, dtype=np.longdouble)).sum() for n in y])
    factorial = np.array([np.log(np.arange(1, n + 1, dtype=np.longdouble)).sum() for n in y])
    expected = (
        rising - factorial - phi * np.log1p(mean / phi) + y * (np.log(mean) - np.log(mean + phi))
    )
    np.testing.assert_allclose(actual, expected.astype(float), rtol=1e-12, atol=1e-12)


PRIORS = [
    (Normal(2.0, location=-1.0), scipy.stats.norm(-1.0, 2.0)),
    (StudentT(2.5), scipy.stats.t(3, 0, 2.5)),
    (StudentT(0.3, df=7, location=2), scipy.stats.t(7, 2, 0.3)),
    (Cauchy(2.5), scipy.stats.cauchy(0, 2.5)),
]


@pytest.mark.parametrize(("prior", "reference"), PRIORS, ids=lambda p: type(p).__name__)
def test_priors_of_coefficients_are_those_of_scipy(prior, reference):
    x = np.linspace(-50.0, 50.0, 301)
    np.testing.assert_allclose(prior.logpdf(jnp.asarray(x)), reference.logpdf(x), **TIGHT)


POSITIVE = [
    (HalfNormal(1.7), scipy.stats.halfnorm(scale=1.7).logpdf),
    (HalfStudentT(2.5), lambda x: np.log(2) + scipy.stats.t(3, 0, 2.5).logpdf(x)),
    (HalfStudentT(0.5, df=1), scipy.stats.halfcauchy(scale=0.5).logpdf),
    (Exponential(0.4), scipy.stats.expon(scale=1 / 0.4).logpdf),
    (Gamma(2, 0.1), scipy.stats.gamma(2, scale=10).logpdf),
]


@pytest.mark.parametrize(("prior", "reference"), POSITIVE, ids=lambda p: type(p).__name__)
def test_priors_of_positive_parameters_are_those_of_scipy_with_the_jacobian(prior, reference):
    u = np.linspace(-12.0, 4.0, 101)
    actual = jax.vmap(prior.log_density)(jnp.asarray(u))
    np.testing.assert_allclose(actual, reference(np.exp(u)) + u, **TIGHT)
    fine = jnp.linspace(-80.0, 80.0, 400_001)
    mass = np.exp(jax.vmap(prior.log_density)(fine)).sum() * 160.0 / 400_000
    assert mass == pytest.approx(1.0, abs=1e-6)


@each_model
def test_logprior_is_the_sum_of_its_parts(model):
    _, position, _ = case(model)
    beta = np.asarray(position["beta"])
    expected = scipy.stats.t(3, 0, 2.5).logpdf(beta).sum()
    defaults = {"sigma": HalfStudentT(2.5), "df": Gamma(2, 0.1), "phi": HalfStudentT(10)}
    for name, prior in defaults.items():
        assert (name in model.priors) == (f"log_{name}" in position)
        if name in model.priors:
            expected += prior.log_density(position[f"log_{name}"])
    np.testing.assert_allclose(model.logprior_fn(position), expected, **TIGHT)


def test_a_prior_for_each_coefficient_and_another_for_the_intercept():
    beta = jnp.asarray([0.3, -1.0, 2.0, 4.0])
    scales, locations = (0.5, 1.0, 2.0), (0.0, 1.0, -1.0)
    prior = Normal(np.array(scales), location=list(locations))
    model = GLM("logistic", priors={"beta": prior, "Intercept": Cauchy(10)})
    expected = scipy.stats.norm(locations, scales).logpdf(beta[1:]).sum()
    expected += scipy.stats.cauchy(0, 10).logpdf(beta[0])
    np.testing.assert_allclose(model.logprior_fn({"beta": beta}), expected, **TIGHT)
    assert not model.has_independent_prior
    others = {"beta": Normal(2), "Intercept": Cauchy(10)}
    common = GLM("logistic", priors=others)
    expected = scipy.stats.norm(0, 2).logpdf(beta[1:]).sum()
    expected += scipy.stats.cauchy(0, 10).logpdf(beta[0])
    np.testing.assert_allclose(common.logprior_fn({"beta": beta}), expected, **TIGHT)
    assert common.has_independent_prior
    without = GLM("logistic", intercept=False, priors=others)
    expected = scipy.stats.norm(0, 2).logpdf(beta).sum()
    np.testing.assert_allclose(without.logprior_fn({"beta": beta}), expected, **TIGHT)


@pytest.mark.parametrize(
    ("text", "prior"),
    [
        ("normal(2.5)", Normal(2.5)),
        (" normal ( 2.5 , location = 1 ) ", Normal(2.5, location=1.0)),
        ("student_t(2.5, df=4)", StudentT(2.5, df=4.0)),
        ("cauchy", Cauchy(1.0)),
        ("half_student_t(2)", HalfStudentT(2.0)),
        ("exponential(0.1)", Exponential(0.1)),
        ("gamma(2, 0.1)", Gamma(2.0, 0.1)),
    ],
)
def test_priors_are_read_from_text(text, prior):
    assert prior_from_text(text) == prior


# -- derivatives ----------------------------------------------------------------------------------


@each_model
def test_gradients_are_those_of_finite_differences(model):
    stored, position, _ = case(model, 5)
    rows = prepared(model, stored)
    flat, unravel = ravel_pytree(position)

    def logdensity(x):
        there = unravel(x)
        return model.loglikelihood_fn(there, rows).sum() + model.logprior_fn(there)

    value, slope = jax.jit(jax.vmap(logdensity)), jax.jit(jax.vmap(jax.grad(logdensity)))
    step = 1e-5
    ahead, behind = flat + step * jnp.eye(flat.size), flat - step * jnp.eye(flat.size)
    difference = (value(ahead) - value(behind)) / (2 * step)
    np.testing.assert_allclose(slope(flat[None])[0], difference, rtol=1e-6, atol=1e-5)
    difference = (slope(ahead) - slope(behind)) / (2 * step)
    hessian = jax.jit(jax.hessian(logdensity))(flat)
    np.testing.assert_allclose(hessian, difference, rtol=1e-5, atol=1e-4)


@each_model
def test_values_gradients_and_hessians_are_finite_far_out(model):
    y = np.array([0, 1]) if model.response is BINARY else np.array([0, 7])
    rows = prepared(model, {"x": np.ones((2, 1)), "y": y})

    def total(eta, other):
        others = {f"log_{parameter.name}": other for parameter in model._learned}
        return model.pointwise(jnp.full(2, eta), rows, others).sum()

    def derivatives(eta, other):
        arguments = eta, other
        return (
            total(*arguments),
            jax.grad(total, (0, 1))(*arguments),
            jax.hessian(total)(*arguments),
        )

    etas, others = np.meshgrid([-40.0, -8.0, 0.0, 8.0, 40.0], [-15.0, 0.0, 15.0])
    found = jax.jit(jax.vmap(derivatives))(etas.ravel(), others.ravel())
    for leaf in jax.tree.leaves(found):
        assert np.isfinite(leaf).all(), leaf


# -- what it is, to the rest of the package -------------------------------------------------------


@each_model
def test_models_hash_pickle_and_describe_themselves(model):
    again = pickle.loads(pickle.dumps(model))
    assert again == model
    assert hash(again) == hash(model)
    assert again.describe() == model.describe()
    assert len({m.describe() for m in MODELS.values()}) == len(MODELS)


def test_the_description_is_the_same_in_another_process():
    code = (
        "from coremcmc.models.glm import GLM;"
        "print(GLM('student_t', priors={'beta': 'normal(0.1)'}).describe())"
    )
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert there.stdout.strip() == GLM("student_t", priors={"beta": "normal(0.1)"}).describe()


@each_model
def test_the_start_does_not_overflow_whatever_the_units(model):
    stored, _, _ = case(model)
    stored["x"] = stored["x"] * np.array([1e-6, 1.0, 1e6])
    rows = prepared(model, stored)
    keys = jax.random.split(jax.random.key(0), 20)
    starts = jax.vmap(lambda k: model.initial_position(k, rows))(keys)
    terms = jax.vmap(lambda p: model.loglikelihood_fn(p, rows))(starts)
    assert np.isfinite(terms).all()
    named = model.constrain_fn(jax.tree.map(lambda x: x[0], starts))
    others = [parameter.name for parameter in model._learned]
    assert list(named) == ["beta", *others]
    assert all(named[name] > 0 for name in others)


FUSED = ["gaussian", "student_t", "probit", "poisson", "negative_binomial, softplus"]


@pytest.mark.slow
@pytest.mark.parametrize("name", FUSED)
def test_a_step_in_the_gpu_kernel_is_the_same_step(name, monkeypatch):
    """Interpreted on the CPU: the position is lengthened there, and the rows are."""
    on_cpu = partial(fused_lines.sample_lines_fused, interpret=True)
    monkeypatch.setattr(slice_along_lines, "sample_lines_fused", on_cpu)
    model = MODELS[name]
    stored, _, _ = case(model, 2)
    rows = prepared(model, stored)
    target = Target(model, rows, jnp.linspace(0.0, 3.0, M))
    assert fused_lines._fits(target, model.initial_position(jax.random.key(0), rows))
    keys = jax.random.split(jax.random.key(1), 3)
    positions = jax.vmap(lambda k: model.initial_position(k, rows))(keys)
    found = []
    for fused in (False, True):
        kernel = HitAndRun(fused=fused, width=0.5)
        states = jax.vmap(kernel.init, (0, None))(positions, target)
        found.append(jax.jit(jax.vmap(kernel.step, (0, 0, None)))(keys, states, target)[0])
    for a, b in zip(*map(jax.tree.leaves, found), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)


# -- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"family": "gausian"}, r"'gausian' is unknown; choose from gaussian.*mean 'gaussian'\?"),
        ({"family": "poisson", "link": "logit"}, r"link='logit'.*'poisson'.*log, softplus"),
        ({"family": "probit", "df": 3}, "df belongs to family='student_t'"),
        ({"family": "student_t", "df": -1}, "df must be a positive number"),
        ({"family": "student_t", "df": math.inf}, "family='gaussian'"),
        ({"family": "logistic", "priors": {"sigma": Exponential(1)}}, "sigma.*'logistic' does not"),
        ({"family": "poisson", "priors": {"phi": Exponential(1)}}, "phi.*poisson.*beta, Intercept"),
        (
            {"family": "student_t", "df": 3, "priors": {"df": Gamma(2, 1)}},
            "df=3 does not learn; it learns beta, Intercept, sigma",
        ),
        ({"family": "gaussian", "priors": {"bta": Normal(1)}}, "Did you mean 'beta'"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        GLM(**arguments)


@pytest.mark.parametrize(
    ("name", "prior", "message"),
    [
        ("beta", 2.5, r"priors\['beta'\] must be the prior of a coeff"),
        ("beta", Exponential(1), r"priors\['beta'\] must be the prior of a coeff"),
        ("sigma", Normal(1), r"priors\['sigma'\] must be .* positive"),
        ("beta", "norml(1)", "'norml.1.' is unknown.*normal, student_t"),
        ("beta", "normal(a)", "'a' is not a number"),
        ("beta", "normal(0, 1)", "does not take these numbers"),
        ("beta", "normal(0)", "scale of a prior must be positive"),
        ("Intercept", Normal((1, 2)), "one scale"),
    ],
)
def test_priors_that_do_not_fit_are_refused(name, prior, message):
    with pytest.raises(ValueError, match=message):
        GLM("gaussian", priors={name: prior})


@pytest.mark.parametrize(
    ("family", "old", "name", "text"),
    [
        ("logistic", "prior", "beta", "normal(1)"),
        ("logistic", "intercept_prior", "Intercept", "cauchy(2)"),
        ("gaussian", "scale_prior", "sigma", "exponential(1)"),
        ("negative_binomial", "dispersion_prior", "phi", "half_normal(1)"),
        ("student_t", "df_prior", "df", "gamma(3, rate=0.2)"),
    ],
)
def test_the_keywords_of_before_still_work_and_name_the_new_spelling(family, old, name, text):
    expected = GLM(family, priors={name: text})
    with pytest.warns(DeprecationWarning, match=rf"{old} goes.*priors=.'{name}': '"):
        model = GLM(family, **{old: text})
    assert model == expected
    assert model != GLM(family)
    with pytest.raises(ValueError, match=rf"priors\['{name}'\] or {old}, not both"):
        GLM(family, priors={name: text}, **{old: text})


def test_a_script_that_uses_a_keyword_of_before_is_told_where():
    code = (
        "import coremcmc\n"
        "coremcmc.GLM('logistic', prior='normal(1)')\n"
        "table = {'y': [0.0, 1.0, 3.0], 'x': [1.0, 2.0, 0.0]}\n"
        "coremcmc.from_formula('y ~ x', table, family='gaussian', prior='normal(1)')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for line in (2, 4):
        assert f"<string>:{line}: DeprecationWarning: prior goes" in done.stderr


def test_a_keyword_that_never_was_is_refused():
    with pytest.raises(TypeError, match="unexpected keyword argument 'sigma_prior'"):
        GLM("gaussian", sigma_prior="exponential(1)")


@pytest.mark.parametrize(
    "make",
    [
        lambda: Normal(-1),
        lambda: Normal("wide"),
        lambda: Normal(math.nan),
        lambda: StudentT(1, df=0),
        lambda: Cauchy(1, location=math.inf),
        lambda: Normal((1, 2), location=(0, 0, 0)),
        lambda: HalfNormal((1, 2)),
        lambda: Gamma(0, 1),
    ],
)
def test_numbers_of_priors_are_checked(make):
    with pytest.raises(ValueError, match="of a prior"):
        make()


@pytest.mark.parametrize("family", ["logistic", "probit"])
def test_labels_must_be_zero_and_one(family):
    with pytest.raises(ValueError, match=r"data\['y'\] must hold the labels 0 and 1.*2 at row 1"):
        GLM(family).check_rows({"x": np.zeros((2, 1)), "y": np.array([0, 2])})


@pytest.mark.parametrize("family", ["poisson", "negative_binomial"])
def test_counts_must_be_counts(family):
    with pytest.raises(ValueError, match=r"data\['y'\] must hold counts.*1\.5 at row 1"):
        GLM(family).check_rows({"x": np.zeros((2, 1)), "y": np.array([0, 1.5])})


def test_a_prior_for_another_number_of_coefficients_is_refused():
    model = GLM("gaussian", priors={"beta": Normal((1.0, 2.0))})
    with pytest.raises(ValueError, match=r"2 coefficients, but data\['x'\] has 3 columns"):
        model.check_rows({"x": np.zeros((4, 3)), "y": np.zeros(4)})


def test_a_block_with_one_class_is_no_fault():
    """Rows may be sorted by their response, and are checked block by block."""
    assert GLM("logistic").check_rows({"x": np.zeros((2, 1)), "y": np.zeros(2)}) is None


# -- whole fits -----------------------------------------------------------------------------------


def generated(model, num_rows=4_000):
    rng = np.random.default_rng(7)
    x = rng.normal(size=(num_rows, 2))
    eta = 0.5 + x @ np.array([0.8, -0.4])
    mean = np.logaddexp(0.0, eta) if model.link == "softplus" else np.exp(eta)
    y = {
        "gaussian": lambda: eta + 1.5 * rng.normal(size=num_rows),
        "student_t": lambda: eta + 0.7 * rng.standard_t(4, num_rows),
        "logistic": lambda: rng.random(num_rows) < scipy.special.expit(eta),
        "probit": lambda: rng.random(num_rows) < scipy.special.ndtr(eta),
        "poisson": lambda: rng.poisson(mean),
        "negative_binomial": lambda: rng.poisson(mean * rng.gamma(3.0, 1 / 3.0, num_rows)),
    }[model.family]()
    return {"x": x, "y": y.astype(float)}


def numpyro_model(model, x, y):
    """The same model in NumPyro's own words."""
    prior = dist.StudentT(3, 0, 2.5)
    beta = numpyro.sample("beta", prior.expand([x.shape[1] + 1]).to_event(1))
    eta = beta[0] + x @ beta[1:]
    mean = jax.nn.softplus(eta) if model.link == "softplus" else jnp.exp(eta)
    if model.family in ("gaussian", "student_t"):
        sigma = numpyro.sample("sigma", dist.FoldedDistribution(prior))
        if model.family == "gaussian":
            likelihood = dist.Normal(eta, sigma)
        else:
            df = model.df or numpyro.sample("df", dist.Gamma(2, 0.1))
            likelihood = dist.StudentT(df, eta, sigma)
    elif model.family == "logistic":
        likelihood = dist.Bernoulli(logits=eta)
    elif model.family == "probit":
        likelihood = dist.Bernoulli(probs=jax.scipy.special.ndtr(eta))
    elif model.family == "poisson":
        likelihood = dist.Poisson(mean)
    else:
        phi = numpyro.sample("phi", dist.FoldedDistribution(dist.StudentT(3, 0, 10)))
        likelihood = dist.NegativeBinomial2(mean, phi)
    numpyro.sample("y", likelihood, obs=y)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the hot-start test has not passed")
@each_model
def test_a_fit_agrees_with_nuts_on_all_rows(model):
    data = generated(model)
    fit = coremcmc.fit(model, data, 200, num_iterations=1_000, num_draws=500, progress=False)
    assert fit.certificate.verdict == "good"
    sampler = numpyro.infer.NUTS(partial(numpyro_model, model))
    mcmc = numpyro.infer.MCMC(
        sampler,
        num_warmup=300,
        num_samples=500,
        num_chains=2,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(jax.random.key(0), **{k: jnp.asarray(v) for k, v in data.items()})
    draws = {k: np.asarray(v) for k, v in mcmc.get_samples().items()}
    ours = {k: v.reshape(-1, *v.shape[2:]) for k, v in fit.sampled.items()}
    assert set(ours) == set(draws)
    for name, nuts in draws.items():
        shift = (ours[name].mean(0) - nuts.mean(0)) / nuts.std(0)
        assert np.abs(shift).max() < 0.3, (name, shift)
        np.testing.assert_allclose(ours[name].std(0), nuts.std(0), rtol=0.25)
