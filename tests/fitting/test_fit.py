"""The whole of a fit: what it returns, keeps, resumes and refuses."""

import contextlib
import functools
import logging
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import coremcmc
from coremcmc import Fit, FunctionModel, GaussianLocation, HotStart, LogisticRegression, Stratified
from coremcmc.algorithm.loop import init_loop, run_piece
from coremcmc.algorithm.step import CoresetMCMC
from coremcmc.fitting.settings import Limits, Pacing
from coremcmc.kernels import GaussianExact
from coremcmc.optimizers import OPTIMIZERS

paper_fit = functools.partial(coremcmc.fit, preset="paper")

pytestmark = pytest.mark.filterwarnings("ignore:the hot-start test has not passed")

DATA = coremcmc.logistic_data(seed=1, num_rows=2_000, num_features=2)
SHORT = {"num_iterations": 300, "progress": False}


def short_fit(**options):
    return paper_fit(LogisticRegression(), DATA, 40, **{**SHORT, **options})


def assert_same(a: Fit, b: Fit):
    for name in a.state:
        np.testing.assert_array_equal(a.state[name], b.state[name], err_msg=name)
    for name in a.traces:
        np.testing.assert_array_equal(a.traces[name], b.traces[name], err_msg=name)
    np.testing.assert_array_equal(a.positions, b.positions)
    np.testing.assert_array_equal(a.coreset.weights_average, b.coreset.weights_average)
    for name in a.draws:
        np.testing.assert_array_equal(a.draws[name], b.draws[name])


# -- what it returns ------------------------------------------------------------------------------


def test_a_fit_has_its_parts_in_order():
    fit = short_fit(thin=7)
    assert fit.coreset.indices.shape == fit.coreset.weights.shape == (40,)
    np.testing.assert_array_equal(fit.coreset.rows["x"], DATA["x"][fit.coreset.indices])
    np.testing.assert_array_equal(fit.traces["iteration"], [*range(7, 300, 7), 300])
    assert fit.positions.shape == (43, 2, 3)
    assert fit.draws["beta"].shape == (2, 43, 3)
    np.testing.assert_array_equal(fit.draws["beta"][1, 5], fit.positions[5, 1])
    assert fit.position_names == ["beta[0]", "beta[1]", "beta[2]"]
    assert fit.stopped == "finished"
    assert fit.iteration == 300
    assert (np.diff(fit.traces["num_evaluations"]) > 0).all()
    assert fit.coreset.average_start == 150
    assert fit.config["settings"]["subsample_size"] == 40
    assert fit.config["seed"] == 0


def test_the_running_mean_counts_every_draw_of_the_latter_half():
    every = short_fit(thin=1)
    sums = np.cumsum(every.positions.mean(axis=1), axis=0)
    np.testing.assert_allclose(every.traces["position_sum"], sums, rtol=1e-12)
    brute = every.positions[150:].mean(axis=(0, 1))
    np.testing.assert_allclose(every.running_mean()[-1], brute, rtol=1e-12)
    thinned = short_fit(thin=50)
    np.testing.assert_allclose(thinned.running_mean()[-1], brute, rtol=1e-12)
    sd = np.array([0.5, 2.0, 1.0])
    by_hand = np.mean(((brute - 1.0) / sd) ** 2)
    assert thinned.squared_z(np.ones(3), sd) == pytest.approx(by_hand, rel=1e-12)
    named = thinned.squared_z({"beta": np.ones(3)}, {"beta": sd})
    assert named == pytest.approx(by_hand, rel=1e-12)
    assert thinned.squared_z(np.ones(3), sd, trace=True).shape == (6,)


def test_the_average_of_the_weights_is_over_the_latter_half():
    """Against weights collected one iteration at a time, by resuming."""
    average = short_fit(returned_weights="average", num_iterations=40).coreset
    np.testing.assert_array_equal(average.weights, average.weights_average)
    assert average.average_start == 20
    last = short_fit(num_iterations=40).coreset
    np.testing.assert_array_equal(last.weights, last.weights_last)
    np.testing.assert_array_equal(last.weights_last, average.weights_last)


def test_same_seed_same_answer_and_other_seed_other_answer():
    a, b, c = short_fit(seed=3), short_fit(seed=3), short_fit(seed=4)
    assert_same(a, b)
    assert not np.array_equal(a.coreset.indices, c.coreset.indices)


def test_the_users_precision_is_left_alone():
    with jax.enable_x64(False):
        fit = short_fit(num_iterations=5)
        assert jnp.zeros(1).dtype == jnp.float32
    assert fit.positions.dtype == np.float64


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("hot_start", [True, False])
def test_every_optimizer_runs_with_and_without_the_gate(optimizer, hot_start):
    fit = short_fit(optimizer=optimizer, hot_start=hot_start, num_iterations=120)
    moved = fit.coreset.weights_last != 2000 / 40
    passed = fit.hot_start["passed_at"]
    assert passed == 0 if not hot_start else 30 <= passed <= 120
    assert moved.any()
    assert np.isfinite(fit.coreset.weights_last).all()
    assert (fit.coreset.weights_last >= 0).all()


def test_any_optax_transformation_will_do():
    fit = short_fit(optimizer=optax.sgd(1e-6), hot_start=False)
    assert (fit.coreset.weights_last != 50).all()


def test_weights_stay_until_the_test_passes():
    held = short_fit(num_iterations=29)
    np.testing.assert_array_equal(held.coreset.weights_last, 50.0)


def test_the_sum_of_the_weights_can_be_bounded():
    grow = optax.GradientTransformation(lambda p: (), lambda u, s, p=None: (jnp.ones_like(u), s))
    options = {"optimizer": grow, "hot_start": False, "num_iterations": 20}
    bounded = short_fit(max_weight_sum=2300.0, **options)
    assert bounded.traces["weights_sum"][-1] == pytest.approx(2300.0)
    free = short_fit(**options)
    assert free.traces["weights_sum"][-1] == pytest.approx(2000 + 40 * 20)


@pytest.mark.parametrize("size", [7, 11, 13])
def test_the_bound_may_be_the_number_of_rows(size):
    """Where N/M does not sum to N exactly: weights that are held must not be projected."""
    data = coremcmc.gaussian_location_data(num_rows=10_000, dimension=3)
    fit = paper_fit(GaussianLocation(), data, size, max_weight_sum=10_000, num_iterations=100)
    assert fit.hot_start["passed_at"] > 0
    assert np.isfinite(fit.coreset.weights_last).all()


def test_stratified_selection_and_its_weights():
    y = np.zeros(2000, int)
    y[:30] = 1
    data = {**DATA, "y": y}
    rare = {"selection": Stratified("y"), **SHORT, "num_iterations": 5}
    paper = paper_fit(LogisticRegression(), data, 100, **rare)
    assert paper.coreset.rows["y"].sum() == 30
    np.testing.assert_array_equal(paper.coreset.weights, 20.0)
    ours = paper_fit(LogisticRegression(), data, 100, initial_weights="selection", **rare)
    np.testing.assert_allclose(np.unique(ours.coreset.weights), [1.0, 1970 / 70])


def test_a_model_from_two_functions_equals_the_built_in_one():
    def logprior(position):
        return jax.scipy.stats.cauchy.logpdf(position["beta"]).sum()

    def loglikelihood(position, rows):
        eta = rows["x"] @ position["beta"][1:] + position["beta"][0]
        return rows["y"] * eta - jnp.logaddexp(0.0, eta)

    def initial(key):
        return {"beta": jax.random.normal(key, (3,))}

    own = paper_fit(
        FunctionModel(logprior, loglikelihood, initial), DATA, 40, num_iterations=30, thin=1
    )
    built_in = short_fit(num_iterations=30, thin=1)
    np.testing.assert_allclose(own.positions, built_in.positions, rtol=1e-6)


def test_positions_may_be_any_pytree():
    model = FunctionModel(
        logprior=lambda p: -0.5 * (p[0] ** 2 + jnp.sum(p[1]["b"] ** 2)),
        loglikelihood=lambda p, rows: -0.5 * (rows - p[0] - p[1]["b"].sum()) ** 2,
        initial=lambda key: (jnp.zeros(()), {"b": jnp.ones((2, 2))}),
    )
    rows = np.random.default_rng(0).standard_normal(500)
    fit = paper_fit(model, rows, 10, num_iterations=60)
    assert set(fit.draws) == {"0", "1.b"}
    assert fit.draws["1.b"].shape == (2, 60, 2, 2)


@pytest.mark.parametrize(
    "start", [lambda key: {"mu": 0}, lambda key: {"mu": jnp.float32(0.5)}], ids=["int", "float32"]
)
def test_a_users_model_may_compute_in_other_precisions(start):
    model = FunctionModel(
        lambda p: -0.5 * p["mu"] ** 2,
        lambda p, rows: (-0.5 * (rows["y"] - p["mu"]) ** 2).astype(jnp.float32),
        start,
    )
    fit = paper_fit(model, {"y": DATA["x"][:, 0]}, 10, num_iterations=40)
    assert fit.positions.dtype == np.float64


def test_a_model_that_was_changed_is_compiled_anew():
    class Location(coremcmc.Model):
        scale = 1.0

        def logprior_fn(self, position):
            return -0.5 * (position / self.scale) ** 2

        def loglikelihood_fn(self, position, rows):
            return -0.5 * (rows["y"] - position) ** 2

        def initial_position(self, rng_key, rows):
            return jnp.zeros(())

    model, data = Location(), {"y": np.full(50, 5.0)}
    model.scale = 10.0
    wide = paper_fit(model, data, 10, num_iterations=200, hot_start=False, optimizer=still())
    model.scale = 0.01
    narrow = paper_fit(model, data, 10, num_iterations=200, hot_start=False, optimizer=still())
    assert wide.running_mean()[-1, 0] > 4
    assert narrow.running_mean()[-1, 0] < 1


def still():
    return optax.set_to_zero()


@pytest.mark.parametrize("kind", ["list", "frame", "float32", "big-endian", "masked-free"])
def test_data_may_come_in_many_forms(kind):
    import pandas

    forms = {
        "list": {"x": DATA["x"].tolist(), "y": DATA["y"].tolist()},
        "frame": {"x": pandas.DataFrame(DATA["x"]), "y": pandas.Series(DATA["y"])},
        "float32": {"x": DATA["x"].astype(np.float32), "y": DATA["y"].astype(bool)},
        "big-endian": {"x": DATA["x"].astype(">f8"), "y": DATA["y"]},
        "masked-free": {"x": np.ma.array(DATA["x"]), "y": DATA["y"]},
    }
    extra = {"name": np.array(["a"] * 2000), "unread": np.full(2000, np.nan)}
    fit = paper_fit(LogisticRegression(), {**forms[kind], **extra}, 40, num_iterations=5)
    same = short_fit(num_iterations=5)
    tolerance = 1e-3 if kind == "float32" else 0
    np.testing.assert_allclose(fit.positions, same.positions, rtol=tolerance)
    assert set(fit.coreset.rows) == {"x", "y"}


def test_strata_may_come_from_a_column_that_the_model_does_not_read():
    group = np.repeat(["a", "b"], [1990, 10])
    fit = paper_fit(
        LogisticRegression(), {**DATA, "group": group}, 20, selection=Stratified("group"),
        num_iterations=2,
    )  # fmt: skip
    assert (fit.coreset.indices >= 1990).sum() == 10


def test_own_loop_gives_the_same_as_fit():
    """coreset_mcmc's init and step, driven by hand with fit's keys and subsamples."""
    fit = short_fit(num_iterations=40, thin=1)
    rows = {name: DATA[name][fit.coreset.indices] for name in DATA}
    algorithm = coremcmc.coreset_mcmc(LogisticRegression(), rows, 2000)
    key_start, key = jax.random.split(jax.random.key(0))
    feed = coremcmc.MemoryData(DATA).feed()
    state = algorithm.init(key_start)
    step = jax.jit(algorithm.step)
    for t in range(40):
        key_move, key_rows = jax.random.split(jax.random.fold_in(key, t))
        state, _ = step(key_move, state, feed.subsample(key_rows, jnp.array(t), 40))
    np.testing.assert_allclose(state.chains.position["beta"], fit.positions[-1], rtol=1e-7)
    np.testing.assert_allclose(state.weights, fit.coreset.weights_last, rtol=1e-7)


def test_own_loop_refuses_one_chain_and_takes_plain_weights():
    algorithm = coremcmc.coreset_mcmc(GaussianLocation(), {"x": np.ones((2, 1))}, 10)
    with pytest.raises(ValueError, match="num_chains must be at least 2"):
        algorithm.init(jax.random.key(0), num_chains=1)
    state = algorithm.init(jax.random.key(0), weights=[5, 5])
    state, _ = algorithm.step(jax.random.key(1), state, {"x": np.ones((2, 1))})
    assert state.weights.dtype == jnp.float64


def test_own_loop_in_32_bits_is_refused():
    with jax.enable_x64(False):
        algorithm = coremcmc.coreset_mcmc(GaussianLocation(), {"x": np.ones((2, 1))}, 10)
        with pytest.raises(ValueError, match="enable_x64"):
            algorithm.init(jax.random.key(0))


# -- what it compiles -----------------------------------------------------------------------------


TRACES = SimpleNamespace(count=0)


def test_a_run_compiles_once_and_so_do_its_repetitions():
    def loglikelihood(position, rows):
        TRACES.count += 1
        return -0.5 * jnp.sum((rows["x"] - position) ** 2, axis=1)

    model = FunctionModel(
        lambda p: -0.5 * jnp.sum(p**2), loglikelihood, lambda key: jax.random.normal(key, (2,))
    )
    data = {"x": np.random.default_rng(0).standard_normal((300, 2))}
    before = run_piece._cache_size()
    paper_fit(model, data, 10, num_iterations=1000, thin=1)  # four pieces and more
    assert run_piece._cache_size() == before + 1
    once = TRACES.count
    paper_fit(model, data, 10, num_iterations=1000, thin=1, seed=5)
    assert run_piece._cache_size() == before + 1
    # Only the check of the start, outside the loop, traces the model again.
    assert TRACES.count - once <= 6
    paper_fit(model, data, 11, num_iterations=1000, thin=1)
    assert run_piece._cache_size() == before + 2


def test_large_data_are_moved_after_the_compilation_which_happens_once(monkeypatch):
    """The program compiled from shapes is the one that runs."""
    plain = short_fit(num_iterations=60, thin=3)
    order = []
    original = coremcmc.MemoryData.feed
    monkeypatch.setattr(
        coremcmc.MemoryData, "feed", lambda self: order.append("feed") or original(self)
    )
    before = run_piece._cache_size()
    with jax.log_compiles(), warnings_of_compilation(order):
        ahead = short_fit(num_iterations=60, thin=4, limits=Limits(pacing=Pacing(large_data=0)))
    assert order[0] == "compile"
    assert order.count("compile") == 1
    assert run_piece._cache_size() == before + 1
    np.testing.assert_array_equal(plain.coreset.weights_last, ahead.coreset.weights_last)


@contextlib.contextmanager
def warnings_of_compilation(order):
    """Note each compilation of the loop."""

    class Note(logging.Handler):
        def emit(self, record):
            text = record.getMessage()
            if text.startswith("Finished XLA compilation of jit(run_piece)"):
                order.append("compile")

    logger, note = logging.getLogger("jax"), Note()
    logger.addHandler(note)
    try:
        yield
    finally:
        logger.removeHandler(note)


def compiled_loop(num_rows):
    algorithm = CoresetMCMC(GaussianLocation(), num_rows, GaussianExact(), OPTIMIZERS["hot_dog"]())
    rows = {"x": jnp.ones((5, 2))}
    state = algorithm.init({"theta": jnp.zeros((2, 2))}, jnp.full(5, 1.0), rows)
    feed = coremcmc.MemoryData({"x": np.zeros((num_rows, 2), np.float32)}).feed()
    return run_piece.lower(
        algorithm, jax.random.key(0), init_loop(state, 10), rows, feed,
        jnp.array(10), jnp.array(5), subsample_size=5, thin=1, capacity=8,
    ).compile()  # fmt: skip


def test_the_work_of_an_iteration_does_not_grow_with_the_data():
    """The compiled loop computes as much, and holds as much beside the data, at any N."""
    small, large = compiled_loop(10_000), compiled_loop(1_000_000)
    assert large.memory_analysis().argument_size_in_bytes > 8_000_000
    temporary = [x.memory_analysis().temp_size_in_bytes for x in (small, large)]
    assert temporary[1] < 1.1 * temporary[0]
    flops = [x.cost_analysis()["flops"] for x in (small, large)]
    assert flops[1] < 1.01 * flops[0]


# -- what it keeps --------------------------------------------------------------------------------


def test_save_and_load(tmp_path):
    fit = short_fit()
    loaded = Fit.load(fit.save(tmp_path / "fit.npz"))
    assert_same(fit, loaded)
    assert loaded.config == fit.config
    assert loaded.position_shapes == fit.position_shapes
    np.testing.assert_array_equal(loaded.coreset.rows["y"], fit.coreset.rows["y"])
    assert loaded.summary() == fit.summary()


def test_a_damaged_file_is_reported(tmp_path):
    path = short_fit(num_iterations=5).save(tmp_path / "fit.npz")
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="damaged"):
        Fit.load(path)
    with pytest.raises(FileNotFoundError, match="no file"):
        Fit.load(tmp_path / "nothing.npz")


def test_writing_is_all_or_nothing(tmp_path, monkeypatch):
    fit = short_fit(num_iterations=5)
    path = fit.save(tmp_path / "fit.npz")
    before = path.read_bytes()

    def power_cut(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", power_cut)
    with pytest.raises(KeyboardInterrupt):
        fit.save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["fit.npz"]


def test_resuming_gives_the_same_bits(tmp_path):
    whole = short_fit()
    path = tmp_path / "run.npz"
    with pytest.warns(UserWarning, match="interrupted"):
        part = interrupted_fit(path)
    assert 0 < part.iteration < 300
    resumed = short_fit(checkpoint=path, resume=True)
    assert_same(whole, resumed)
    assert_same(whole, Fit.load(path))
    assert_same(whole, short_fit(checkpoint=path, resume=True))  # nothing left to do


def interrupted_fit(path):
    """Press Ctrl-C as soon as the first checkpoint is there."""
    original = coremcmc.fitting.result.Fit.save

    def save_and_interrupt(self, to):
        if not to.exists():
            signal.raise_signal(signal.SIGINT)
        return original(self, to)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coremcmc.fitting.result.Fit, "save", save_and_interrupt)
        return short_fit(checkpoint=path, checkpoint_every=0.0)


@pytest.fixture
def ctrl_c(monkeypatch):
    """Press Ctrl-C some seconds after the data have been handed to the loop."""

    def after(seconds):
        timer = threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT))
        original = coremcmc.MemoryData.feed

        def feed(self):
            timer.start()
            return original(self)

        monkeypatch.setattr(coremcmc.MemoryData, "feed", feed)

    return after


def test_ctrl_c_ends_with_what_there_is(ctrl_c):
    short_fit(num_iterations=200, thin=100)  # compile first
    ctrl_c(1.0)
    with pytest.warns(UserWarning, match="interrupted"):
        fit = short_fit(num_iterations=10**8, thin=100)
    assert fit.stopped == "interrupted"
    assert 0 < fit.iteration < 10**8
    assert len(fit.positions) == fit.iteration // 100
    assert "interrupted" in fit.summary()


@pytest.mark.slow
def test_a_killed_run_resumes_to_the_same_bits(tmp_path):
    """SIGKILL, at whatever moment it strikes."""
    path = tmp_path / "run.npz"
    script = textwrap.dedent(f"""
        import coremcmc
        data = coremcmc.logistic_data(seed=1, num_rows=2_000, num_features=2)
        coremcmc.fit(coremcmc.LogisticRegression(), data, 40, preset="paper", num_iterations=20_000,
                     checkpoint={str(path)!r}, checkpoint_every=0.0, resume=True)
    """)
    process = subprocess.Popen([sys.executable, "-c", script])
    deadline = time.monotonic() + 120
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.3)
    process.send_signal(signal.SIGKILL)
    process.wait()
    killed = Fit.load(path)
    assert 0 < killed.iteration < 20_000
    options = {"num_iterations": 20_000}
    assert_same(short_fit(**options), short_fit(checkpoint=path, resume=True, **options))


def test_a_finished_run_can_be_extended(tmp_path):
    path = tmp_path / "run.npz"
    short_fit(num_iterations=100, thin=10, checkpoint=path)
    longer = short_fit(num_iterations=200, thin=10, checkpoint=path, resume=True)
    straight = short_fit(num_iterations=200, thin=10)
    np.testing.assert_array_equal(longer.positions, straight.positions)
    np.testing.assert_array_equal(longer.coreset.weights_last, straight.coreset.weights_last)


def test_a_finished_run_is_extended_with_the_thinning_that_it_had(tmp_path):
    path = tmp_path / "run.npz"
    short_fit(num_iterations=2100, checkpoint=path)
    longer = short_fit(num_iterations=4200, checkpoint=path, resume=True)
    assert longer.config["settings"]["thin"] == 2
    assert longer.iteration == 4200


def test_a_checkpoint_is_a_fit_in_itself(tmp_path):
    path = tmp_path / "run.npz"
    seen = []
    original = coremcmc.fitting.result.Fit.save

    def save_and_look(self, to):
        result = original(self, to)
        seen.append(Fit.load(to))
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coremcmc.fitting.result.Fit, "save", save_and_look)
        short_fit(checkpoint=path, checkpoint_every=1e-9)
    part = seen[1]
    assert 0 < part.iteration < 300
    assert part.stopped == "running"
    assert part.posterior["beta"].shape[1] > 0
    assert "beta[0]" in part.summary()
    part.to_arviz()
    assert "still running" in part.report(tmp_path / "part.html").read_text()


def test_files_have_the_users_permissions(tmp_path):
    umask = os.umask(0o022)
    try:
        path = short_fit(num_iterations=5).save(tmp_path / "fit.npz")
    finally:
        os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_full_disk_does_not_end_the_run(tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.warns(UserWarning, match="could not save.*No space left"):
        fit = short_fit(checkpoint=tmp_path / "run.npz")
    assert fit.iteration == 300
    assert os.listdir(tmp_path) == []


def test_pieces_may_end_inside_a_record(ctrl_c):
    """Ctrl-C does not wait for the next record, and leaves none that is not due."""
    options = {"num_iterations": 10**7, "thin": 10**6}
    ctrl_c(9.0)
    began = time.monotonic()
    with pytest.warns(UserWarning, match="interrupted"):
        fit = short_fit(**options)
    assert time.monotonic() - began < 60
    assert 0 < fit.iteration < 10**6
    assert len(fit.positions) == 0
    assert "(no draws)" in fit.summary()


# -- what it shows --------------------------------------------------------------------------------


def test_arviz_takes_the_draws():
    fit = short_fit()
    data = fit.to_arviz()
    arviz = sys.modules["arviz"]  # imported by to_arviz, not before
    beta = np.asarray(data["posterior"]["beta"])
    np.testing.assert_array_equal(beta, fit.posterior["beta"])
    assert data["posterior"].attrs["coreset_size"] == 40
    assert np.asarray(data["sample_stats"]["lp"]).shape == beta.shape[:2]
    assert set(arviz.summary(data).columns) >= {"mean", "sd"}


def test_the_summary_fits_a_screen_and_says_the_numbers():
    fit = short_fit()
    text = fit.summary()
    assert len(text.splitlines()) < 24
    assert max(map(len, text.splitlines())) < 110
    assert f"{fit.posterior['beta'][..., 0].mean():.5g}" in text
    assert "40 of 2,000 rows" in text
    assert repr(fit).startswith("Fit(Coreset(40 of 2,000 rows")


def test_a_forced_start_is_a_warning():
    with pytest.warns(UserWarning, match="had not settled"):
        fit = short_fit(hot_start=HotStart(threshold=1e-9, max_iterations=60))
    assert fit.hot_start["is_forced"]
    assert "forced" in fit.summary()


def test_the_report_takes_the_place_of_the_plot(tmp_path):
    fit = short_fit()
    with pytest.raises(AttributeError, match=r"fit\.report.*arviz\.plot_trace"):
        fit.plot(tmp_path / "fit.png")
    assert not list(tmp_path.iterdir())
    path = fit.report(tmp_path / "fit.html")
    assert path.stat().st_size > 20_000
    drawn = path.read_text()
    for panel in ("Gradient norm", "Running posterior mean", "Weights", "Marginal densities"):
        assert f"<h3>{panel}</h3>" in drawn


def test_the_progress_bar_is_shown_when_asked_and_silent_otherwise(capsys):
    short_fit(progress=True)
    shown = capsys.readouterr().err
    assert "300/300" in shown
    assert "hot" in shown
    assert "|g|=" in shown
    short_fit(progress=None)
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_progress_shows_the_passes_of_the_default_preset(capsys):
    options = {"num_draws": 20, "preset": "default"}
    short_fit(progress=True, **options)
    shown = capsys.readouterr().err
    assert re.search(r"reading the data, pass \d+ .*2000/2000 rows", shown)
    assert re.search(r"judging the coreset, pass 1 .*2000/2000 rows", shown)
    assert "300/300" in shown
    short_fit(progress=None, **options)
    assert capsys.readouterr().err == ""
