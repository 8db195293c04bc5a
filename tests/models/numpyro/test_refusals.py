"""NumPyro models whose rows cannot be weighed are refused, with the reason and a remedy."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers, primitives
from numpyro.contrib.control_flow import scan

import coremcmc
from tests.models.numpyro.numpyro_models import (
    COUNTS,
    GROUPS,
    KEEP,
    LABELS,
    NUM_ROWS,
    PAIRS,
    REALS,
    X,
    linear,
    logistic,
    normals,
    poisson_without_plate,
)

REGRESSION = {"x": X, "y": REALS}
GROUPED = {"group": GROUPS, "y": REALS}


def observe(mean, y):
    numpyro.sample("y", dist.Normal(mean, 1.0), obs=y)


def local_in_plate(x, y):
    slopes = normals()
    with numpyro.plate("rows", len(y)):
        observe(x @ slopes + numpyro.sample("error", dist.Normal(0, 1)), y)


def local_without_plate(x, y):
    observe(x @ normals() + normals("error", len(y)), y)


def imputed(x, y, keep):
    numpyro.sample("y", dist.Normal(x @ normals(), 1.0), obs=y, obs_mask=keep)


def discrete(x, y):
    observe(x[:, 0] * numpyro.sample("switch", dist.Bernoulli(0.5)), y)


def delta(x, y):
    observe(x @ normals() + numpyro.sample("shift", dist.Delta(1.0)), y)


def on_a_sphere(x, y):
    observe(x @ numpyro.sample("direction", dist.ProjectedNormal(jnp.ones(3))), y)


def one_event(x, y):
    numpyro.sample("y", dist.Normal(x @ normals(), 1.0).to_event(1), obs=y)


def gaussian_process(x, y):
    scale = numpyro.sample("scale", dist.HalfNormal(1.0))
    kernel = scale * jnp.exp(-((x[:, :1] - x[:, 0]) ** 2)) + jnp.eye(len(y))
    numpyro.sample("y", dist.MultivariateNormal(jnp.zeros(len(y)), kernel), obs=y)


def every_row_with_every_row(x, y):
    observe((x @ normals())[:, None], y)


def flattened(pair):
    observe(numpyro.sample("mean", dist.Normal(0, 1)), pair.reshape(-1))


def autoregressive(x, y):
    observe(x @ normals() + 0.3 * jnp.concatenate([jnp.zeros(1), y[:-1]]), y)


def rarely_autoregressive(x, y):
    lag = jnp.concatenate([jnp.zeros(1), y[:-1]])
    numpyro.sample("y", dist.Bernoulli(logits=x @ normals() + 0.3 * lag), obs=y)


def standardized_inside(x, y):
    observe(((x - x.mean(0)) / x.std(0)) @ normals(), y)


def by_position(x, y):
    observe(x @ normals() + jnp.arange(len(y)), y)


def in_a_scan(y):
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))

    def step(state, value):
        state = numpyro.sample("state", dist.Normal(state, sigma))
        return state, numpyro.sample("y", dist.Normal(state, 1.0), obs=value)

    scan(step, 0.0, y)


def in_a_loop(y):
    mean = numpyro.sample("mean", dist.Normal(0, 1))
    for i in range(len(y)):
        numpyro.sample(f"y{i}", dist.Normal(mean, 1.0), obs=y[i])


def factor_by_row(x, y):
    numpyro.factor("hidden", -0.5 * (y - x @ normals()) ** 2)


def factor_beside_rows(x, y):
    mean = x @ normals()
    numpyro.factor("hidden", -0.5 * jnp.sum((y - mean) ** 2))
    observe(mean, y)


def factor_in_plate(x, y):
    slopes = normals()
    with numpyro.plate("rows", len(y)), handlers.mask(mask=y > 0):
        numpyro.factor("hidden", -0.5 * (y - x @ slopes) ** 2)


def subsampled(x, y):
    slopes = normals()
    with numpyro.plate("rows", len(y), subsample_size=10) as index:
        observe(x[index] @ slopes, y[index])


def scaled(x, y):
    slopes = normals()
    with handlers.scale(scale=10.0):
        observe(x @ slopes, y)


def captured_observations(x):
    observe(x @ normals(), REALS)


def captured_features(y):
    observe(X @ normals(), y)


def all_captured(y):
    observe(X @ normals(), REALS)


def more_captured(x, y):
    slopes = normals()
    observe(x @ slopes, y)
    numpyro.sample("other", dist.Normal(X @ slopes, 1.0), obs=REALS)


def plate_of_fixed_size(x, y, size):
    slopes = normals()
    with numpyro.plate("rows", size):
        observe(x @ slopes, y)


def optimized(x, y):
    observe(x @ normals() + numpyro.param("shift", jnp.zeros(())), y)


def mutable(x, y):
    primitives.mutable("state", {"value": 1.0})
    observe(x @ normals(), y)


def random(x, y):
    observe(x @ normals() + jax.random.normal(numpyro.prng_key()), y)


def groups_by_numpy(group, y):
    observe(normals("effects", len(np.unique(group)))[group], y)


def groups_by_maximum(group, y):
    observe(normals("effects", int(group.max()) + 1)[group], y)


def branch_on_values(x, y):
    observe(x @ normals() if y.sum() > 0 else x[:, 0], y)


def empirical_prior(x, y):
    observe(x @ numpyro.sample("slopes", dist.Normal(0, x.std(0)).to_event(1)), y)


def prior_by_count(x, y):
    wide = dist.Normal(0, 1 / np.sqrt(len(y))).expand([3]).to_event(1)
    observe(x @ numpyro.sample("slopes", wide), y)


def narrow(x, y):
    mean = (x @ normals()).astype(jnp.float32)
    numpyro.sample("y", dist.Normal(mean, jnp.float32(1)), obs=y.astype(jnp.float32))


def no_parameters(x, y):
    observe(x[:, 0], y)


def no_observations(x):
    normals()


def broken(x, y):
    observe(x @ normals(size=5), y)


RARE = {"x": np.resize(X, (5_000, 3)), "y": np.eye(1, 5_000, 77)[0]}
REFUSED = [
    (local_in_plate, REGRESSION, {}, "'error' is local.*Integrate it out"),
    (local_without_plate, REGRESSION, {}, "'error' is local"),
    (imputed, {**REGRESSION, "keep": KEEP}, {}, "'y_unobserved' is local"),
    (linear, {"x": X}, {}, "'y' is local.*y were left at None"),
    (logistic, {"x": X}, {}, "'y' is discrete.*y were left at None"),
    (discrete, REGRESSION, {}, "'switch' is discrete.*MixtureSameFamily"),
    (delta, REGRESSION, {}, "'shift' is sampled from a Delta.*deterministic"),
    (on_a_sphere, REGRESSION, {}, "'direction' has support.*reparam"),
    (one_event, REGRESSION, {}, r"'y' are not separable.*shape \(\).*to_event"),
    (gaussian_process, REGRESSION, {}, "'y' are not separable"),
    (every_row_with_every_row, REGRESSION, {}, r"'y' are not separable.*\(31, 31\)"),
    (flattened, {"pair": PAIRS}, {}, r"'y' are not separable.*\(62,\).*axis of their own"),
    (autoregressive, REGRESSION, {}, "not separable.*rows around it"),
    (rarely_autoregressive, RARE, {}, "not separable.*rows around it"),
    (standardized_inside, REGRESSION, {}, "not separable.*before the model"),
    (by_position, REGRESSION, {}, "not separable.*rows around it"),
    (in_a_scan, {"y": REALS}, {}, "control_flow.*cumsum"),
    (in_a_loop, {"y": REALS}, {}, "sites .*depend on the number of rows: 'y18'"),
    (factor_by_row, REGRESSION, {}, r"factor\('hidden'\) is computed from the rows"),
    (factor_beside_rows, REGRESSION, {}, r"factor\('hidden'\) is computed from the rows"),
    (factor_in_plate, REGRESSION, {}, r"factor\('hidden'\) is computed from the rows"),
    (subsampled, REGRESSION, {}, "'rows' has subsample_size=10"),
    (scaled, REGRESSION, {}, "'y' is under numpyro.handlers.scale"),
    (handlers.scale(linear, 2.0), REGRESSION, {}, "'slopes' is under numpyro.handlers.scale"),
    (captured_observations, {"x": X}, {}, "runs on all 60 rows, but not on 31.*outside the model"),
    (captured_features, {"y": REALS}, {}, "runs on all 60 rows, but not on 31"),
    (handlers.condition(linear, {"y": REALS}), {"x": X}, {}, "runs on all 60 rows, but not on"),
    (all_captured, {"y": REALS}, {}, "'y' has 60 entries.*does not depend on them"),
    (more_captured, REGRESSION, {}, "'other' has 60 entries.*does not depend on them"),
    (linear, {"y": REALS}, {"x": X}, r"constant\(s\) x have 60 rows"),
    (plate_of_fixed_size, REGRESSION, {"size": NUM_ROWS}, "'rows' has the fixed size 60"),
    (optimized, REGRESSION, {}, r"numpyro.param.*prior.*site 'shift'"),
    (mutable, REGRESSION, {}, "numpyro.mutable.*leave it out"),
    (random, REGRESSION, {}, "numpyro.prng_key.*leave it out"),
    (groups_by_numpy, GROUPED, {}, "values of its rows.*constants"),
    (groups_by_maximum, GROUPED, {}, "values of its rows.*constants"),
    (branch_on_values, REGRESSION, {}, "values of its rows"),
    (empirical_prior, REGRESSION, {}, "prior of 'slopes' is computed from the rows"),
    (prior_by_count, REGRESSION, {}, "prior depends on the number of rows"),
    (narrow, REGRESSION, {}, "32 bits.*float32"),
    (no_parameters, REGRESSION, {}, "no parameters"),
    (no_observations, {"x": X}, {}, "no observed site depends on the rows"),
    (broken, REGRESSION, {}, "fails on data: TypeError"),
    (linear, {"y": REALS}, {}, r"needs the argument\(s\) x"),
    (linear, {"x": X, "z": REALS}, {}, r"no argument\(s\) z; it takes x, y.*condition"),
    (linear, REGRESSION, {"y": 0.0}, r"y are both in data and in constants"),
    (linear, {"x": X, "y": REALS[:-1]}, {}, "differ in their number of rows"),
    (linear, {"x": X, "y": np.where(REALS > 1, np.nan, REALS)}, {}, r"'y'\] has NaN"),
    (linear, {"x": X, "y": np.array(["a"] * NUM_ROWS)}, {}, "must hold numbers"),
    (linear, {}, {}, "needs the argument"),
    (linear, [X, REALS], {}, "must map names"),
    ("linear", REGRESSION, {}, "model must be a NumPyro model"),
    (logistic, {"x": X, "y": LABELS + 1}, {}, "'y' at row 3 is outside of the support"),
    (poisson_without_plate, {"x": X, "y": -COUNTS}, {}, "'y' at row 0 is outside of the support"),
    (poisson_without_plate, {"x": 1e6 * X, "y": COUNTS}, {}, "not finite at any.*Standardize"),
]


@pytest.mark.parametrize(
    ("model", "data", "constants", "reason"),
    REFUSED,
    ids=[f"{getattr(case[0], '__name__', 'text')}-{i}" for i, case in enumerate(REFUSED)],
)
def test_refused(model, data, constants, reason):
    with pytest.raises(ValueError, match=f"(?s){reason}"):
        coremcmc.from_numpyro(model, data, constants=constants)


def test_without_numpyro_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpyro", None)
    with pytest.raises(ImportError, match=r"pip install 'coremcmc\[numpyro\]'"):
        coremcmc.from_numpyro(linear, REGRESSION)
