"""The default preset from end to end: what it returns, keeps, falls back to and refuses."""

import dataclasses
import signal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coremcmc
from coremcmc import Fit, FunctionModel, LogisticRegression, SparseRegression, Stratified
from coremcmc.algorithm.loop import run_piece
from coremcmc.algorithm.stopping import Stopping
from coremcmc.certificate.certify import Judging
from coremcmc.fitting.settings import Limits, Pacing
from coremcmc.gradient.control_passes import ControlPasses, revised

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:the hot-start test has not passed"),
]

N, M = 5_000, 200
DATA = coremcmc.logistic_data(seed=1, num_rows=N, num_features=2)
SHORT = {"preset": "default", "num_iterations": 300, "num_draws": 250, "progress": False}


def short_fit(**options):
    return coremcmc.fit(LogisticRegression(), DATA, M, **{**SHORT, **options})


@pytest.fixture(scope="module")
def fitted():
    return short_fit()


def assert_same(a: Fit, b: Fit):
    for name in a.state:
        np.testing.assert_array_equal(a.state[name], b.state[name], err_msg=name)
    for name in a.traces:
        np.testing.assert_array_equal(a.traces[name], b.traces[name], err_msg=name)
    np.testing.assert_array_equal(a.coreset.indices, b.coreset.indices)
    np.testing.assert_array_equal(a.coreset.weights, b.coreset.weights)
    np.testing.assert_array_equal(a.positions, b.positions)
    np.testing.assert_array_equal(a.sampled_positions, b.sampled_positions)
    assert str(a.certificate) == str(b.certificate)
    np.testing.assert_array_equal(a.certificate.corrected_mean, b.certificate.corrected_mean)


# -- what it returns ------------------------------------------------------------------------------


def test_a_fit_has_its_parts(fitted):
    assert fitted.coreset.indices.shape == (M,)
    assert (np.diff(fitted.coreset.indices) > 0).all()
    assert (fitted.coreset.weights >= 0).all()
    assert fitted.sampled_positions.shape == (250, 8, 3)
    assert fitted.posterior["beta"].shape == (8, 250, 3)
    np.testing.assert_array_equal(fitted.sampled["beta"][3, 7], fitted.sampled_positions[7, 3])
    assert fitted.config["settings"]["kernel"] == "whitened_hmc"
    assert fitted.config["settings"]["subsample_size"] == 200
    # The control variate takes most of the noise, and the residual is what it leaves.
    assert np.median(fitted.traces["control_ratio"]) < 0.01
    assert np.median(fitted.traces["residual_variance"][-100:]) < 3
    assert fitted.iteration == 300
    assert fitted.stopped == "finished"


def test_the_summary_tells_of_the_certificate(fitted):
    text = fitted.summary()
    assert str(fitted.certificate) in text
    assert f"certificate  {fitted.certificate.verdict}" in text
    with pytest.warns(DeprecationWarning, match="leave out the parentheses"):
        assert fitted.certificate() is fitted.certificate
    with pytest.warns(DeprecationWarning, match=r"fit\.verdict is fit\.certificate"):
        assert fitted.verdict is fitted.certificate
    with pytest.raises(TypeError, match=r"Make one by fit\.certify"):
        fitted.certificate(None, None)
    assert fitted.certificate.names == ["beta[0]", "beta[1]", "beta[2]"]


def test_arviz_and_the_report_take_the_draws_at_fixed_weights(fitted, tmp_path):
    posterior = fitted.to_arviz()["posterior"]
    np.testing.assert_array_equal(posterior["beta"], fitted.sampled["beta"])
    assert posterior.attrs["coreset_size"] == M
    text = fitted.report(tmp_path / "fit.html").read_text()
    chains, draws = fitted.sampled["beta"].shape[:2]
    assert f"{chains} chains × {draws:,}, at fixed weights" in text


def test_a_file_keeps_draws_and_certificate(fitted, tmp_path):
    back = Fit.load(fitted.save(tmp_path / "fit"))
    assert_same(fitted, back)
    np.testing.assert_array_equal(back.sampled["beta"], fitted.sampled["beta"])
    assert back.summary() == fitted.summary()


def test_close_to_nuts_on_all_rows():
    """Average squared z-score at most 0.02, sds within 15 %: what the verdict "good" promises.

    NUTS contributes less than a tenth of either bound: its effective sample size exceeds 1,000.
    """
    from numpyro.infer import MCMC, NUTS

    fit = short_fit(num_iterations=2_000, num_draws=500)
    assert fit.certificate.verdict == "good"
    model = LogisticRegression()
    with jax.enable_x64(True):
        rows = model.prepare_rows(jax.tree.map(jnp.asarray, DATA))
        mcmc = MCMC(
            NUTS(
                potential_fn=lambda p: -model.loglikelihood_fn(p, rows).sum() - model.logprior_fn(p)
            ),
            num_warmup=300,
            num_samples=500,
            num_chains=4,
            chain_method="vectorized",
            progress_bar=False,
        )
        mcmc.run(jax.random.key(0), init_params={"beta": jnp.zeros((4, 3))})
        nuts = np.asarray(mcmc.get_samples()["beta"])
    assert fit.squared_z(nuts.mean(0), nuts.std(0, ddof=1)) < 0.02
    ours = fit.sampled_positions.reshape(-1, 3)
    np.testing.assert_allclose(ours.std(0), nuts.std(0), rtol=0.15)


# -- again, and again from a checkpoint -----------------------------------------------------------


def test_same_seed_same_bits_and_other_seed_other_rows(fitted):
    with jax.enable_x64(False):
        again = short_fit()
        assert jnp.zeros(1).dtype == jnp.float32
    assert_same(fitted, again)
    other = short_fit(seed=5)
    assert not np.array_equal(fitted.coreset.indices, other.coreset.indices)


def test_resuming_gives_the_same_bits(fitted, tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    original = Fit.save

    def save_and_interrupt(self, to):
        if not to.exists():
            signal.raise_signal(signal.SIGINT)
        return original(self, to)

    with monkeypatch.context() as patch:
        patch.setattr(Fit, "save", save_and_interrupt)
        with pytest.warns(UserWarning, match="interrupted"):
            part = short_fit(checkpoint=path, checkpoint_every=0.0)
    assert 0 < part.iteration < 300
    assert_same(fitted, short_fit(checkpoint=path, resume=True))
    assert_same(fitted, Fit.load(path))
    with pytest.raises(ValueError, match="control_variate: "):
        short_fit(checkpoint=path, resume=True, control_variate=False)


# Checks at 50, 100 and 200 iterations; whatever the chains do, they live elsewhere.
REVISED = Limits(stopping=Stopping(first_check=50), control=ControlPasses(elsewhere=-1.0))


@pytest.mark.parametrize(
    ("after", "revisions"), [(49, 0), (50, 1), (100, 2)], ids=["before", "after one", "after two"]
)
def test_resuming_with_a_control_variate_that_was_revised_gives_the_same_bits(
    tmp_path, monkeypatch, after, revisions
):
    """Interrupted at the check itself, before it revises, or some iterations after a revision."""
    options = {"num_iterations": 200, "num_draws": 100, "limits": REVISED}
    path = tmp_path / "run.npz"
    calls = []
    monkeypatch.setattr(
        "coremcmc.fitting.run.revised", lambda *arguments: calls.append(0) or revised(*arguments)
    )
    whole = short_fit(**options)
    assert len(calls) == 2  # at 50 and 100; at the end it would be of no use
    assert whole.state["controlrevised_at"] == 100
    assert not np.allclose(whole.state["control.centre['beta']"], whole.certificate.laplace_mean)
    original = Fit.save

    def save_and_interrupt(self, to):
        if self.iteration > after and self.stopped == "running":
            signal.raise_signal(signal.SIGINT)
        return original(self, to)

    calls.clear()
    with monkeypatch.context() as patch:
        patch.setattr(Fit, "save", save_and_interrupt)
        an_iteration_a_piece = dataclasses.replace(REVISED, pacing=Pacing(seconds=0.0))
        slow = {**options, "checkpoint_every": 0.0, "limits": an_iteration_a_piece}
        with pytest.warns(UserWarning, match="interrupted"):
            part = short_fit(checkpoint=path, **slow)
    assert part.iteration == after + 1
    assert len(calls) == revisions
    assert ("controlrevised_at" in part.state) == (revisions > 0)
    resumed = short_fit(checkpoint=path, resume=True, **options)
    assert_same(whole, resumed)
    assert len(calls) == 2
    assert resumed.stop_reason == whole.stop_reason


def test_a_control_variate_that_is_moved_or_switched_off_costs_no_compilation(
    monkeypatch,
):
    short_fit(num_iterations=200, limits=REVISED)
    before = run_piece._cache_size()
    never = dataclasses.replace(REVISED, control=ControlPasses(elsewhere=np.inf))
    monkeypatch.setattr("coremcmc.gradient.control_passes.np.median", lambda x: 2.0)
    off = short_fit(num_iterations=200, limits=never)
    assert off.state["controlrevised_at"] == 100
    assert run_piece._cache_size() == before


# -- when it stops --------------------------------------------------------------------------------


def test_it_says_why_it_stopped_also_after_resuming(tmp_path):
    """A cap of 120 iterations that a residual which never counts as flat runs into."""
    never = {"limits": Limits(Stopping(60, 120, still_falling=np.inf))}
    path = tmp_path / "run.npz"
    capped = short_fit(num_iterations="auto", checkpoint=path, **never)
    assert capped.iteration == 120
    assert capped.stopped == "finished"
    assert capped.stop_reason.startswith("the cap was reached before all had settled: residual")
    assert f"stopped      {capped.stop_reason}" in capped.summary()
    again = short_fit(num_iterations="auto", checkpoint=path, resume=True, **never)
    assert again.stop_reason == capped.stop_reason
    assert Fit.load(path).stop_reason == capped.stop_reason
    # Twice as many records, so the reason is of the end, not of the last check before it.
    last = float(np.median(capped.traces["residual_variance"][90:]))
    assert f"residual variance {last:.2g} in the last quarter" in capped.stop_reason


def test_it_stops_by_itself_and_says_so():
    at_once = Stopping(60, 240, still_falling=0.0, still_worth_it=0.0, mean_change=np.inf)
    fit = short_fit(num_iterations="auto", limits=Limits(at_once))
    assert (fit.iteration, fit.stopped) == (60, "settled")
    assert "stopped      nothing changes any more: residual variance" in fit.summary()
    assert short_fit(num_iterations=60).stop_reason == (
        "all the iterations that were asked for are done"
    )


# -- how it is judged -----------------------------------------------------------------------------


def test_a_poor_coreset_is_a_warning_with_its_verdict_in_the_summary():
    with pytest.warns(UserWarning, match=r"calls this coreset poor.*fit\.certificate says why"):
        fit = coremcmc.fit(LogisticRegression(), DATA, 4, **{**SHORT, "num_iterations": 20})
    assert fit.certificate.verdict == "poor"
    assert "certificate  poor: " in fit.summary()
    assert "warning: the certificate calls this coreset poor" in fit.summary()


def test_a_verdict_without_a_pass(fitted, monkeypatch):
    """The draws are the same, so the two certificates differ by the noise only."""
    passes = []
    monkeypatch.setattr(
        "coremcmc.certificate.certify.full_pass",
        lambda *_, **__: passes.append(0) or np.zeros(0),
    )
    few = Limits(certificate=Judging(estimate_rows=500))
    estimate = short_fit(certificate="estimate", limits=few)
    assert not passes
    np.testing.assert_array_equal(estimate.sampled_positions, fitted.sampled_positions)
    assert estimate.certificate.noise_variance > 0
    assert f"(noise {estimate.certificate.noise_variance:.2g})" in estimate.summary()
    noise = np.sqrt(estimate.certificate.noise_variance)
    shift = (
        estimate.certificate.corrected_mean - fitted.certificate.corrected_mean
    ) / fitted.certificate.sd
    assert np.abs(shift).max() < 4 * noise
    assert fitted.certificate.noise_variance == 0.0


# -- what the user may change ---------------------------------------------------------------------


@pytest.mark.parametrize("selection", ["uniform", Stratified("y"), np.arange(0, N, N // M)])
def test_any_selection_goes_with_it(selection):
    fit = short_fit(selection=selection, num_iterations=100)
    weights = fit.coreset.weights
    assert np.isfinite(weights).all()
    assert weights.sum() == pytest.approx(N, rel=0.3)
    assert fit.traces["control_ratio"][-1] < 0.01
    if isinstance(selection, Stratified):
        assert fit.coreset.rows["y"].sum() == M // 2
    if isinstance(selection, np.ndarray):
        np.testing.assert_array_equal(fit.coreset.indices, selection)


def test_given_weights_and_positions_are_where_it_starts():
    weights = np.linspace(20.0, 30.0, M)
    starts = {"beta": np.tile([-0.4, 0.9, -1.0], (8, 1))}
    fit = short_fit(
        initial_weights=weights,
        initial_positions=starts,
        num_iterations=1,
        hot_start=True,
        certificate=False,
    )
    np.testing.assert_array_equal(fit.coreset.weights_last, weights)


def test_parts_of_it_can_be_left_out():
    fit = short_fit(num_draws=0, certificate=False, num_iterations=100)
    assert not fit.sampled
    assert fit.certificate is None
    assert fit.to_arviz()["posterior"]["beta"].shape == (8, 50, 3)


def test_the_paper_bound_on_the_sum_of_weights_is_accepted():
    for seed in range(6):
        fit = short_fit(
            max_weight_sum=N, num_iterations=2, num_draws=0, certificate=False, seed=seed
        )
        assert fit.coreset.weights_last.sum() <= N * (1 + 1e-9)


def test_a_model_that_was_changed_is_compiled_anew():
    """The prior moves the answer from 5 to 0 when its scale changes in place."""

    class Location(coremcmc.Model):
        scale = 10.0

        def logprior_fn(self, position):
            return -0.5 * (position[0] / self.scale) ** 2

        def loglikelihood_fn(self, position, rows):
            return -0.5 * (rows["y"] - position[0]) ** 2

        def initial_position(self, rng_key, rows):
            return jnp.zeros(1)

    model, means = Location(), []
    for scale in (10.0, 0.01):
        model.scale = scale
        data = {"y": np.full(50, 5.0)}
        fit = coremcmc.fit(model, data, 10, **{**SHORT, "num_iterations": 40, "num_draws": 50})
        means.append(fit.sampled_positions.mean())
    assert means[0] > 4
    assert means[1] < 1


# -- what it falls back to ------------------------------------------------------------------------


def test_discrete_parameters_are_moved_by_their_own_kernel():
    data = coremcmc.sparse_regression_data(num_rows=1_000)
    with pytest.warns(UserWarning, match="calls this coreset poor"):  # after 300 iterations
        fit = coremcmc.fit(SparseRegression(), data, 50, **{**SHORT, "num_draws": 50})
    assert fit.stopped == "finished"
    assert not fit.config["settings"]["control_variate"]
    assert fit.config["settings"]["selection"] == "uniform"
    np.testing.assert_array_equal(fit.traces["control_ratio"], 1.0)
    gamma = fit.sampled["gamma"]
    assert set(np.unique(gamma)) <= {0.0, 1.0}


def test_a_posterior_with_a_kink_at_its_top_falls_back_with_a_warning():
    """Laplace noise: a proper posterior around the median, whose peak Newton cannot settle on."""
    model = FunctionModel(
        lambda theta: -0.005 * theta[0] ** 2,
        lambda theta, rows: -jnp.abs(rows - theta[0]),
        lambda key: jax.random.normal(key, (1,)),
    )
    rows = np.random.default_rng(0).laplace(3.0, 1.0, 1_000)
    with pytest.warns(UserWarning, match="no mode of the full posterior"):
        fit = coremcmc.fit(model, rows, 100, **{**SHORT, "num_draws": 100})
    assert fit.stopped == "finished"
    assert fit.config["settings"]["kernel"] != "whitened_hmc"
    assert fit.sampled_positions.mean() == pytest.approx(3.0, abs=0.5)


def test_a_tiny_problem_finishes():
    rows = {"x": DATA["x"][:6], "y": DATA["y"][:6]}
    with pytest.warns(UserWarning, match="calls this coreset poor"):
        fit = coremcmc.fit(
            LogisticRegression(), rows, 3, **{**SHORT, "num_iterations": 40, "num_draws": 20}
        )
    assert fit.config["settings"]["subsample_size"] == 6
    assert np.isfinite(fit.coreset.weights).all()
