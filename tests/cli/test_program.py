"""The installed console script: fast to start, killed and resumed, interrupted, right."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pandas
import pytest

from coremcmc import Fit
from tests.cli.conftest import PROGRAM

FORMULA = "y ~ a + b + C(kind)"
OPTIONS = ["--family", "logistic", "--formula", FORMULA, "--coreset-size", "500"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """20,000 rows of a logistic regression, on the scales that users have."""
    rng = np.random.default_rng(7)
    table = pandas.DataFrame(
        {
            "a": 50 + 10 * rng.standard_normal(20_000),
            "b": rng.exponential(0.01, 20_000),
            "kind": rng.choice(["x", "y", "z"], 20_000, p=[0.6, 0.3, 0.1]),
        }
    )
    eta = -1 + 0.05 * (table["a"] - 50) - 60 * table["b"] + 0.8 * (table["kind"] == "z")
    table["y"] = (rng.random(20_000) < 1 / (1 + np.exp(-eta))).astype(int)
    path = tmp_path_factory.mktemp("data") / "twenty.csv"
    table.to_csv(path, index=False)
    return path, table


def begin(environment, *arguments):
    return subprocess.Popen(
        [PROGRAM, *map(str, arguments)], env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def wait_for(path, process, seconds=240):
    end = time.monotonic() + seconds
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)


def test_help_starts_fast_because_it_does_not_import_jax(program):
    code = "import sys; sys.argv = ['coremcmc', '--help']; from coremcmc.cli.app import app; app()"
    code = (
        f"import atexit; atexit.register(lambda: print('jax' in __import__('sys').modules)); {code}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
    assert "Commands" in program("--help").stdout


def test_the_shell_completes_commands_and_families(program, environment):
    def complete(words):
        variables = {"_COREMCMC_COMPLETE": "complete_bash", "COMP_WORDS": words,
                     "COMP_CWORD": str(len(words.split(" ")) - 1)}  # fmt: skip
        return program(env={**environment, **variables}).stdout.split()

    assert complete("coremcmc s") == ["sample", "summary"]
    assert complete("coremcmc fit data.csv --family p") == ["probit", "poisson"]


@pytest.mark.slow
def test_from_csv_to_posterior_through_a_kill(data, program, environment, tmp_path):
    """CSV → fit → SIGKILL → resume → report → sample, against NUTS on all the rows."""
    path, table = data
    long = [*OPTIONS, "--iterations", "20000"]
    run = tmp_path / "run"
    process = begin(environment, "fit", path, *long, "--checkpoint-every", "0.2", "--out", run)
    wait_for(run / "checkpoint.npz", process)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    killed = Fit.load(run / "checkpoint.npz")
    assert killed.stopped == "running"
    assert 0 < killed.iteration < 20_000
    assert not (run / "posterior.nc").exists()

    resumed = program("resume", run, "--json")
    assert resumed.returncode == 0, resumed.stderr
    found = json.loads(resumed.stdout)
    assert found["iterations"] == 20_000

    unbroken = program("fit", path, *long, "--out", tmp_path / "unbroken", "--json")
    assert unbroken.returncode == 0, unbroken.stderr
    assert json.loads(unbroken.stdout)["posterior"] == found["posterior"]
    a, b = Fit.load(run / "checkpoint.npz"), Fit.load(tmp_path / "unbroken" / "checkpoint.npz")
    np.testing.assert_array_equal(a.coreset.weights, b.coreset.weights)
    np.testing.assert_array_equal(a.sampled_positions, b.sampled_positions)

    (run / "report.html").unlink()
    assert program("report", run).returncode == 0
    assert "Intercept" in (run / "report.html").read_text()

    mean, sd = reference(table)
    compare(found["posterior"], mean, sd)
    path.rename(path.with_suffix(".gone"))  # more draws need no data
    try:
        sampled = program("sample", run, "--num-draws", "1500", "--kernel", "nuts", "--json")
    finally:
        path.with_suffix(".gone").rename(path)
    assert sampled.returncode == 0, sampled.stderr
    compare(json.loads(sampled.stdout)["posterior"], mean, sd)
    assert program("resume", run).stdout.count("finished already") == 1


def compare(posterior, mean, sd):
    for name in mean:
        assert abs(posterior[name]["mean"] - mean[name]) < 0.3 * sd[name], name
        assert posterior[name]["sd"] == pytest.approx(sd[name], rel=0.15), name


def reference(table):
    """NUTS of NumPyro on all the rows, with the same prior on standardized features."""
    import jax
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    columns = {
        "a": table["a"],
        "b": table["b"],
        "C(kind)[T.y]": table["kind"] == "y",
        "C(kind)[T.z]": table["kind"] == "z",
    }
    raw = np.stack([np.asarray(column, float) for column in columns.values()], axis=1)
    centre, scale = raw.mean(axis=0), raw.std(axis=0)
    scale[2:] = 1.0  # a category's coefficient is the difference that it makes
    features, y = (raw - centre) / scale, table["y"].to_numpy()

    def model():
        intercept = numpyro.sample("intercept", dist.StudentT(3, 0, 2.5))
        beta = numpyro.sample("beta", dist.StudentT(3, 0, 2.5).expand([4]))
        numpyro.sample("y", dist.Bernoulli(logits=intercept + features @ beta), obs=y)

    mcmc = MCMC(NUTS(model), num_warmup=500, num_samples=1_500, progress_bar=False)
    mcmc.run(jax.random.key(0))
    draws = {name: np.asarray(x) for name, x in mcmc.get_samples().items()}
    slopes = draws["beta"] / scale
    named = dict(zip(columns, slopes.T, strict=True))
    named["Intercept"] = draws["intercept"] - slopes @ centre
    return ({k: x.mean() for k, x in named.items()}, {k: x.std() for k, x in named.items()})


@pytest.mark.slow
@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_saves_itself_and_says_how_to_go_on(data, environment, tmp_path, which):
    run = tmp_path / "run"
    arguments = ["fit", data[0], *OPTIONS, "--preset", "paper", "--iterations", "100000000"]
    process = begin(environment, *arguments, "--checkpoint-every", "0.2", "--out", run)
    wait_for(run / "checkpoint.npz", process)
    process.send_signal(which)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert f"coremcmc resume {run}" in errors
    assert "Traceback" not in errors
    assert output == ""
    assert Fit.load(run / "checkpoint.npz").stopped == "interrupted"


@pytest.mark.slow
def test_a_run_that_goes_on_is_looked_at_and_not_written_to(data, program, environment, tmp_path):
    run = tmp_path / "run"
    arguments = ["fit", data[0], *OPTIONS, "--preset", "paper", "--iterations", "100000000"]
    process = begin(environment, *arguments, "--checkpoint-every", "0.2", "--out", run)
    try:
        wait_for(run / "checkpoint.npz", process)
        other = program("resume", run)
        early = program("report", run), program("summary", run)  # before the first record
    finally:
        process.kill()
        process.communicate()
    assert other.returncode == 2
    assert "another coremcmc process" in other.stderr
    assert early[0].returncode == 0, early[0].stderr
    assert FORMULA in (run / "report.html").read_text()
    assert early[1].returncode == 0, early[1].stderr
    assert f"coremcmc resume {run}" in early[1].stdout


@pytest.mark.slow
def test_what_the_system_refuses_to_write_leaves_the_files_as_they_were(
    data, program, environment, tmp_path
):
    """No file may grow beyond a kilobyte, as on a disk that fills up while it is written."""
    run = tmp_path / "run"
    short = ["--preset", "paper", "--iterations", "60"]
    done = program("fit", data[0], *OPTIONS, *short, "--out", run)
    assert done.returncode == 0, done.stderr
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    for arguments in (
        ["report", run],
        ["sample", run, "--num-draws", "20", "--kernel", "hit_and_run", "--quiet"],
    ):
        limited = subprocess.run(
            ["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", PROGRAM, *map(str, arguments)],
            env={**environment, "JAX_ENABLE_COMPILATION_CACHE": "0"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert limited.returncode == 2, limited.stderr
        assert limited.stderr.startswith("error: cannot write"), limited.stderr
        assert len(limited.stderr.splitlines()) == 1
        assert {path.name: path.read_bytes() for path in run.iterdir()} == before
