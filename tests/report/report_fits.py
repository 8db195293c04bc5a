"""Fits to report on, made by hand: each is a Fit in form, with draws that the tests choose."""

import numpy as np

from coremcmc import Coreset, Fit
from coremcmc.certificate.certificate import Certificate
from coremcmc.pytrees import coordinate_names

NASTY = "<script>alert(1)</script>"
QUOTED = "\"a\" & 'b' > π 日本語"


def make_coreset(num_rows=1_000, size=20, columns=None, weights=None, seed=0):
    rng = np.random.default_rng(seed)
    indices = np.sort(rng.choice(num_rows, size, replace=False))
    weights = rng.gamma(1.0, num_rows / size, size) if weights is None else np.asarray(weights)
    rows = {"x": rng.standard_normal((size, 3)), "y": rng.integers(0, 2, size)}
    return Coreset(indices, weights, weights, weights, 50, columns or rows, num_rows)


def make_traces(iteration, num_chains, position_sum, seed=0):
    rng = np.random.default_rng(seed)
    count = len(iteration)
    return {
        "iteration": iteration,
        "position_sum": position_sum,
        "log_potentials": -100 + rng.standard_normal((count, num_chains)),
        "gradient_norm": np.exp(rng.standard_normal(count)),
        "hot_start_statistic": np.where(iteration < 30, np.inf, 2.0 / np.maximum(iteration, 1)),
        "is_hot": (iteration >= 60).astype(int),
        "num_evaluations": 10 * iteration,
        "weights_sum": 1_000 + rng.standard_normal(count),
        "weights_max": 100 + rng.standard_normal(count),
        "weights_num_zero": np.zeros(count, int),
        "weights_ess": 15 + 0.1 * rng.standard_normal(count),
        "residual_variance": np.exp(rng.standard_normal(count)),
        "control_ratio": np.exp(-5 + rng.standard_normal(count)),
    }


def make_config(**changes):
    settings = {
        "num_iterations": 200,
        "num_chains": 4,
        "subsample_size": 20,
        "kernel": "whitened_hmc",
        "optimizer": "hot_dog",
        "hot_start": "HotStart(threshold=0.5, interval=30, max_iterations=10000)",
        "selection": "informed",
        "initial_weights": "least_squares",
        "returned_weights": "auto",
        "max_weight_sum": None,
        "thin": 2,
        "control_variate": True,
        "stops_early": False,
        "num_draws": 250,
        "certificate": True,
    }
    return {
        "model": "TestModel(scale=2.0)",
        "data": {"shapes": {"['x']": "float64[1000, 3]"}, "digest": "0123abcd"},
        "coreset_size": 20,
        "seed": 7,
        "initial_positions": "None",
        "preset": "default",
        "settings": settings | changes,
        "versions": {"coremcmc": "0.1.0", "jax": "0.10", "optax": "0.2", "numpy": "2.4"},
        "device": "cpu",
    }


def make_certificate(positions, names, verdict="good", **changes):
    flat = positions.reshape(-1, positions.shape[-1])
    mean, sd = flat.mean(axis=0), flat.std(axis=0, ddof=1)
    values = {
        "verdict": verdict,
        "reasons": ["means and spreads agree with the full posterior's as far as can be seen."],
        "residual_variance": 0.004,
        "pareto_k": 0.31,
        "names": names,
        "mean": mean,
        "sd": sd,
        "corrected_mean": mean + 0.1 * sd,
        "corrected_sd": 1.2 * sd,
        "laplace_mean": mean - 0.2 * sd,
        "laplace_sd": 0.9 * sd,
        "num_draws": 400,
    }
    return Certificate(**(values | changes))


def make_fit(
    shapes=None, *, num_draws=250, num_chains=4, seed=0, judged=True, sampled=True, **changes
):
    """Return a fit whose named parameters are its coordinates."""
    shapes = shapes or {"beta": (3,), "sigma": ()}
    rng = np.random.default_rng(seed)
    dimension = len(coordinate_names(shapes))
    mean, sd = rng.normal(0, 2, dimension), rng.uniform(0.1, 1, dimension)
    positions = mean + sd * rng.standard_normal((num_draws, num_chains, dimension))
    records = mean + sd * rng.standard_normal((100, num_chains, dimension))
    iteration = 2 * np.arange(1, 101)
    position_sum = 2 * np.cumsum(records.mean(axis=1), axis=0)
    values = {
        "coreset": make_coreset(),
        "positions": records,
        "position_shapes": shapes,
        "draws": name_draws(records, shapes),
        "traces": make_traces(iteration, num_chains, position_sum),
        "config": make_config(),
        "hot_start": {"passed_at": 60, "is_forced": 0, "threshold": 0.5},
        "iteration": 200,
        "stopped": "finished",
        "seconds": 12.34,
        "sampled_positions": positions if sampled else np.zeros((0, 0, 0)),
        "sampled": name_draws(positions, shapes) if sampled else {},
    }
    if judged:
        values["certificate"] = make_certificate(positions, coordinate_names(shapes))
    return Fit(**(values | changes))


def name_draws(positions, shapes):
    """Split draws × chains × coordinates into chains × draws × shape, by name."""
    named, start = {}, 0
    for name, shape in shapes.items():
        size = int(np.prod(shape))
        part = np.swapaxes(positions[:, :, start : start + size], 0, 1)
        named[name] = part.reshape(*part.shape[:2], *shape)
        start += size
    return named


def empty_fit():
    """Return a fit that was interrupted before its first record."""
    traces = make_traces(np.zeros(0, int), 4, np.zeros((0, 4)))
    return make_fit(
        judged=False,
        sampled=False,
        positions=np.zeros((0, 4, 4)),
        draws={},
        traces=traces,
        iteration=1,
        stopped="interrupted",
        hot_start={"passed_at": -1, "is_forced": 0, "threshold": 0.5},
    )
