"""The paper's recipe on the paper's data: Poisson regression of hourly bike rentals, M = 1,000."""

import functools
import json
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import coremcmc
from coremcmc import Fit, PoissonRegression

paper_fit = functools.partial(coremcmc.fit, preset="paper")

pytestmark = [pytest.mark.slow, pytest.mark.statistical]


@pytest.fixture(scope="module")
def reference(shared_data):
    """Full-data posterior published by the paper's authors: 500,000 draws of Stan."""
    entry = json.loads((shared_data / "reference_posteriors.json").read_text())["bikes"]
    return np.array(entry["mean"]), np.sqrt(entry["variance"])


def run(bikes, **options):
    return paper_fit(PoissonRegression(), bikes, 1000, **{"num_iterations": 12_500, **options})


def test_hot_dog_brings_the_error_down(bikes, reference):
    fits = [run(bikes, seed=seed) for seed in range(3)]
    traces = [fit.squared_z(*reference, trace=True) for fit in fits]
    starts = [np.mean(((f.positions[0].mean(0) - reference[0]) / reference[1]) ** 2) for f in fits]
    assert np.median(starts) > 1e5  # the chains start far away
    assert all(0 < fit.hot_start["passed_at"] <= 1000 for fit in fits)
    assert not any(fit.hot_start["is_forced"] for fit in fits)
    assert np.median([trace[-1] for trace in traces]) < 50
    # and it is the training that did it: with the weights held, the coreset posterior is far off
    with pytest.warns(UserWarning, match="has not passed"):
        held = run(bikes, num_iterations=3000, hot_start=coremcmc.HotStart(threshold=1e-12))
    assert held.squared_z(*reference) > 100


@pytest.mark.parametrize("optimizer", ["dog", "adam"])
def test_dog_and_adam_run_on_the_same_problem(bikes, reference, optimizer):
    fit = run(bikes, optimizer=optimizer, num_iterations=3000)
    trace = fit.squared_z(*reference, trace=True)
    assert np.isfinite(trace).all()
    assert trace[-1] < 0.01 * trace[0]
    assert (fit.coreset.weights_last != 15_641 / 1000).mean() > 0.9


def test_a_killed_run_resumes_to_the_same_bits(bikes, shared_data, tmp_path):
    path = tmp_path / "run.npz"
    script = textwrap.dedent(f"""
        import numpy as np, coremcmc
        with np.load({str(shared_data / "bikes.npz")!r}) as file:
            data = {{"x": file["X"], "y": file["y"]}}
        coremcmc.fit(coremcmc.PoissonRegression(), data, 1000, preset="paper", num_iterations=4000,
                     checkpoint={str(path)!r}, checkpoint_every=0.5)
    """)
    process = subprocess.Popen([sys.executable, "-c", script])
    deadline = time.monotonic() + 120
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert 0 < Fit.load(path).iteration < 4000
    resumed = run(bikes, num_iterations=4000, checkpoint=path, resume=True)
    whole = run(bikes, num_iterations=4000)
    assert whole.state.keys() == resumed.state.keys()
    for name, value in whole.state.items():
        np.testing.assert_array_equal(value, resumed.state[name], err_msg=name)
    np.testing.assert_array_equal(whole.positions, resumed.positions)
