"""PyMC models of many kinds on 40 generated rows, for the tests of the adapter."""

import warnings

import numpy as np

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # PyMC 6 imports PyTensor's old names
    import pymc as pm

import pytensor
import pytensor.tensor as pt

NUM_ROWS = 40
_rng = np.random.default_rng(0)
X = _rng.normal(size=(NUM_ROWS, 3))
REALS = _rng.normal(size=NUM_ROWS)
COUNTS = _rng.poisson(3, NUM_ROWS)
LABELS = _rng.binomial(1, 0.4, NUM_ROWS)
GROUPS = _rng.integers(0, 4, NUM_ROWS)
CLASSES = _rng.integers(0, 3, NUM_ROWS)
POSITIVE = np.abs(_rng.normal(size=NUM_ROWS)) + 0.1
PAIRS = _rng.normal(size=(NUM_ROWS, 2))
SERIES = _rng.normal(size=(NUM_ROWS, 6)).cumsum(axis=1)
ordered = pm.distributions.transforms.ordered


def logistic():
    x, y = pm.Data("x", X), pm.Data("y", LABELS)
    eta = pm.Normal("intercept", 0, 2) + x @ pm.Cauchy("slopes", 0, 1, shape=3)
    pm.Bernoulli("o", logit_p=eta, observed=y)


def linear():
    x, y = pm.Data("x", X), pm.Data("y", REALS)
    pm.Normal("o", x @ pm.Normal("slopes", shape=3), pm.HalfCauchy("sigma", 1), observed=y)


def poisson_with_dims():
    """Coordinates given to the model: the dimension has a length of its own."""
    pm.modelcontext(None).add_coords({"obs": range(NUM_ROWS), "feature": ["a", "b", "c"]})
    x = pm.Data("x", X, dims=("obs", "feature"))
    y = pm.Data("y", COUNTS, dims="obs")
    offset = pm.Data("offset", np.log(POSITIVE), dims="obs")
    slopes = pm.Normal("slopes", dims="feature")
    rate = pm.Deterministic("rate", pm.math.exp(x @ slopes + offset), dims="obs")
    pm.Poisson("o", rate, observed=y, dims="obs")


def dims_from_data():
    """Dimensions that the containers introduce, and a shape that follows the data."""
    y = pm.Data("y", REALS, dims="obs")
    base = pm.Normal("base") * pt.ones(y.shape[0])
    pm.StudentT("o", nu=4, mu=base, sigma=pm.Exponential("s", 1), observed=y, dims="obs")


def hierarchy():
    y, x, group = pm.Data("y", REALS), pm.Data("x", X), pm.Data("group", GROUPS)
    table = pm.Data("table", np.array([0.5, -0.5, 0.25, 1.0]))  # of groups, not of rows
    spread = pm.HalfNormal("spread")
    effect = pm.Normal("effect", pm.Normal("mean") + table, spread, shape=4)
    pm.Deterministic("contrast", effect - effect.mean())
    pm.Normal("o", effect[group] + x[:, 0] * pm.Normal("slope"), 0.5, observed=y)


def noncentred():
    y, group = pm.Data("y", REALS), pm.Data("group", GROUPS)
    scale = pm.HalfNormal("scale")
    effect = pm.Deterministic("effect", scale * pm.ZeroSumNormal("raw", shape=4))
    pm.Normal("o", effect[group], pm.InverseGamma("sigma", 2, 1), observed=y)


def multivariate():
    y = pm.Data("y", PAIRS)
    cholesky, *_ = pm.LKJCholeskyCov("L", n=2, eta=2, sd_dist=pm.HalfNormal.dist(1))
    pm.MvNormal("o", pm.Normal("mean", shape=2), chol=cholesky, observed=y)


def mixture():
    y = pm.Data("y", REALS)
    mean = pm.Normal("mean", 0, 1, shape=2, transform=ordered, initval=[-1.0, 1.0])
    pm.NormalMixture("o", pm.Dirichlet("w", np.ones(2)), mean, pm.HalfNormal("s"), observed=y)


def mixture_of_kinds():
    y, weight = pm.Data("y", REALS), pm.Beta("weight", 1, 1)
    kinds = [pm.Normal.dist(pm.Normal("mean"), 1), pm.StudentT.dist(nu=3, mu=0, sigma=2)]
    pm.Mixture("o", w=pt.stack([weight, 1 - weight]), comp_dists=kinds, observed=y)


def custom_density():
    def logp(value, mean, scale):
        return -pt.log1p(((value - mean) / scale) ** 2) - pt.log(scale * np.pi)

    y = pm.Data("y", REALS)
    pm.CustomDist("o", pm.Normal("mean"), pm.HalfNormal("scale"), logp=logp, observed=y)


def custom_generator():
    def draw(mean, scale, size):
        return pt.exp(pm.Normal.dist(mean, scale, size=size))

    y = pm.Data("y", POSITIVE)
    pm.CustomDist("o", pm.Normal("mean"), pm.HalfNormal("scale"), dist=draw, observed=y)


def two_observed():
    x, y, z = pm.Data("x", X), pm.Data("y", REALS), pm.Data("z", LABELS)
    slopes = pm.Normal("slopes", shape=3)
    pm.Normal("o", x @ slopes, pm.HalfNormal("sigma"), observed=y)
    pm.Bernoulli("q", logit_p=x @ (slopes * 2), observed=z)


def binomial_of_sizes():
    """Integers of 32 bits in special functions."""
    x, n = pm.Data("x", X), pm.Data("n", np.full(NUM_ROWS, 9))
    y = pm.Data("y", COUNTS.clip(0, 9))
    pm.Binomial("o", n=n, logit_p=x @ pm.Normal("slopes", shape=3), observed=y)


def negative_binomial():
    x, y = pm.Data("x", X), pm.Data("y", COUNTS)
    mean = pm.math.exp(x @ pm.Normal("slopes", shape=3))
    pm.NegativeBinomial("o", mu=mean, alpha=pm.Gamma("alpha", 2, 1), observed=y)


def censored():
    """Needs exp(x²) erfc(x), which JAX has not."""
    x, y = pm.Data("x", X), pm.Data("y", REALS.clip(-1, 1))
    latent = pm.Normal.dist(x @ pm.Normal("slopes", shape=3), pm.HalfNormal("sigma"))
    pm.Censored("o", latent, lower=-1, upper=1, observed=y)


def ordinal():
    x, y = pm.Data("x", X), pm.Data("y", CLASSES)
    cut = pm.Normal("cut", 0, 3, shape=2, transform=ordered, initval=[-1.0, 1.0])
    pm.OrderedLogistic("o", eta=x @ pm.Normal("slopes", shape=3), cutpoints=cut, observed=y)


def categorical():
    x, y = pm.Data("x", X), pm.Data("y", CLASSES)
    p = pm.math.softmax(x @ pm.Normal("slopes", shape=(3, 3)), axis=1)
    pm.Categorical("o", p=p, observed=y)


def walks():
    """Every row a random walk: steps depend on each other, rows do not."""
    y = pm.Data("y", SERIES)
    first = pm.Normal.dist(0, 10)
    sigma = pm.HalfNormal("sigma")
    pm.GaussianRandomWalk("o", pm.Normal("drift"), sigma, init_dist=first, steps=5, observed=y)


def loop():
    """A scan over the features of a row."""
    x, y, rate = pm.Data("x", X), pm.Data("y", REALS), pm.Normal("rate")
    states = pytensor.scan(
        lambda entry, state, rate: state * pt.tanh(rate) + entry,
        sequences=[x.T],
        outputs_info=[pt.zeros_like(x[:, 0])],
        non_sequences=[rate],
        return_updates=False,
    )
    pm.Normal("o", states[-1], pm.HalfNormal("sigma"), observed=y)


MODELS = {  # and whether a linear predictor is to be found
    logistic: True,
    linear: True,
    poisson_with_dims: True,
    dims_from_data: True,
    hierarchy: True,
    noncentred: False,
    multivariate: False,
    mixture: False,
    mixture_of_kinds: False,
    custom_density: False,
    custom_generator: False,
    two_observed: False,
    binomial_of_sizes: True,
    negative_binomial: True,
    censored: True,
    ordinal: True,
    categorical: False,
    walks: False,
    loop: False,
}


def build(write):
    """Return the PyMC model that a function writes."""
    with pm.Model() as model:
        write()
    return model
