"""What a user of ``from_numpyro`` sees: arguments, identity, and fits beside NUTS on all rows."""

import doctest
import functools
import inspect
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pytest
from numpyro.diagnostics import effective_sample_size
from numpyro.infer import MCMC, NUTS

import coremcmc
from coremcmc import from_numpyro
from tests.models.numpyro import numpyro_models
from tests.models.numpyro.numpyro_models import (
    CASES,
    COUNTS,
    LABELS,
    REALS,
    X,
    adapted,
    hierarchy,
    linear,
    normals,
)

REGRESSION = {"x": X, "y": REALS}
SCALE = 1.0


def with_global(x, y):
    slopes = numpyro.sample("slopes", dist.Normal(0, SCALE).expand([3]).to_event(1))
    numpyro.sample("y", dist.Normal(x @ slopes, 1.0), obs=y)


def with_prior(x, y, prior):
    numpyro.sample("y", dist.Normal(x @ numpyro.sample("slopes", prior), 1.0), obs=y)


def with_scale(scale):
    def model(x, y):
        slopes = numpyro.sample("slopes", dist.Normal(0, scale).expand([3]).to_event(1))
        numpyro.sample("y", dist.Normal(x @ slopes, 1.0), obs=y)

    return model


class ModelOfAClass:
    def __init__(self, scale):
        self.scale = scale

    def model(self, x, y=None):
        with_scale(self.scale)(x, y)

    def __call__(self, x, y=None):
        with_scale(self.scale)(x, y)


def with_keywords(**columns):
    linear(**columns)


@pytest.mark.parametrize(
    "model",
    [
        linear,
        with_keywords,
        functools.partial(with_prior, prior=dist.Normal(0, 1).expand([3]).to_event(1)),
        ModelOfAClass(2.0).model,
        ModelOfAClass(2.0),
        lambda x, y: linear(x, y),
        lambda x, y: numpyro.handlers.condition(linear, data={"y": y})(x),
        numpyro.handlers.seed(linear, 0),
    ],
)
def test_any_callable_will_do(model):
    problem = from_numpyro(model, REGRESSION)
    assert problem.model.fields == ("x", "y")
    assert "slopes" in problem.model.sites.outputs


def test_the_answer_is_a_pair_that_fit_takes():
    problem = adapted("linear")
    model, data = problem
    assert isinstance(model, coremcmc.Model)
    assert problem.model is model
    assert set(data) == {"x", "y"}
    np.testing.assert_array_equal(data["x"], X)


def test_the_example_of_the_docstring_runs():
    tests = doctest.DocTestFinder().find(from_numpyro, "from_numpyro")
    results = [doctest.DocTestRunner().run(test) for test in tests]
    assert sum(result.attempted for result in results) == 5
    assert not any(result.failed for result in results)


def test_columns_of_a_table_are_arguments():
    def one_feature(x, y):
        slope = numpyro.sample("slope", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(slope * x, 1.0), obs=y)

    _, data = from_numpyro(one_feature, pd.DataFrame({"x": X[:, 0], "y": REALS}))
    np.testing.assert_array_equal(data["x"], X[:, 0])


def test_lists_and_jax_arrays_are_arrays():
    _, data = from_numpyro(linear, {"x": jnp.asarray(X), "y": REALS.tolist()})
    assert all(isinstance(column, np.ndarray) for column in data.values())


def test_constants_are_copied():
    means = np.zeros(3)

    def model(x, y, means):
        slopes = numpyro.sample("slopes", dist.Normal(means, 1.0).to_event(1))
        numpyro.sample("y", dist.Normal(x @ slopes, 1.0), obs=y)

    adapted, _ = from_numpyro(model, REGRESSION, constants={"means": means})
    position = {"slopes": jnp.asarray([0.1, 0.2, 0.3])}
    before, identity = adapted.logprior_fn(position), adapted.describe()
    means[:] = 5.0
    assert adapted.logprior_fn(position) == before
    assert adapted.describe() == identity


def test_models_that_compute_the_same_are_equal():
    one, _ = from_numpyro(linear, REGRESSION)
    other, _ = from_numpyro(lambda x, y: linear(x, y), {"x": X[::2] + 1.0, "y": REALS[::2]})
    assert one == other
    assert hash(one) == hash(other)
    assert one.describe() == other.describe()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((with_scale(1.0), {}), (with_scale(2.0), {})),
        ((ModelOfAClass(1.0).model, {}), (ModelOfAClass(2.0).model, {})),
        (
            (with_prior, {"prior": dist.Normal(jnp.zeros(3), 1.0).to_event(1)}),
            (with_prior, {"prior": dist.Normal(jnp.zeros(3), 2.0).to_event(1)}),
        ),
    ],
)
def test_models_that_differ_are_told_apart(one, other):
    first, second = (from_numpyro(f, REGRESSION, constants=c)[0] for f, c in (one, other))
    assert first != second
    assert first.describe() != second.describe()


def test_a_model_that_has_changed_says_so(monkeypatch):
    model, _ = from_numpyro(with_global, REGRESSION)
    before = model.describe()
    assert model.identity == before
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 3.0)
    assert model.describe() != before
    again, _ = from_numpyro(with_global, REGRESSION)
    assert again != model
    position = {"slopes": jnp.ones(3)}
    assert model.logprior_fn(position) == again.logprior_fn(position)


def test_the_identity_is_the_same_in_another_process():
    names = ["logistic", "poisson_without_plate", "not_centred", "weighted", "circular"]
    program = (
        "import sys; sys.path.insert(0, '.')\n"
        "from tests.models.numpyro.numpyro_models import adapted\n"
        f"for name in {names}: print(adapted(name).model.describe())"
    )
    root = Path(inspect.getfile(numpyro_models)).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
        env={
            "PYTHONHASHSEED": "123",
            "JAX_PLATFORMS": "cpu",
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
    )
    assert done.stdout.splitlines() == [adapted(name).model.describe() for name in names]


def test_the_description_names_rows_and_parameters():
    text = adapted("linear").model.describe()
    assert text.startswith("NumPyroModel(x, y; slopes[3], sigma[]; slopes, sigma, precision; ")
    assert "\n" not in text


def test_the_adapter_works_where_jax_has_32_bits():
    with jax.enable_x64(False):
        model, _ = from_numpyro(linear, {"x": X.astype(np.float32), "y": REALS})
        identity = model.describe()
    assert identity == adapted("linear").model.describe()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({"x": X[:, :2], "y": REALS}, r"data\['x'\] has rows of shape \(2,\).*shape \(3,\)"),
        ({"x": X}, r"lacks the column\(s\) \['y'\]"),
    ],
)
def test_other_data_must_be_alike(data, reason):
    with pytest.raises(ValueError, match=f"(?s){reason}"):
        coremcmc.fit(adapted("linear").model, data, coreset_size=10, progress=False)


def test_masked_rows_may_be_anything():
    case = CASES["masked"]
    labels = np.where(case.data["keep"], LABELS, 99)
    model, _ = from_numpyro(case.model, {**case.data, "y": labels})
    assert model == adapted("masked").model


def test_supports_that_depend_on_rows_are_checked():
    case = CASES["binomial"]
    few = {**case.data, "trials": COUNTS - 1}
    with pytest.raises(ValueError, match=r"'y' at row .* is outside of the support"):
        from_numpyro(case.model, few)


def generated(num_rows):
    rng = np.random.default_rng(3)
    x = rng.standard_normal((num_rows, 4))
    chance = 1.0 / (1.0 + np.exp(1.0 - x @ np.array([0.5, -1.0, 0.3, 0.8])))
    return {"x": x, "y": (rng.random(num_rows) < chance).astype(int)}


def cauchy_logistic(x, y=None):
    """What coremcmc.LogisticRegression is."""
    beta = numpyro.sample("beta", dist.Cauchy(0, 1).expand([x.shape[1] + 1]).to_event(1))
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=beta[0] + x @ beta[1:]), obs=y)


def nuts(model, **arguments):
    sampler = MCMC(NUTS(model), num_warmup=400, num_samples=1_500, progress_bar=False)
    sampler.run(jax.random.key(1), **arguments)
    return {name: np.asarray(x) for name, x in sampler.get_samples(group_by_chain=True).items()}


def assert_agree(fit, reference):
    """Means and sds agree with those of NUTS on all rows, within Monte Carlo error.

    Four standard errors of the difference, from effective sample sizes, and 0.05 posterior sds for
    what a coreset of a few hundred rows leaves.
    """
    for name, draws in reference.items():
        both = [np.asarray(fit.sampled[name]), draws]
        sizes = [effective_sample_size(x) for x in both]
        means, sds = ([f(x, axis=(0, 1)) for x in both] for f in (np.mean, np.std))
        error = np.sqrt(1.0 / sizes[0] + 1.0 / sizes[1])
        assert np.all(np.abs(means[0] - means[1]) < (4.0 * error + 0.05) * sds[1]), name
        assert np.all(np.abs(sds[0] / sds[1] - 1.0) < 4.0 * error / np.sqrt(2.0) + 0.05), name


@pytest.mark.slow
def test_fits_as_the_built_in_family_and_as_nuts_on_all_rows():
    data = generated(8_000)
    reference = nuts(cauchy_logistic, **data)
    for problem in (from_numpyro(cauchy_logistic, data), (coremcmc.LogisticRegression(), data)):
        fit = coremcmc.fit(*problem, coreset_size=300, progress=False)
        assert fit.certificate.verdict == "good"
        assert_agree(fit, reference)


@pytest.mark.slow
def test_fits_a_hierarchy_of_groups():
    rng = np.random.default_rng(4)
    group = rng.integers(0, 6, 5_000)
    y = rng.normal(1.0, 0.7, 6)[group] + rng.standard_normal(5_000)
    data, constants = {"group": group, "y": y}, {"num_groups": 6}
    fit = coremcmc.fit(
        *from_numpyro(hierarchy, data, constants=constants), coreset_size=300, progress=False
    )
    assert fit.certificate.verdict == "good"
    assert_agree(fit, nuts(hierarchy, **data, **constants))


@pytest.mark.slow
def test_weights_of_rows_count_as_repeated_rows():
    """Rows with whole weights, against the same rows as often as their weights say."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((5_000, 3))
    y = x @ np.array([1.0, -0.5, 0.2]) + rng.standard_normal(5_000)
    weight = rng.integers(1, 4, 5_000)
    case = CASES["weighted"]
    fit = coremcmc.fit(
        *from_numpyro(case.model, {"x": x, "y": y, "weight": weight}),
        coreset_size=200,
        progress=False,
    )
    repeated = {"x": np.repeat(x, weight, axis=0), "y": np.repeat(y, weight)}

    def plain(x, y):
        numpyro.sample("y", dist.Normal(x @ normals(), 1.0), obs=y)

    assert_agree(fit, nuts(plain, **repeated))
