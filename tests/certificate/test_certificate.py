"""The certificate: right where the answer is known, and never kind to what is wrong."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coremcmc
from coremcmc import Fit, FunctionModel, GaussianLocation
from coremcmc.certificate.certificate import Certificate, reweighted
from coremcmc.certificate.certificate import judge as judge_certificate
from coremcmc.certificate.certify import Judging, _estimated, certify
from coremcmc.data import MemoryData
from coremcmc.data.passes import full_pass
from coremcmc.fitting.draws import sample_target
from coremcmc.gradient.control_passes import make_control
from coremcmc.kernels import WhitenedHMC
from coremcmc.posterior.derivatives import SumDerivatives, SumOfLogLikelihoods
from coremcmc.posterior.mode import laplace_approximation
from coremcmc.posterior.target import Target

N = 300
X = np.random.default_rng(0).standard_normal((N, 3)) + 1.0
ALL = np.arange(N)


def exact_draws(weights, indices, shape=(150, 4), seed=1):
    """Independent draws of the coreset posterior, by its closed form."""
    precision = 1 + weights.sum()
    noise = np.random.default_rng(seed).standard_normal((*shape, 3))
    return weights @ X[indices] / precision + noise / np.sqrt(precision)


def judge(weights, indices=ALL, draws=None, laplace=None):
    draws = exact_draws(weights, indices) if draws is None else draws
    rows = {"x": X[indices]}
    names = ["theta[0]", "theta[1]", "theta[2]"]
    data = MemoryData({"x": X})
    return certify(GaussianLocation(), data, rows, weights, draws, names, laplace)


# -- where the answer is known --------------------------------------------------------------------


def test_all_rows_at_weight_one_are_good():
    found = judge(np.ones(N))
    assert found.verdict == "good"
    assert found.residual_variance < 1e-20
    assert found.kl == 0.5 * found.residual_variance
    np.testing.assert_allclose(found.corrected_mean, found.mean, atol=1e-10)
    np.testing.assert_allclose(found.corrected_sd, found.sd, rtol=1e-10)
    assert found.squared_z < 1e-20
    assert found.num_draws == 400


def test_ten_rows_that_stand_for_all_are_poor():
    found = judge(np.full(10, N / 10), np.arange(10))
    assert found.verdict == "poor"


@pytest.mark.parametrize("far", [3.0, 30.0, 300.0, 3000.0])
def test_a_coreset_posterior_worlds_away_is_poor(far):
    """The log ratio varies by up to millions: all the importance lies on one draw."""
    one_sided = np.where(X[:, 0] > 1.0, 1.0 + far, 0.01)
    found = judge(one_sided)
    assert found.pareto_k > 0.7
    assert found.verdict == "poor"


def test_rows_of_one_side_only_are_poor():
    """Weights of the right sum, on rows whose mean is far off."""
    indices = np.argsort(X[:, 0])[-30:]
    found = judge(np.full(30, 10.0), indices)
    assert found.verdict == "poor"
    assert "Raise coreset_size" in str(found)


@pytest.mark.parametrize("scale", [0.25, 0.5, 2.0, 4.0])
def test_a_spread_that_is_off_is_not_good(scale):
    """The means agree; the sds are off by a factor of √scale, far beyond 1.15."""
    found = judge(np.full(N, scale))
    assert found.verdict != "good"
    if scale in (0.25, 4.0):
        assert found.verdict == "poor"


def test_a_small_shift_is_measured_and_corrected():
    """The importance weights bring mean and sd to those of the full posterior."""
    shifted = np.full(N, 1.0)
    shifted[np.argsort(X[:, 0])[-20:]] = 1.25
    draws = exact_draws(shifted, ALL, shape=(1_000, 4))
    found = judge(shifted, draws=draws)
    full = np.ones(N) @ X / (1 + N)
    sd = 1 / np.sqrt(1 + N)
    off = np.abs(found.mean - full) / sd
    assert off[0] > 0.4
    # 400 independent draws: standard errors of a twentieth of a sd and of its 1/28, before the
    # weights take some of them; four of those is a false alarm in 10^4.
    assert np.abs(found.corrected_mean - full).max() / sd < 4 / np.sqrt(400) + 0.05
    assert np.abs(found.corrected_sd / sd - 1).max() < 4 * 1.5 / np.sqrt(800)
    assert found.squared_z == pytest.approx(np.mean(found.shift**2))
    assert found.importance.sum() == pytest.approx(1.0)
    # Any function of θ is corrected by them: E exp(θ_0) of a Gaussian is exp(μ + σ²/2).
    bent = np.exp(draws.reshape(-1, 3)[:, :1])
    mean, spread = reweighted(bent, found.importance)
    lognormal = np.exp(full[0] + sd**2 / 2)
    assert abs(mean - lognormal) / spread < 4 / np.sqrt(400) + 0.05
    assert abs(bent.mean() - lognormal) / spread > 0.4
    slope, bend = (1 - shifted) @ X, (1 - shifted).sum()
    exact = np.var(draws @ slope - 0.5 * bend * np.square(draws).sum(axis=-1), ddof=1)
    assert found.residual_variance == pytest.approx(exact, rel=0.3)


def test_what_the_gaussian_at_the_mode_says_is_kept():
    laplace = laplace_approximation(
        GaussianLocation(), MemoryData({"x": X}), {"theta": jnp.zeros(3)}
    )
    found = judge(np.ones(N), laplace=laplace)
    np.testing.assert_array_equal(found.laplace_mean, laplace.mean)
    np.testing.assert_array_equal(found.laplace_sd, laplace.sd)
    assert judge(np.ones(N)).laplace_mean is None


@pytest.mark.parametrize("far", [0.0, 5.0], ids=["at the mode", "far away"])
def test_chains_that_never_moved_are_not_good(far):
    draws = np.repeat(exact_draws(np.ones(N), ALL, shape=(1, 4)), 100, axis=0) + far
    assert judge(np.ones(N), draws=draws).verdict != "good"


# -- draws that do not tell enough -----------------------------------------------------------------


def wandering(memory, num_draws=1_000, num_chains=4):
    """Chains from the exact posterior, each draw with so much ``memory`` of the one before."""
    rng = np.random.default_rng(4)
    noise = rng.standard_normal((num_draws, num_chains, 3))
    chains = np.empty_like(noise)
    chains[0] = noise[0]
    for t in range(1, num_draws):
        chains[t] = memory * chains[t - 1] + np.sqrt(1 - memory**2) * noise[t]
    return X.sum(axis=0) / (1 + N) + chains / np.sqrt(1 + N)


def test_draws_that_mix_slowly_are_not_good():
    """The weights are exact and the chains agree, but 4,000 draws are worth some sixty."""
    found = judge(np.ones(N), draws=wandering(0.97))
    assert found.residual_variance < 1e-20
    assert found.verdict == "usable"
    assert "mix slowly" in str(found)
    assert "num_draws" in str(found)
    expected = 4_000 * (1 - 0.97) / (1 + 0.97)
    assert expected / 3 < found.effective_draws < 3 * expected
    assert judge(np.ones(N), draws=wandering(0.3)).verdict == "good"


def test_one_coordinate_that_mixes_slowly_is_enough_to_doubt():
    draws = wandering(0.0)
    draws[:, :, 1] = wandering(0.97)[:, :, 1]
    assert judge(np.ones(N), draws=draws).verdict == "usable"


@pytest.mark.parametrize("shape", [(1, 4), (3, 4), (10, 4), (5, 8)])
def test_a_handful_of_draws_is_not_good(shape):
    draws = exact_draws(np.ones(N), ALL, shape=shape)
    found = judge(np.ones(N), draws=draws)
    assert found.verdict != "good"
    assert found.effective_draws < 200


def test_chains_that_all_stand_at_one_point_are_not_good():
    draws = np.broadcast_to(exact_draws(np.ones(N), ALL, shape=(1, 1)), (300, 4, 3))
    assert judge(np.ones(N), draws=draws).verdict != "good"


# -- without a pass --------------------------------------------------------------------------------


MODEL = coremcmc.LogisticRegression()
DATA = coremcmc.logistic_data(seed=3, num_rows=4_000, num_features=2)


FEW_ROWS = Judging(estimate_rows=300)  # twice so many of the 4,000, so that estimates are noisy


@pytest.fixture(scope="module")
def guided():
    """A control variate with ten exact rows only, away from the mode, so that noise is left."""
    with jax.enable_x64(True):
        data = MemoryData(DATA)
        laplace = laplace_approximation(MODEL, data, {"beta": jnp.zeros(3)})
        centre = {"beta": laplace.mean + 4.0 * laplace.sd}
        likelihood = full_pass(data, SumDerivatives(MODEL), centre)
        return laplace, make_control(MODEL, data, centre, likelihood, np.arange(10), 5.0)


def coreset_draws(laplace, indices, weights, seed):
    """Draws of a coreset's posterior: chains of the default kernel."""
    rows = {name: jnp.asarray(column[indices]) for name, column in DATA.items()}
    target = Target(MODEL, MODEL.prepare_rows(rows), jnp.asarray(weights))
    start = {"beta": jnp.asarray(laplace.draw(np.random.default_rng(seed), 8))}
    draws, stuck, _ = sample_target(
        WhitenedHMC(), jax.random.key(seed), target, start, num_draws=400, num_warmup=200
    )
    assert not stuck
    return np.asarray(draws)


def both_ways(guided, weights, indices, seed=0, judging=FEW_ROWS):
    """The certificate by a pass and by an estimate, of the same draws."""
    laplace, control = guided
    draws = coreset_draws(laplace, indices, weights, seed)
    rows = {name: column[indices] for name, column in DATA.items()}
    arguments = (MODEL, MemoryData(DATA), rows, weights, draws)
    names = ["beta[0]", "beta[1]", "beta[2]"]
    return [certify(*arguments, names, control=c, judging=judging) for c in (None, control)]


def some_weights(seed, size=400, spread=0.0):
    rng = np.random.default_rng(seed)
    indices = np.sort(rng.choice(4_000, size, replace=False))
    return np.full(size, 4_000 / size) * np.exp(spread * rng.standard_normal(size)), indices


@pytest.mark.parametrize("seed", range(4))
def test_an_estimate_agrees_with_the_pass_within_its_noise(guided, seed):
    """The noise is a function of θ with a known variance, so √V is off by at most its root."""
    weights, indices = some_weights(seed, 4_000, spread=0.1 * seed)
    exact, estimate = both_ways(guided, weights, indices, seed)
    assert exact.noise_variance == 0.0
    assert "noise" not in str(exact)
    assert estimate.noise_variance > 1e-4  # else nothing is tested
    assert "(noise" in str(estimate)
    noise = np.sqrt(estimate.noise_variance)
    spread = np.sqrt(estimate.residual_variance) - np.sqrt(exact.residual_variance)
    assert abs(spread) < 4 * noise
    shift = (estimate.corrected_mean - exact.corrected_mean) / exact.corrected_sd
    assert np.abs(shift).max() < 4 * noise
    if seed == 0:
        assert exact.verdict == estimate.verdict == "good"
    else:
        assert exact.squared_z > 1e-4


def test_the_noise_that_is_told_is_the_noise_that_there_is(guided):
    """Over rows in forty orders, and so forty subsamples; 4.5 standard errors of the ratio."""
    laplace, _ = guided
    flat = laplace.draw(np.random.default_rng(5), 60)
    told, found = [], []
    for seed in range(40):
        order = np.random.default_rng(seed).permutation(4_000)
        data = MemoryData({name: column[order] for name, column in DATA.items()})
        centre = {"beta": laplace.mean + 4.0 * laplace.sd}
        likelihood = full_pass(data, SumDerivatives(MODEL), centre)
        control = make_control(MODEL, data, centre, likelihood, np.arange(10), 5.0)
        sums, noise = _estimated(MODEL, data, control, flat, 300)
        exact = full_pass(data, SumOfLogLikelihoods(MODEL), {"beta": flat})
        told.append(noise)
        found.append(np.var(sums - exact, ddof=1))
    error = np.std(np.subtract(found, told), ddof=1) / np.sqrt(40)
    assert abs(np.mean(found) - np.mean(told)) < 4.5 * error
    assert error < 0.3 * np.mean(told)


def test_an_estimate_from_all_rows_has_no_noise(guided):
    weights, indices = some_weights(7)
    exact, estimate = both_ways(guided, weights, indices, judging=Judging())
    assert estimate.noise_variance == 0.0
    assert estimate.residual_variance == pytest.approx(exact.residual_variance, rel=1e-6)
    assert estimate.verdict == exact.verdict


@pytest.mark.parametrize("seed", range(5))
def test_a_corrupted_coreset_is_never_good_by_an_estimate(guided, seed):
    exact, estimate = both_ways(guided, *some_weights(seed, spread=1.0), seed)
    assert exact.verdict != "good"
    assert estimate.verdict != "good"


@pytest.mark.parametrize("residual", [0.001, 0.05])
def test_what_is_below_the_noise_is_not_good(residual):
    """By chance the noise may undo what is there, so that little is seen of it."""
    seen = dataclasses.replace(judge(np.ones(N)), residual_variance=residual)
    assert judge_certificate(seen, None)[0] == "good"
    verdict, reasons = judge_certificate(dataclasses.replace(seen, noise_variance=0.5), None)
    assert verdict == "usable"
    assert "certificate=True" in " ".join(reasons)
    assert judge_certificate(dataclasses.replace(seen, noise_variance=5.0), None)[0] == "poor"


# -- several modes --------------------------------------------------------------------------------


def two_modes(initial, tilt=0.0):
    """Rows see |θ| only: modes at ±5, and a prior that prefers one of them by e^(2·tilt)."""
    return FunctionModel(
        logprior=lambda theta: -0.005 * theta[0] ** 2 + tilt * jnp.tanh(theta[0]),
        loglikelihood=lambda theta, rows: -0.5 * (rows - jnp.abs(theta[0])) ** 2,
        initial=initial,
    )


ROWS = 5.0 + np.random.default_rng(2).standard_normal(300)


def judge_two_modes(model, sides):
    """Exact weights; chains that stay each on its side."""
    centre, sd = ROWS.sum() / (N + 0.01), 1 / np.sqrt(N + 0.01)
    noise = np.random.default_rng(3).standard_normal((150, len(sides), 1))
    draws = np.array(sides)[None, :, None] * (centre + sd * noise)
    return certify(model, MemoryData(ROWS), ROWS, np.ones(N), draws, ["theta"], None)


def test_an_unvisited_mode_is_found():
    model = two_modes(lambda key: 3.0 * jax.random.normal(key, (1,)))
    found = judge_two_modes(model, [1, 1, 1, 1])
    assert found.verdict == "poor"
    assert "another mode, at [-" in str(found)


def test_chains_that_each_stay_in_a_mode_cannot_tell_their_proportions():
    model = two_modes(lambda key: 3.0 * jax.random.normal(key, (1,)))
    found = judge_two_modes(model, [1, -1, 1, -1])
    assert found.verdict == "poor"
    assert "disagree" in " ".join(found.reasons)


def test_a_mode_without_mass_is_of_no_account():
    model = two_modes(lambda key: 3.0 * jax.random.normal(key, (1,)), tilt=20.0)
    assert judge_two_modes(model, [1, 1, 1, 1]).verdict == "good"


def test_an_unvisited_mode_is_found_where_all_starts_are_alike():
    model = two_modes(lambda key: jnp.ones(1))
    assert judge_two_modes(model, [1, 1, 1, 1]).verdict != "good"


def test_chains_that_disagree_are_not_good():
    """One mode holds 98 % of the mass, but half of the chains sit in the other."""
    model = two_modes(lambda key: 3.0 * jax.random.normal(key, (1,)), tilt=2.0)
    assert judge_two_modes(model, [1, -1, 1, -1]).verdict != "good"


def test_another_mode_comes_with_a_remedy():
    model = two_modes(lambda key: 3.0 * jax.random.normal(key, (1,)))
    text = " ".join(judge_two_modes(model, [1, 1, 1, 1]).reasons)
    assert any(name in text for name in ("initial_positions", "coreset_size", "preset", "prior"))


# -- in words and in files ------------------------------------------------------------------------


def test_every_verdict_that_is_not_good_says_what_to_do():
    for weights, indices in (
        (np.full(N, 2.0), ALL),
        (np.full(N, 0.25), ALL),
        (np.full(10, 30.0), ALL[:10]),
        (np.full(2, 150.0), ALL[:2]),
    ):
        found = judge(weights, indices)
        assert found.verdict in ("usable", "poor")
        assert len(found.reasons) >= 2
        assert "Raise coreset_size, or" in found.reasons[-1]
        assert str(found).startswith(f"certificate  {found.verdict}: ")
        assert "residual variance" in str(found)


@pytest.mark.parametrize("k", [0.3, np.inf, np.nan])
def test_a_certificate_survives_a_file(tmp_path, k):
    fit = small_fit()
    for verdict in (judge(np.ones(N)), judge(np.full(10, 30.0), ALL[:10])):
        verdict = dataclasses.replace(verdict, pareto_k=k)
        kept = dataclasses.replace(fit, certificate=verdict)
        back = Fit.load(kept.save(tmp_path / f"{verdict.verdict}.fit")).certificate
        for name, value in vars(verdict).items():
            np.testing.assert_array_equal(getattr(back, name), value, err_msg=name)
        again = Certificate.from_dict(verdict.to_dict())
        assert str(again) == str(back) == str(verdict)
        older = {name: value for name, value in verdict.to_dict().items() if name != "importance"}
        assert Certificate.from_dict(older).importance is None


def small_fit(data=None):
    with jax.enable_x64(False):  # as a user calls it
        return coremcmc.fit(
            GaussianLocation(),
            {"x": X} if data is None else data,
            30,
            preset="paper",
            num_iterations=200,
            progress=False,
        )


def test_a_fit_without_a_certificate_makes_one_when_asked(tmp_path):
    fit = small_fit()
    assert fit.certificate is None
    assert "certificate" not in fit.summary()
    with jax.enable_x64(False):
        found = fit.certify(GaussianLocation(), {"x": X})
        assert jnp.zeros(1).dtype == jnp.float32
    assert found.verdict in ("good", "usable", "poor")
    assert found.names == fit.position_names
    loaded = Fit.load(fit.save(tmp_path / "fit"))
    again = loaded.certify(GaussianLocation(), {"x": X})
    np.testing.assert_array_equal(again.corrected_mean, found.corrected_mean)
    assert loaded.certificate is None


def test_data_of_another_size_are_refused():
    with pytest.raises(ValueError, match="data has 299 rows, but the fit was made from 300"):
        small_fit().certify(GaussianLocation(), {"x": X[:-1]})


def test_other_data_of_the_same_size_are_refused():
    with pytest.raises(ValueError, match="data"):
        small_fit().certify(GaussianLocation(), {"x": X + 1.0})


def test_another_model_is_refused():
    other = FunctionModel(
        lambda p: -0.5 * jnp.sum(p["theta"] ** 2),
        lambda p, rows: -jnp.abs(rows["x"] - p["theta"]).sum(axis=1),
        lambda key: {"theta": jnp.zeros(3)},
    )
    with pytest.raises(ValueError, match="model"):
        small_fit().certify(other, {"x": X})
