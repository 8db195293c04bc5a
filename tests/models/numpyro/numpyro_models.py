"""NumPyro models of many kinds on 60 generated rows, for the tests of the adapter."""

import functools
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro import handlers
from numpyro.distributions import constraints, transforms
from numpyro.infer.reparam import CircularReparam, LocScaleReparam, TransformReparam

import coremcmc

NUM_ROWS = 60
_rng = np.random.default_rng(0)
X = _rng.standard_normal((NUM_ROWS, 3))
REALS = _rng.standard_normal(NUM_ROWS)
LABELS = (_rng.random(NUM_ROWS) < 0.4).astype(np.int32)
COUNTS = _rng.poisson(3.0, NUM_ROWS).astype(np.int32)
GROUPS = _rng.integers(0, 4, NUM_ROWS).astype(np.uint8)
CLASSES = _rng.integers(0, 3, NUM_ROWS)
PAIRS = _rng.standard_normal((NUM_ROWS, 2))
KEEP = _rng.random(NUM_ROWS) < 0.7
WEIGHTS = _rng.uniform(0.5, 2.0, NUM_ROWS).astype(np.float32)


def normals(name="slopes", size=3):
    return numpyro.sample(name, dist.Normal(0, 1).expand([size]).to_event(1))


def logistic(x, y=None):
    intercept = numpyro.sample("intercept", dist.Normal(0.0, 10.0))
    slopes = numpyro.sample("slopes", dist.Cauchy(0, 1).expand([x.shape[1]]).to_event(1))
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=intercept + x @ slopes), obs=y)


def linear(x, y=None):
    slopes = numpyro.sample("slopes", dist.Normal(jnp.zeros(x.shape[1]), 2.0))
    sigma = numpyro.sample("sigma", dist.HalfNormal(2.0))
    numpyro.deterministic("precision", sigma**-2)
    mean = numpyro.deterministic("mean", x @ slopes)
    with numpyro.plate("rows", len(x)):
        numpyro.sample("y", dist.Normal(mean, sigma), obs=y)


def poisson_without_plate(x, y=None):
    with numpyro.plate("features", x.shape[1]):
        slopes = numpyro.sample("slopes", dist.StudentT(4, 0, 1))
    numpyro.sample("y", dist.Poisson(jnp.exp(x @ slopes)), obs=y)


def hierarchy(group, y=None, num_groups=None):
    centre = numpyro.sample("centre", dist.Normal(0, 1))
    spread = numpyro.sample("spread", dist.HalfCauchy(1.0))
    with numpyro.plate("groups", num_groups):
        effects = numpyro.sample("effects", dist.Normal(centre, spread))
    with numpyro.plate("rows", group.shape[0]):
        numpyro.sample("y", dist.Normal(effects[group], 1.0), obs=y)


not_centred = handlers.reparam(hierarchy, config={"effects": LocScaleReparam(0)})


@handlers.reparam(config={"effects": TransformReparam()})
def transformed_hierarchy(group, y=None, num_groups=None):
    spread = numpyro.sample("spread", dist.LogNormal(0, 1.0))
    with numpyro.plate("groups", num_groups):
        scaled = dist.TransformedDistribution(
            dist.Normal(0, 1), transforms.AffineTransform(0.5, spread)
        )
        effects = numpyro.sample("effects", scaled)
    with numpyro.plate("rows", group.shape[0]):
        numpyro.sample("y", dist.Normal(effects[group], 1.0), obs=y)


def two_sites(x, y=None, count=None):
    slopes = numpyro.sample("slopes", dist.MultivariateNormal(jnp.zeros(3), jnp.eye(3)))
    sigma = numpyro.sample("sigma", dist.Gamma(2, 2))
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.Normal(x @ slopes, sigma), obs=y)
        numpyro.sample("count", dist.Poisson(jnp.exp(0.3 * x @ slopes)), obs=count)


def pairs_with_lkj(pair):
    mean = normals("mean", 2)
    factor = numpyro.sample("factor", dist.LKJCholesky(2, 2.0))
    scale = numpyro.sample("scale", dist.HalfNormal(1).expand([2]))
    with numpyro.plate("rows", pair.shape[0]):
        covariance = dist.MultivariateNormal(mean, scale_tril=scale[:, None] * factor)
        numpyro.sample("pair", covariance, obs=pair)


def simplex_and_ordered(x, grade):
    shares = numpyro.sample("shares", dist.Dirichlet(jnp.ones(3)))
    ordered = dist.TransformedDistribution(
        dist.Normal(0, 1).expand([2]).to_event(1), transforms.OrderedTransform()
    )
    cuts = numpyro.sample("cuts", ordered)
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("kind", dist.Categorical(probs=shares), obs=grade)
        numpyro.sample("grade", dist.OrderedLogistic(x[:, 0], cuts), obs=grade)


def masked(x, y, keep):
    slopes = numpyro.sample("slopes", dist.Laplace(0, 1).expand([3]).to_event(1))
    with numpyro.plate("rows", x.shape[0]), handlers.mask(mask=keep):
        numpyro.sample("y", dist.Bernoulli(logits=x @ slopes), obs=y)


def weighted(x, y, weight):
    slopes = normals()
    with numpyro.plate("rows", x.shape[0]), handlers.scale(scale=weight):
        numpyro.sample("y", dist.Normal(x @ slopes, 1.0), obs=y)


def matrix_of_slopes(x, pair):
    slopes = numpyro.sample("slopes", dist.Normal(0, 1).expand([3, 2]).to_event(2))
    scale = numpyro.sample("scale", dist.InverseGamma(3.0, 2.0))
    with numpyro.plate("outcomes", 2, dim=-1), numpyro.plate("rows", x.shape[0], dim=-2):
        numpyro.sample("pair", dist.StudentT(5.0, x @ slopes, scale), obs=pair)


def rows_last(x, pair):
    slopes = numpyro.sample("slopes", dist.Normal(0, 1).expand([3, 2]).to_event(2))
    with numpyro.plate("outcomes", 2, dim=-2), numpyro.plate("rows", x.shape[0], dim=-1):
        numpyro.sample("pair", dist.Normal((x @ slopes).T, 1), obs=pair.T)


def transformed_rows(x, y):
    slopes = normals()
    sigma = numpyro.sample("sigma", dist.LogNormal(0, 1))
    with numpyro.plate("rows", x.shape[0]):
        logs = dist.Normal(x @ slopes, sigma)
        numpyro.sample(
            "y", dist.TransformedDistribution(logs, transforms.ExpTransform()), obs=jnp.exp(y)
        )


def dynamic_supports(y):
    low = numpyro.sample("low", dist.Normal(0, 1))
    high = numpyro.sample("high", dist.TruncatedNormal(1.0, 1.0, low=low))
    mean = numpyro.sample("mean", dist.Uniform(low, high))
    sigma = numpyro.sample("sigma", dist.ImproperUniform(constraints.positive, (), ()))
    with numpyro.plate("rows", y.shape[0]):
        numpyro.sample("y", dist.Normal(mean, sigma), obs=y)


def terms_without_rows(x, y):
    """A soft constraint and a penalty, both of which belong to the prior."""
    slopes = normals()
    numpyro.sample("zero", dist.Normal(slopes.sum(), 0.1), obs=0.0)
    numpyro.factor("penalty", -(slopes[0] ** 4))
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.Normal(x @ slopes, 1.0), obs=y)


def mixture(y):
    shares = numpyro.sample("shares", dist.Dirichlet(jnp.ones(2)))
    means = numpyro.sample("means", dist.Normal(0, 3).expand([2]).to_event(1))
    with numpyro.plate("rows", y.shape[0]):
        parts = dist.Categorical(probs=shares), dist.Normal(means, 1.0)
        numpyro.sample("y", dist.MixtureSameFamily(*parts), obs=y)


def nested_argument(batch, scale):
    slopes = numpyro.sample("slopes", dist.Normal(0, scale).expand([3]))
    numpyro.sample("y", dist.Normal(batch["x"] @ slopes, 1.0), obs=batch["y"])


def binomial(trials, successes, x, /):
    slopes = normals()
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.Binomial(trials, logits=x @ slopes), obs=successes)


def circular(angle):
    mean = numpyro.sample("mean", dist.VonMises(0.0, 1.0))
    numpyro.sample("angle", dist.VonMises(mean, 2.0), obs=angle)


class Case(NamedTuple):
    """A model with its arguments."""

    model: Any
    data: dict[str, Any]
    constants: dict[str, Any] = {}  # noqa: RUF012

    def arguments(self, rows):
        """All of the model's arguments, for NumPyro, by position where they must be."""
        if self.model is binomial:
            return tuple(rows[name] for name in self.data), {}
        return (), {**rows, **self.constants}


four = {"num_groups": 4}
CASES = {
    "logistic": Case(logistic, {"x": X, "y": LABELS}),
    "linear": Case(linear, {"x": X, "y": REALS}),
    "poisson_without_plate": Case(poisson_without_plate, {"x": X, "y": COUNTS}),
    "hierarchy": Case(hierarchy, {"group": GROUPS, "y": REALS}, four),
    "not_centred": Case(not_centred, {"group": GROUPS, "y": REALS}, four),
    "transformed_hierarchy": Case(transformed_hierarchy, {"group": GROUPS, "y": REALS}, four),
    "two_sites": Case(two_sites, {"x": X, "y": REALS, "count": COUNTS}),
    "pairs_with_lkj": Case(pairs_with_lkj, {"pair": PAIRS}),
    "simplex_and_ordered": Case(simplex_and_ordered, {"x": X, "grade": CLASSES}),
    "masked": Case(masked, {"x": X, "y": LABELS, "keep": KEEP}),
    "weighted": Case(weighted, {"x": X, "y": REALS, "weight": WEIGHTS}),
    "matrix_of_slopes": Case(matrix_of_slopes, {"x": X, "pair": PAIRS}),
    "rows_last": Case(rows_last, {"x": X, "pair": PAIRS}),
    "transformed_rows": Case(transformed_rows, {"x": X, "y": REALS}),
    "dynamic_supports": Case(dynamic_supports, {"y": REALS}),
    "terms_without_rows": Case(terms_without_rows, {"x": X, "y": REALS}),
    "mixture": Case(mixture, {"y": REALS}),
    "nested_argument": Case(nested_argument, {"batch": {"x": X, "y": REALS}}, {"scale": 2.0}),
    "binomial": Case(binomial, {"trials": COUNTS + 5, "successes": COUNTS, "x": X}),
    "circular": Case(
        handlers.reparam(circular, config={"mean": CircularReparam()}), {"angle": REALS % 3.0}
    ),
}


@functools.cache
def adapted(name):
    """The model and data of a case, made once."""
    case = CASES[name]
    return coremcmc.from_numpyro(case.model, case.data, constants=case.constants)
