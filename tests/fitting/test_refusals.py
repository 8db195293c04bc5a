"""Bad input is refused before any compilation, by name, with a remedy."""

import functools
import os
import pickle
from dataclasses import dataclass, field

import jax.numpy as jnp
import numpy as np
import pytest

import coremcmc
from coremcmc import (
    Fit,
    FitError,
    FunctionModel,
    LinearRegression,
    LogisticRegression,
    PoissonRegression,
    SparseRegression,
    Stratified,
)
from coremcmc.algorithm.loop import run_piece
from coremcmc.fitting import settings
from coremcmc.kernels import HitAndRun

paper_fit = functools.partial(coremcmc.fit, preset="paper")

pytestmark = pytest.mark.filterwarnings("ignore:the hot-start test has not passed")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((100, 2))
Y = RNG.integers(0, 2, 100)


def broken(x, index, value):
    x = x.astype(float)
    x[index] = value
    return x


CASES = {
    "nan in x": ({"data": {"x": broken(X, (7, 1), np.nan), "y": Y}}, r"data\['x'\].*NaN.*row 7"),
    "inf in y": ({"data": {"x": X, "y": broken(Y, 3, np.inf)}}, r"data\['y'\].*row 3"),
    "labels": ({"data": {"x": X, "y": Y + 1}}, r"data\['y'\].*labels 0 and 1.*2"),
    "negative counts": (
        {"model": PoissonRegression(), "data": {"x": X, "y": Y - 1}},
        r"data\['y'\].*counts.*-1",
    ),
    "fractional counts": (
        {"model": PoissonRegression(), "data": {"x": X, "y": Y + 0.5}},
        r"data\['y'\].*counts.*\.5",
    ),
    "row counts": ({"data": {"x": X, "y": Y[:99]}}, "number of rows.*100.*99"),
    "empty": ({"data": {"x": X[:0], "y": Y[:0]}}, "data is empty"),
    "nothing": ({"data": {}}, "data is empty"),
    "vector x": ({"data": {"x": X[:, 0], "y": Y}}, r"data\['x'\].*matrix.*reshape"),
    "missing column": ({"data": {"x": X, "z": Y}}, r"lacks.*\['y'\]"),
    "text": ({"data": {"x": X, "y": np.array(["a"] * 100)}}, r"data\['y'\].*numbers"),
    "tuple length": ({"data": (X,)}, "tuple of 1 arrays.*reads 2"),
    "bare array": ({"data": X}, "mapping with the columns x, y"),
    "M too small": ({"coreset_size": 1}, "coreset_size must be at least 2, but is 1"),
    "M too large": ({"coreset_size": 101}, "coreset_size must be at most 100"),
    "K": ({"num_chains": 1}, "num_chains must be at least 2"),
    "S": ({"subsample_size": 101}, "subsample_size must be at most 100"),
    "S zero": ({"subsample_size": 0}, "subsample_size must be at least 1"),
    "T": ({"num_iterations": 0}, "num_iterations must be at least 1"),
    "thin": ({"thin": 10**9}, "thin must be at most"),
    "preset": ({"preset": "best"}, "preset='best' is unknown; choose from default, paper"),
    "kernel": ({"kernel": "nuts"}, "kernel='nuts' is unknown.*hit_and_run"),
    "kernel object": ({"kernel": 3}, "kernel must be a name.*hit_and_run"),
    "optimizer": ({"optimizer": "sgd"}, "optimizer='sgd' is unknown.*hot_dog"),
    "optimizer object": ({"optimizer": 0.1}, "optimizer must be a name.*or an optax"),
    "selection": ({"selection": "best"}, "selection='best' is unknown.*uniform"),
    "selection object": ({"selection": 3}, "selection must be"),
    "selection repeats": ({"selection": np.zeros(10, int)}, "distinct row indices"),
    "selection range": ({"selection": np.arange(95, 105)}, "from 0 to 99"),
    "constant column": (
        {"selection": Stratified("y"), "data": {"x": X, "y": 0 * Y}},
        "'y' is constant",
    ),
    "no such column": ({"selection": Stratified("z")}, "no column 'z'.*x.*y"),
    "seed": ({"seed": -1}, "seed must lie in 0 to"),
    "large seed": ({"seed": 2**32}, "seed must lie in 0 to"),
    "hot start": ({"hot_start": "yes"}, "hot_start must be"),
    "weights": ({"initial_weights": -np.ones(10)}, "initial_weights.*none negative"),
    "weights name": ({"initial_weights": "best"}, "initial_weights must be"),
    "bound": ({"max_weight_sum": 50.0}, "sum to 100.*max_weight_sum"),
    "bound sign": ({"max_weight_sum": 0.0}, "max_weight_sum must be positive"),
    "certificate": ({"certificate": "guess"}, r"certificate must be True.*'estimate'.*or False"),
    "estimate of the paper": ({"certificate": "estimate"}, "needs the control variate"),
    "estimate of a discrete model": (
        {"model": SparseRegression(), "certificate": "estimate", "preset": "default"},
        "needs the control variate.*certificate=True",
    ),
    "returned": ({"returned_weights": "best"}, "returned_weights must be"),
    "start shape": ({"initial_positions": {"beta": np.zeros((3, 3))}}, "initial_positions.*chains"),
    "start value": (
        {"initial_positions": {"beta": np.full((2, 3), np.inf)}},
        "log density is.*chain 0 starts",
    ),
    "resume": ({"resume": True}, "resume=True needs checkpoint"),
    "folder": ({"checkpoint": "/nowhere/at/all/run.npz"}, "folder.*does not exist"),
    "a folder": ({"checkpoint": "/"}, "is a folder"),
}


CASES |= {
    "masked": ({"data": {"x": np.ma.masked_greater(X, 1.0), "y": Y}}, "masked entries"),
    "kernel class": ({"kernel": HitAndRun}, r"HitAndRun\(\)"),
    "selection class": ({"selection": Stratified}, "selection must be"),
    "weights kind": ({"initial_weights": ["a"] * 10}, "initial_weights must be numbers"),
    "discrete model": (
        {"model": SparseRegression(), "kernel": "hit_and_run"},
        "SparseRegression has other parameters.*spike_slab_gibbs",
    ),
    "other kernel": ({"kernel": "gaussian_exact"}, "GaussianLocation only.*hit_and_run"),
}


@pytest.mark.parametrize("case", CASES)
def test_refused(case):
    changes, message = CASES[case]
    arguments = {
        "model": LogisticRegression(),
        "data": {"x": X, "y": Y},
        "coreset_size": 10,
        **changes,
    }
    before = run_piece._cache_size()
    with pytest.raises(ValueError, match=message):
        paper_fit(**arguments)
    assert run_piece._cache_size() == before


def test_numbers_of_the_wrong_kind_are_refused():
    """Below ``fit``, whose annotations the tests enforce and a user's Python does not."""
    with pytest.raises(ValueError, match="seed must be an integer"):
        settings.check_seed(1.5)
    with pytest.raises(ValueError, match="num_chains must be an integer"):
        settings._count("num_chains", 2.5, 2, 10)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_folder_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(ValueError, match="cannot write"):
        paper_fit(LogisticRegression(), (X, Y), 10, checkpoint=tmp_path / "run.npz")


def test_an_unwritable_file_system_is_refused(tmp_path, monkeypatch):
    def refuse(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with pytest.raises(ValueError, match=r"cannot write to the folder.*Permission denied"):
        paper_fit(LogisticRegression(), (X, Y), 10, checkpoint=tmp_path / "run.npz")


def test_a_checkpoint_is_not_overwritten_and_not_mistaken(tmp_path):
    path = tmp_path / "run.npz"
    options = {"num_iterations": 20, "checkpoint": path}
    paper_fit(LogisticRegression(), (X, Y), 10, **options)
    content = path.read_bytes()
    with pytest.raises(ValueError, match=r"exists[.] Pass resume=True"):
        paper_fit(LogisticRegression(), (X, Y), 10, **options)
    options["resume"] = True
    with pytest.raises(ValueError, match=r"another problem.*seed: 0 there, 1 here"):
        paper_fit(LogisticRegression(), (X, Y), 10, seed=1, **options)
    with pytest.raises(ValueError, match=r"another problem.*data"):
        paper_fit(LogisticRegression(), (X + 1, Y), 10, **options)
    with pytest.raises(ValueError, match=r"another problem.*model"):
        paper_fit(LinearRegression(), (X, Y), 10, **options)
    with pytest.raises(ValueError, match=r"another problem.*coreset_size: 10 there, 11 here"):
        paper_fit(LogisticRegression(), (X, Y), 11, **options)
    with pytest.raises(ValueError, match=r"another problem.*optimizer"):
        paper_fit(LogisticRegression(), (X, Y), 10, optimizer="dog", **options)
    with pytest.raises(ValueError, match=r"beyond\s+num_iterations"):
        paper_fit(LogisticRegression(), (X, Y), 10, **{**options, "num_iterations": 10})
    start = {"beta": np.zeros((2, 3))}
    with pytest.raises(ValueError, match=r"another problem.*initial_positions"):
        paper_fit(LogisticRegression(), (X, Y), 10, initial_positions=start, **options)
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match="not a coremcmc file"):
        paper_fit(LogisticRegression(), (X, Y), 10, **options)
    path.write_bytes(content)
    assert Fit.load(path).iteration == 20


def test_checkpoints_of_problems_that_look_alike_are_told_apart(tmp_path):
    def prior(variance):
        return lambda p: -0.5 * p["mu"] ** 2 / variance

    def run(name, variance=1.0, resume=True, **options):
        model = FunctionModel(prior(variance), likelihood, lambda key: {"mu": jnp.zeros(())})
        options = {"num_iterations": 10, "checkpoint": tmp_path / name, **options}
        return paper_fit(model, {"y": Y}, 10, resume=resume, **options)

    def likelihood(p, rows):
        return -0.5 * (rows["y"] - p["mu"]) ** 2

    run("a")
    run("a")  # the same, built anew
    with pytest.raises(ValueError, match=r"another problem.*model"):
        run("a", variance=1e-6)
    run("b", optimizer=coremcmc.hot_dog())
    run("b", optimizer=coremcmc.hot_dog())
    with pytest.raises(ValueError, match=r"another problem.*optimizer"):
        run("b", optimizer=coremcmc.hot_dog(r=10.0))
    run("c", selection=np.arange(10))
    with pytest.raises(ValueError, match=r"another problem.*selection"):
        run("c", selection=np.arange(10, 20))
    with pytest.raises(ValueError, match=r"another problem.*initial_weights"):
        run("a", initial_weights=np.ones(10))


def test_a_model_must_be_a_model_that_can_be_hashed():
    @dataclass(frozen=True)
    class Unhashable(LogisticRegression):
        constants: list = field(default_factory=list)

    with pytest.raises(ValueError, match=r"cannot be hashed.*frozen"):
        paper_fit(Unhashable(), (X, Y), 10)


def test_a_users_names_are_checked_before_the_run():
    model = FunctionModel(
        lambda p: -0.5 * p["mu"] ** 2,
        lambda p, rows: -0.5 * (rows["y"] - p["mu"]) ** 2,
        lambda key: {"mu": jnp.zeros(())},
        constrain=lambda p: {"mu": p["oops"]},
    )
    before = run_piece._cache_size()
    with pytest.raises(KeyError, match="oops"):
        paper_fit(model, {"y": Y}, 10)
    assert run_piece._cache_size() == before


@pytest.mark.parametrize(
    ("logprior", "loglikelihood", "message"),
    [
        (lambda p: p, lambda p, r: r["y"] * p[0], "log prior must be a scalar"),
        (lambda p: p[0], lambda p, r: jnp.sum(r["y"] * p[0]), "one value per row"),
        (lambda p: -jnp.inf * (1 + p[0]), lambda p, r: r["y"] * p[0], "log density is"),
    ],
)
def test_a_users_model_is_checked(logprior, loglikelihood, message):
    model = FunctionModel(logprior, loglikelihood, lambda key: jnp.ones(2))
    with pytest.raises(ValueError, match=message):
        paper_fit(model, {"y": Y}, 10)


def test_nan_in_the_subsample_stops_the_run_and_names_the_iteration(tmp_path):
    def loglikelihood(position, rows):
        # fine on the coreset's rows (0 and 1), NaN on the one row that only subsamples hold
        return jnp.where(rows["y"] < 2, -0.5 * (rows["y"] - position[0]) ** 2, jnp.nan)

    model = FunctionModel(lambda p: -0.5 * p[0] ** 2, loglikelihood, lambda key: jnp.zeros(1))
    y = np.concatenate([Y, [2]])
    path = tmp_path / "run.npz"
    options = {"num_iterations": 5000, "thin": 1, "selection": np.arange(10), "subsample_size": 1}
    with pytest.raises(
        FitError, match=r"iteration \d+: the gradient estimate is not finite.*saved"
    ) as e:
        paper_fit(model, {"y": y}, 10, checkpoint=path, **options)
    saved = Fit.load(path)
    named = int(str(e.value).split(":")[0].split()[1].replace(",", ""))
    assert 0 <= saved.iteration < named <= 5000
    assert np.isfinite(saved.coreset.weights_last).all()
    assert np.isfinite(saved.positions).all()
    assert e.value.fit.iteration == saved.iteration
    copied = pickle.loads(pickle.dumps(e.value))
    assert str(copied) == str(e.value)
    assert copied.fit.iteration == saved.iteration
    # the same failure at the same iteration, from the checkpoint
    with pytest.raises(FitError, match=f"iteration {named:,}:"):
        paper_fit(model, {"y": y}, 10, checkpoint=path, resume=True, **options)


def test_a_stuck_slice_stops_the_run():
    def loglikelihood(position, rows):
        spike = jnp.where(position[0] == 0.0, 0.0, jnp.nan)
        return spike + 0.0 * rows["y"]

    model = FunctionModel(lambda p: jnp.zeros(()), loglikelihood, lambda key: jnp.zeros(1))
    with pytest.raises(FitError, match="iteration 1: a chain cannot move"):
        paper_fit(model, {"y": Y}, 10, num_iterations=50)
