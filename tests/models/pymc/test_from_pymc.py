"""What from_pymc takes, what it refuses and why, and what it leaves alone."""

import subprocess
import sys
import threading
import warnings

import jax
import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

import coremcmc
from tests.models.pymc.pymc_models import (
    COUNTS,
    GROUPS,
    NUM_ROWS,
    REALS,
    X,
    build,
    hierarchy,
    linear,
    logistic,
    loop,
    multivariate,
    pm,
    poisson_with_dims,
)


def location(value=1.0, name="m"):
    """The simplest model, with one constant to vary."""
    pm.Normal("o", pm.Normal(name, 0, value), 1, observed=pm.Data("y", REALS))


# Models whose rows cannot be weighed.


def nothing_observed():
    pm.Normal("m")


def nothing_free():
    pm.Normal("o", 0, 1, observed=pm.Data("y", REALS))


def potential():
    y, m = pm.Data("y", REALS), pm.Normal("m")
    pm.Potential("likelihood", -((y - m) ** 2).sum())


def local_by_dims():
    y = pm.Data("y", REALS, dims="obs")
    pm.Normal("o", pm.Normal("z", dims="obs"), 1, observed=y)


def local_by_length():
    pm.Normal("o", pm.Normal("z", shape=NUM_ROWS), 1, observed=pm.Data("y", REALS))


def local_by_index():
    y, index = pm.Data("y", REALS), pm.Data("index", np.arange(NUM_ROWS))
    pm.Normal("o", pm.Normal("z", shape=NUM_ROWS)[index], 1, observed=y)


def local_by_mean():
    x, y = pm.Data("x", X), pm.Data("y", REALS)
    pm.Normal("o", pm.Normal("z", x @ pm.Normal("b", shape=3), 1), 1, observed=y)


def missing_values():
    values = REALS.copy()
    values[3] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyMC says that it imputes
        pm.Normal("o", pm.Normal("m"), 1, observed=values)


def discrete():
    pm.Normal("o", pm.Poisson("m", 3), 1, observed=pm.Data("y", REALS))


def total_size():
    pm.Normal("o", pm.Normal("m"), 1, observed=pm.Data("y", REALS), total_size=1_000)


def minibatch():
    batch = pm.Minibatch(REALS, batch_size=10)
    pm.Normal("o", pm.Normal("m"), 1, observed=batch, total_size=NUM_ROWS)


def hard_coded_response():
    pm.Normal("o", pm.Normal("m"), 1, observed=REALS)


def hard_coded_covariates():
    pm.Normal("o", X @ pm.Normal("b", shape=3), 1, observed=pm.Data("y", REALS))


def hard_coded_length():
    pm.Normal("o", pm.Normal("m") * pt.ones(NUM_ROWS), 1, observed=pm.Data("y", REALS))


def two_lengths():
    y, z, m = pm.Data("y", REALS), pm.Data("z", REALS[:7]), pm.Normal("m")
    pm.Normal("o", m, 1, observed=y)
    pm.Normal("q", m, 1, observed=z)


def two_dims():
    y, z = pm.Data("y", REALS, dims="day"), pm.Data("z", X[:, 0], dims="person")
    m = pm.Normal("m")
    pm.Normal("o", m, 1, observed=y)
    pm.Normal("q", m, 1, observed=z)


def autoregression():
    y, start = pm.Data("y", REALS), pm.Normal.dist(0, 10)
    rho = pm.Normal("rho", shape=1)
    pm.AR("o", rho, sigma=1, init_dist=start, steps=NUM_ROWS - 1, observed=y)


def random_walk():
    y, start = pm.Data("y", REALS), pm.Normal.dist(0, 10)
    pm.GaussianRandomWalk("o", sigma=pm.HalfNormal("s"), init_dist=start, observed=y)


def normal_across_rows():
    y = pm.Data("y", REALS)
    covariance = pt.eye(y.shape[0]) + pm.HalfNormal("s")
    pm.MvNormal("o", pt.zeros(y.shape[0]), covariance, observed=y)


def lagged():
    y = pm.Data("y", REALS)
    pm.Normal("o", pm.Normal("m") * pt.concatenate([[0.0], y[:-1]]), 1, observed=y)


def numbered():
    y = pm.Data("y", REALS)
    pm.Normal("o", pm.Normal("m") * pt.arange(y.shape[0]), 1, observed=y)


def standardized_inside():
    x, y = pm.Data("x", X), pm.Data("y", REALS)
    scaled = (x - x.mean(axis=0)) / x.std(axis=0)
    pm.Normal("o", scaled @ pm.Normal("b", shape=3), 1, observed=y)


def centred_rare_feature():
    """A mean over rows of which nearly all are zero."""
    rare = np.zeros(NUM_ROWS)
    rare[17] = 1.0
    x, y = pm.Data("x", rare), pm.Data("y", REALS)
    pm.Normal("o", (x - x.mean()) * pm.Normal("b"), 1, observed=y)


def prior_of_rows():
    y = pm.Data("y", REALS)
    pm.Normal("o", pm.Normal("m", 0, y.std()), 1, observed=y)


class Doubled(Op):
    """An operation that JAX knows nothing of."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.asarray(2 * inputs[0])


def unknown_operation():
    pm.Normal("o", Doubled()(pm.Normal("m")), 1, observed=pm.Data("y", REALS))


def infinite_covariates():
    x, y = pm.Data("x", np.where(GROUPS == 0, np.inf, REALS)), pm.Data("y", REALS)
    pm.Normal("o", x * pm.Normal("b"), 1, observed=y)


def outside_the_support():
    pm.Poisson("o", pm.HalfNormal("m"), observed=pm.Data("y", -COUNTS - 1))


def single_number():
    pm.Normal("o", pm.Normal("m"), 1, observed=pm.Data("y", 1.0))


REFUSED = {
    nothing_observed: "no observed variables",
    nothing_free: "no free variables",
    potential: "pm.Potential terms .'likelihood'.",
    local_by_dims: "'z' is local: it has shape .40,.",
    local_by_length: "'z' is local",
    local_by_index: "'z' is local",
    local_by_mean: "'z' is local",
    missing_values: "missing values, which PyMC imputes as 'o_unobserved'",
    discrete: "free variables 'm' are discrete",
    total_size: "'o' uses total_size or pm.Minibatch",
    minibatch: "'o' uses total_size or pm.Minibatch",
    hard_coded_response: "'o' has its data inside the model.*pm.Data",
    hard_coded_covariates: "arrays of shape .40, 3. as constants.*pm.Data",
    hard_coded_length: "cannot take another number of rows than its 40",
    two_lengths: "different row axes: 'o' with shape .40,., 'q' with shape .7,.",
    two_dims: "different row axes",
    autoregression: "'o' has shape .., without an axis of rows: its distribution is over all",
    random_walk: "'o' has shape .., without an axis of rows",
    normal_across_rows: "'o' has shape .., without an axis of rows",
    lagged: "log-likelihood of a row depends on the other rows",
    numbered: "log-likelihood of a row depends on the other rows",
    standardized_inside: "log-likelihood of a row depends on the other rows",
    centred_rare_feature: "log-likelihood of a row depends on the other rows",
    prior_of_rows: "prior of 'm' is computed from the rows",
    unknown_operation: "operation Doubled, which PyTensor cannot translate to JAX",
    infinite_covariates: "pm.Data 'x' has NaN or infinite values",
    outside_the_support: "not finite at PyMC's initial point, because of the observed 'o'",
    single_number: "'o' is a single number, without rows",
}


@pytest.mark.parametrize("write", REFUSED, ids=lambda write: write.__name__)
def test_models_that_cannot_be_weighed_are_refused(write):
    with pytest.raises(ValueError, match=REFUSED[write]):
        coremcmc.from_pymc(build(write))


def test_anything_else_is_no_model():
    with pytest.raises(ValueError, match=r"must be a pymc\.Model, not 3"):
        coremcmc.from_pymc(3)


def lookup():
    """A table as long as there are rows, read by number."""
    y, group = pm.Data("y", REALS), pm.Data("group", GROUPS)
    table = pm.Data("table", np.linspace(0, 1, NUM_ROWS))
    pm.Normal("o", pm.Normal("m") * table[group], 1, observed=y)


class TestTheRowAxis:
    def test_containers_of_other_lengths_are_constants(self):
        model, data = coremcmc.from_pymc(build(hierarchy))
        assert set(model.fields) == set(data) == {"y", "x", "group"}

    def test_names_decide_where_there_are_names(self):
        def write():
            y = pm.Data("y", REALS, dims="obs")
            table = pm.Data("table", np.linspace(0, 1, NUM_ROWS), dims="entry")
            group = pm.Data("group", GROUPS, dims="obs")
            pm.Normal("o", pm.Normal("m") * table[group], 1, observed=y, dims="obs")

        assert set(coremcmc.from_pymc(build(write)).data) == {"y", "group"}

    def test_a_coincidence_of_lengths_is_found_out_and_overridden(self):
        model = build(lookup)
        with pytest.raises(ValueError, match="taken to be the containers 'y', 'group', 'table'"):
            coremcmc.from_pymc(model)
        assert set(coremcmc.from_pymc(model, rows=["y", "group"]).data) == {"y", "group"}

    @pytest.mark.parametrize(
        ("rows", "message"),
        [
            (["group"], "rows must include .'y'."),
            (["y", "z"], "rows must name pm.Data containers of the model .y, group, table., not"),
            ([], "rows must name"),
            (["y"], "cannot take another number of rows"),
        ],
    )
    def test_a_wrong_choice_is_refused(self, rows, message):
        with pytest.raises(ValueError, match=message):
            coremcmc.from_pymc(build(lookup), rows=rows)

    def test_columns_that_the_likelihood_does_not_read_can_stratify(self):
        def write():
            pm.Data("region", GROUPS)
            location()

        model, data = coremcmc.from_pymc(build(write))
        assert model.fields == ("y",)
        assert set(data) == {"region", "y"}


class TestIdentity:
    def test_the_same_model_with_other_rows_is_equal_and_compiles_once(self):
        first, data = coremcmc.from_pymc(build(linear))
        pymc_model = build(linear)
        pymc_model.set_data("x", X[::-1].copy())
        pymc_model.set_data("y", REALS[::-1] + 1.0)
        second, other = coremcmc.from_pymc(pymc_model)
        assert first == second
        assert first is not second
        assert first.describe() == second.describe()
        traces = []

        @jax.jit
        def total(rows, position):
            traces.append(1)
            return first.loglikelihood_fn(position, first.prepare_rows(rows)).sum()

        position = dict(first.point)
        assert total(data, position) != total(other, position)
        assert len(traces) == 1

        static = jax.jit(lambda model, p: model.logprior_fn(p), static_argnums=0)
        static(first, position)
        static(second, position)
        assert static._cache_size() == 1

    def test_other_constants_names_and_tables_are_told_apart(self):
        def table(scale):
            def write():
                y, group = pm.Data("y", REALS), pm.Data("group", GROUPS)
                entries = pm.Data("table", scale * np.arange(4.0))
                pm.Normal("o", pm.Normal("m") * entries[group], 1, observed=y)

            return write

        def start(value):
            return lambda: pm.Normal(
                "o", pm.Normal("m", initval=value), 1, observed=pm.Data("y", REALS)
            )

        writers = [lambda: location(1.0), lambda: location(2.0), lambda: location(1.0, "n")]
        writers += [table(1.0), table(2.0), start(0.0), start(1.0)]
        described = [coremcmc.from_pymc(build(write)).model.describe() for write in writers]
        assert described[5] == described[0]  # zero is where PyMC starts
        assert len(set(described)) == 6


class TestInitialPosition:
    def test_pymcs_point_with_jitter(self):
        def write():
            y = pm.Data("y", REALS)
            pm.Normal("o", pm.Normal("m", initval=5.0), pm.HalfNormal("s"), observed=y)

        pymc_model = build(write)
        model, data = coremcmc.from_pymc(pymc_model)
        rows = model.prepare_rows(data)
        keys = jax.random.split(jax.random.key(0), 200)
        drawn = jax.jit(jax.vmap(lambda key: model.initial_position(key, rows)))(keys)
        for name, point in pymc_model.initial_point().items():
            jitter = np.asarray(drawn[name]) - point
            assert -1.0 <= jitter.min() < -0.9
            assert 0.9 < jitter.max() <= 1.0

    def test_no_jitter_out_of_the_support(self):
        def write():
            y = pm.Data("y", REALS)
            pm.Normal("o", 0, pm.Normal("sigma", initval=0.3), observed=y)

        model, data = coremcmc.from_pymc(build(write))
        rows = model.prepare_rows(data)
        keys = jax.random.split(jax.random.key(0), 50)
        drawn = jax.jit(jax.vmap(lambda key: model.initial_position(key, rows)))(keys)["sigma"]
        assert (drawn > 0).all()
        assert 5 < np.sum(np.asarray(drawn) == 0.3) < 45


class TestRows:
    def test_rows_of_another_shape_are_refused(self):
        model, data = coremcmc.from_pymc(build(logistic))
        with pytest.raises(ValueError, match=r"data\['x'\] has shape .40, 2."):
            model.check_rows({**data, "x": data["x"][:, :2]})

    def test_fractions_are_not_cut_to_integers(self):
        model, data = coremcmc.from_pymc(build(poisson_with_dims))
        model.check_rows({**data, "y": data["y"].astype(float)})
        for bad in (0.5, 2.0**40):
            with pytest.raises(ValueError, match=r"data\['y'\] must hold integers of type int"):
                model.check_rows({**data, "y": data["y"] + bad})

    def test_rows_outside_the_support_are_named(self):
        model, data = coremcmc.from_pymc(build(poisson_with_dims))
        y = data["y"].copy()
        y[17] = -1
        with pytest.raises(ValueError, match=r"log-likelihood of row 17 is -inf.*1 such rows"):
            model.check_rows({**data, "y": y})

    def test_deterministics_of_rows_are_left_out(self):
        model, _ = coremcmc.from_pymc(build(poisson_with_dims))
        assert model.names == ("slopes",)


SCRIPT = """
import os, sys
import jax
assert not jax.config.jax_enable_x64
flags = os.environ.get("XLA_FLAGS")
import pytensor
assert pytensor.config.cxx == ""
sys.path.insert(0, {root!r})
import coremcmc
from tests.models.pymc.pymc_models import build, hierarchy, loop, multivariate
for write in (hierarchy, multivariate, loop):
    print(coremcmc.from_pymc(build(write)).model.describe())
assert not jax.config.jax_enable_x64
assert os.environ.get("XLA_FLAGS") == flags
assert len(jax.devices()) == 1
assert not [f for _, _, files in os.walk({folder!r}) for f in files if f.endswith(".so")]
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS")
def test_the_process_is_left_as_it_was_and_no_compiler_is_needed(tmp_path, request, monkeypatch):
    """In a new process, with other hash seeds: there, too, descriptions are the same."""
    script = SCRIPT.format(root=str(request.config.rootpath), folder=str(tmp_path))
    monkeypatch.setenv("PYTENSOR_FLAGS", f"cxx=,base_compiledir={tmp_path}")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    here = [
        coremcmc.from_pymc(build(write)).model.describe()
        for write in (hierarchy, multivariate, loop)
    ]
    assert done.stdout.splitlines() == here


def test_a_local_setting_of_64_bits_is_not_made_global():
    """Tests run inside jax.enable_x64(True); the translation to JAX must not see that as global."""
    coremcmc.from_pymc(build(location))
    found = []
    thread = threading.Thread(target=lambda: found.append(jax.config.jax_enable_x64))
    thread.start()
    thread.join()
    assert found == [False]
