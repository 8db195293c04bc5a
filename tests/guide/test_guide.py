"""What the passes before training teach: which rows, and weights to start from.

Tests over seeds have a false-alarm probability of at most 1e-4 over the choice of seeds.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from coremcmc.data import MemoryData
from coremcmc.fitting.fit import prepare
from coremcmc.fitting.settings import PRESETS
from coremcmc.gradient.control_passes import ControlPasses
from coremcmc.guide import guide as guide_module
from coremcmc.guide.guide import make_guide
from coremcmc.models import (
    FunctionModel,
    LogisticRegression,
    PoissonRegression,
)
from coremcmc.posterior.mode import laplace_approximation
from coremcmc.selection import Stratified

FALSE_ALARM = 1e-4
MODEL = LogisticRegression(intercept=False)


def logistic_rows(num_rows, scale, seed=0):
    """Two features, whose size differs from row to row as ``scale`` says."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((num_rows, 2)) * np.broadcast_to(scale, num_rows)[:, None]
    return {"x": x, "y": (rng.random(num_rows) < 1 / (1 + np.exp(-x[:, 0]))).astype(int)}


def guide_of(rows, size, seed=0, model=MODEL, start=None, **options):
    start = {"beta": jnp.zeros(rows["x"].shape[1])} if start is None else start
    rng = np.random.default_rng(seed)
    return make_guide(model, MemoryData(rows), size, start, rng, **options)


@pytest.fixture
def known_mode(monkeypatch):
    """Find the mode of each data set once, for tests over many seeds."""
    found = {}

    def once(model, data, start, **options):
        key = id(data.rows["x"])
        if key not in found:
            found[key] = laplace_approximation(model, data, start)
        return found[key]

    monkeypatch.setattr(guide_module, "laplace_approximation", once)


# -- which rows -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("num_rows", "size"), [(400, 40), (400, 41), (50, 50), (50, 49), (5, 2)])
def test_rows_are_distinct_ascending_and_as_many_as_asked(num_rows, size):
    rows = logistic_rows(num_rows, np.linspace(0.2, 3.0, num_rows))
    found = guide_of(rows, size).chosen
    assert found.indices.shape == found.weights.shape == (size,)
    assert (np.diff(found.indices) > 0).all()
    assert found.indices[0] >= 0
    assert found.indices[-1] < num_rows
    assert (found.weights >= 1.0).all()


def test_rows_are_distinct_where_many_do_not_vary():
    rows = logistic_rows(100, np.repeat([1.0, 0.0], [10, 90]))
    for seed in range(5):
        assert len(np.unique(guide_of(rows, 60, seed).chosen.indices)) == 60


def spreads(found, rows, size=2_000):
    """Sd of ℓ_n, and variance of its Taylor remainder, over other draws and by NumPy alone."""
    draws = found.laplace.draw(np.random.default_rng(77), size)
    eta, centre = draws @ rows["x"].T, found.laplace.mean @ rows["x"].T
    values = rows["y"] * eta - np.logaddexp(0.0, eta)
    p = 1 / (1 + np.exp(-centre))
    polynomial = (rows["y"] - p) * (eta - centre) - 0.5 * p * (1 - p) * (eta - centre) ** 2
    return values.std(axis=0), (values - polynomial).var(axis=0)


def test_half_is_uniform_and_half_follows_the_spread(known_mode):
    """Inclusion counted over seeds, for the rows of each quarter of the spreads."""
    rows = logistic_rows(400, np.repeat([0.1, 1.0, 3.0], [300, 60, 40]))
    num_seeds, size = 400, 40
    counts = np.zeros(400)
    for seed in range(num_seeds):
        found = guide_of(rows, size, seed)
        counts[found.chosen.indices] += 1
    assert counts.sum() == num_seeds * size
    sd, _ = spreads(found, rows)
    quarters = np.array_split(np.argsort(sd), 4)
    shares = np.array([counts[quarter].mean() for quarter in quarters]) / num_seeds
    assert (np.diff(shares) > 0).all()
    # Rows that hardly vary still come by the uniform half; over seeds a binomial count.
    uniform = 20 / 400
    error = np.sqrt(uniform * (1 - uniform) / (100 * num_seeds))
    assert shares[0] > uniform - stats.norm.isf(FALSE_ALARM) * error
    # The informed half takes in proportion to the spread, as long as no row is sure to be in.
    expected = np.array([sd[quarter].sum() for quarter in quarters]) / sd.sum()
    taken = (shares - uniform) * 100 / 20
    np.testing.assert_allclose(taken, expected, atol=0.08)


def test_a_single_row_that_dominates_is_always_in(known_mode):
    rows = logistic_rows(500, 0.01)
    rows["x"][7] = [30.0, 10.0]
    chosen = [guide_of(rows, 20, seed) for seed in range(20)]
    assert all(7 in found.chosen.indices for found in chosen)
    weight = [found.chosen.weights[found.chosen.indices == 7][0] for found in chosen]
    np.testing.assert_allclose(weight, 1.0)  # it stands for itself only


def test_exact_rows_are_those_with_the_largest_remainders():
    """Across blocks, against a sort of all rows at once."""
    rows = logistic_rows(1_000, np.random.default_rng(1).gamma(0.5, 2.0, 1_000))
    blocks = guide_of(rows, 30, passes=ControlPasses(num_exact=25, block_rows=128))
    whole = guide_of(rows, 30, passes=ControlPasses(num_exact=25))
    assert len(blocks.exact) == 25
    assert (np.diff(blocks.exact) > 0).all()
    np.testing.assert_array_equal(blocks.exact, whole.exact)
    np.testing.assert_array_equal(blocks.chosen.indices, whole.chosen.indices)
    assert blocks.variance_ratio == pytest.approx(whole.variance_ratio, rel=1e-9)
    assert blocks.variance_ratio > 10
    _, remainder = spreads(blocks, rows)
    best = np.sort(remainder)[-25:].sum()
    assert remainder[blocks.exact].sum() > 0.9 * best
    assert remainder[:25].sum() < 0.3 * best  # any 25 rows would not do


def test_few_rows_are_all_exact_and_nothing_is_left_to_estimate():
    found = guide_of(logistic_rows(60, 1.0), 10)
    np.testing.assert_array_equal(found.exact, np.arange(60))
    assert found.variance_ratio == np.inf


# -- selection weights ----------------------------------------------------------------------------


def weighted_sums(rows, size, num_seeds):
    """Σ w f over the chosen rows, for f = 1, |x|, and the outcome."""
    features = np.column_stack([np.ones(len(rows["y"])), np.abs(rows["x"][:, 0]), rows["y"]])
    found = [guide_of(rows, size, seed).chosen for seed in range(num_seeds)]
    return np.array([s.weights @ features[s.indices] for s in found]), features.sum(axis=0)


def test_selection_weights_make_sums_about_unbiased(known_mode):
    """Within five per cent and the standard error: drawing without replacement is no more exact."""
    rows = logistic_rows(1_000, np.random.default_rng(2).uniform(0.3, 2.0, 1_000))
    sums, truth = weighted_sums(rows, 50, num_seeds=300)
    error = sums.std(axis=0, ddof=1) / np.sqrt(len(sums))
    bound = 0.05 * truth + stats.norm.isf(FALSE_ALARM / 6) * error
    assert (np.abs(sums.mean(axis=0) - truth) < bound).all(), (sums.mean(axis=0), truth, error)


def test_a_dominating_row_leaves_the_other_weights_unbiased(known_mode):
    rows = logistic_rows(500, 0.01)
    rows["x"][7] = [30.0, 10.0]
    sums, truth = weighted_sums(rows, 20, num_seeds=60)
    error = sums[:, 0].std(ddof=1) / np.sqrt(len(sums))
    assert abs(sums[:, 0].mean() - truth[0]) < 0.1 * truth[0] + stats.norm.isf(FALSE_ALARM) * error


def test_a_coreset_of_all_rows_weighs_each_about_once():
    rows = logistic_rows(50, 1.0)
    weights = guide_of(rows, 50).chosen.weights
    assert (weights >= 1.0).all()
    assert weights.max() < 2.0


# -- weights to start from ------------------------------------------------------------------------


def residual_variance(found, model, rows, selected, weights, size=2_000, seed=9):
    """Variance over fresh Laplace draws of Σ w ℓ − Σ ℓ, both sums exact."""
    draws = found.laplace.draw(np.random.default_rng(seed), size)
    everything = model.prepare_rows({k: jnp.asarray(v) for k, v in rows.items()})

    def difference(beta):
        terms = model.loglikelihood_fn({"beta": beta}, everything)
        return terms[selected.indices] @ weights - terms.sum()

    return np.asarray(jax.jit(jax.vmap(difference))(jnp.asarray(draws))).var()


def start_weights(found, model, rows, seed, weights):
    """What ``begin`` does for the weights."""
    selected, data = found.chosen._replace(weights=weights), MemoryData(rows)
    control = found.control(model, data)
    return found.begin(model, data, control, selected, 2, seed, fits_weights=True)[0]


@pytest.mark.parametrize("size", [100, 400])
def test_least_squares_weights_beat_uniform_and_selection_weights_on_bikes(bikes, size):
    model = PoissonRegression()
    found = guide_of(bikes, size, model=model, start={"beta": jnp.zeros(9)})
    selected = found.chosen
    fitted = start_weights(found, model, bikes, 3, selected.weights)
    assert (fitted >= 0).all()
    uniform = np.full(size, 15_641 / size)
    left, plain, chosen = (
        residual_variance(found, model, bikes, selected, w, size=60)
        for w in (fitted, uniform, selected.weights)
    )
    assert left < 0.1 * min(plain, chosen)
    if size == 400:
        assert left < 0.5  # of the order of what a trained coreset leaves


def test_fewer_rows_than_parameters_still_work():
    rng = np.random.default_rng(4)
    x = rng.standard_normal((300, 12))
    rows = {"x": x, "y": rng.integers(0, 2, 300)}
    found = guide_of(rows, 5)
    weights = start_weights(found, MODEL, rows, 5, found.chosen.weights)
    assert weights.shape == (5,)
    assert np.isfinite(weights).all()
    assert (weights >= 0).all()


def test_weights_that_are_good_already_are_kept():
    """All rows at weight one: nothing to gain but noise."""
    rows = logistic_rows(80, 1.0)
    found = guide_of(rows, 80)
    weights = start_weights(found, MODEL, rows, 6, np.ones(80))
    before, after = (
        residual_variance(found, MODEL, rows, found.chosen, w, size=50)
        for w in (np.ones(80), weights)
    )
    assert before < 1e-20
    assert after < 0.05


# -- from settings to a start ---------------------------------------------------------------------


def test_chains_start_near_the_posterior():
    """Resampled from 800 draws: as those of a Gaussian, where the posterior is one."""
    rows = logistic_rows(4_000, 1.0)
    found = guide_of(rows, 40)
    data = MemoryData(rows)
    control = found.control(MODEL, data)
    starts = [
        found.begin(MODEL, data, control, found.chosen, 8, seed, fits_weights=True)[1]["beta"]
        for seed in range(25)
    ]
    white = (np.concatenate(starts) - found.laplace.mean) @ np.linalg.cholesky(
        found.laplace.precision
    )
    # 200 draws: 4.5 standard errors, and what the posterior's skewness adds.
    assert np.abs(white.mean(axis=0)).max() < 4.5 / np.sqrt(200) + 0.1
    assert np.abs(white.var(axis=0) - 1).max() < 4.5 * np.sqrt(2 / 200) + 0.1


def test_what_the_user_gives_is_left_alone():
    rows = logistic_rows(400, 1.0)
    mine = np.linspace(1.0, 2.0, 40)
    settings = dataclasses.replace(
        PRESETS["paper"], selection=Stratified("y"), initial_weights=mine
    )
    starts = {"beta": np.ones((8, 2))}
    for each in (settings, dataclasses.replace(settings, control_variate=True)):
        _, start, _ = prepare(MODEL, MemoryData(rows), each, 40, 0, starts)
        assert rows["y"][start.selected.indices].sum() == 20
        np.testing.assert_array_equal(start.selected.weights, mine)
        assert (start.control is None) == (not each.control_variate)
        assert start.positions is starts


def test_the_control_variate_holds_the_datas_sums_at_the_mode():
    rows = logistic_rows(700, 1.0)
    found = guide_of(rows, 40)
    control = found.control(MODEL, MemoryData(rows))
    probability = 1 / (1 + np.exp(-rows["x"] @ found.laplace.mean))
    np.testing.assert_allclose(control.gradient, rows["x"].T @ (rows["y"] - probability), atol=1e-8)
    curvature = -(rows["x"].T * (probability * (1 - probability))) @ rows["x"]
    np.testing.assert_allclose(control.hessian, curvature, rtol=1e-8)
    np.testing.assert_array_equal(control.exact_rows["x"], rows["x"][found.exact])


NINE = MemoryData(np.arange(9.0))


def test_without_a_mode_it_says_so_and_does_without():
    kink = FunctionModel(
        lambda theta: -0.005 * theta[0] ** 2,
        lambda theta, rows: -jnp.abs(rows - theta[0]),
        lambda key: jnp.zeros(1),
    )
    with pytest.warns(UserWarning, match="Going on without it: uniform rows"):
        settings, start, found = prepare(kink, NINE, PRESETS["default"], 4, 0)
    assert found is start.control is start.positions is None
    assert (settings.selection, settings.initial_weights) == ("uniform", "selection")
    assert not settings.control_variate
    assert settings.kernel != "whitened_hmc"


def test_a_model_that_has_no_gradient_does_without_too():
    """A loop whose length is not known beforehand cannot be differentiated backwards."""

    def loglikelihood(theta, rows):
        total = jax.lax.while_loop(
            lambda carry: carry[0] < 3,
            lambda carry: (carry[0] + 1, carry[1] + theta[0] / 3),
            (0, jnp.zeros(())),
        )[1]
        return -0.5 * (rows - total) ** 2

    model = FunctionModel(
        lambda theta: -0.5 * theta[0] ** 2, loglikelihood, lambda key: jnp.zeros(1)
    )
    with pytest.warns(UserWarning, match="Going on without it"):
        settings, start, found = prepare(model, NINE, PRESETS["default"], 4, 0)
    assert found is start.control is start.positions is None
    assert settings.kernel != "whitened_hmc"


def test_a_derivative_that_is_not_finite_at_the_start_does_without_too():
    """√θ² has a slope of 0/0 at zero, where people start; the log density itself is fine."""
    model = FunctionModel(
        lambda theta: -0.5 * theta[0] ** 2,
        lambda theta, rows: -0.5 * (rows - jnp.sqrt(theta[0] ** 2)) ** 2,
        lambda key: jnp.zeros(1),
    )
    with pytest.warns(UserWarning, match="Going on without it"):
        _, start, found = prepare(model, NINE, PRESETS["default"], 4, 0)
    assert found is start.control is None


def test_settings_that_ask_for_nothing_cost_no_pass(monkeypatch):
    def touched(*_):
        raise AssertionError("the data were read")

    data = MemoryData(logistic_rows(10, 1.0))
    monkeypatch.setattr(MemoryData, "take", touched)
    monkeypatch.setattr(MemoryData, "blocks", touched)
    settings, start, found = prepare(MODEL, data, PRESETS["paper"], 4, 0)
    assert found is start.control is start.positions is None
    assert settings is PRESETS["paper"]
