"""The paper's convergence theorem, looked at: its assumptions along runs, and its rate on a toy.

``python -m experiments theorem`` computes all of it anew and writes ``theorem.json``.
"""

import json
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from scipy import stats

import coremcmc
from experiments.starts import in_the_starting_posterior

__all__ = ["STORED", "appendix_c", "exact_coreset", "look", "squared_distances", "stored", "watch"]

STORED = Path(__file__).parent / "theorem.json"

_NUM_CHAINS = 2
_BETA1, _BETA2, _EPS, _R = 0.9, 0.999, 1e-8, 1e-3


class AppendixCState(NamedTuple):
    """State of :func:`appendix_c`: m, v, the floored running maximum of |w − w_0|, its average."""

    count: jax.Array
    initial_params: jax.Array
    first_moment: jax.Array
    second_moment: jax.Array
    farthest: jax.Array
    average: jax.Array


def appendix_c(
    r: float = _R, beta1: float = _BETA1, beta2: float = _BETA2, eps: float = _EPS
) -> optax.GradientTransformation:
    r"""The recursion that Appendix C.1 proves to converge, which is not quite Algorithm 2.

    The distance is a true running maximum with a floor r_δ, averaged from that floor on and
    corrected by 1 − β_1^t:

    .. math::

        \bar r_t = \max(r_δ, \max_{k < t} |w_k - w_0|), \qquad
        \tilde r_t = \frac{(1 - β_1) \sum_{k=0}^{t-1} β_1^k \bar r_{t-k} + β_1^t \bar r_0}
                          {1 - β_1^t}

    (The paper's r̄_t contains w_t, which it is to determine; the last known weights stand here,
    as in Algorithm 2.)
    """

    def init_fn(params):
        zeros, floor = jnp.zeros_like(params), jnp.full_like(params, r)
        return AppendixCState(jnp.zeros([], int), params, zeros, zeros, floor, floor)

    def update_fn(updates, state, params=None):
        count = state.count + 1
        t = count.astype(params.dtype)
        first_moment = beta1 * state.first_moment + updates
        second_moment = beta2 * state.second_moment + updates**2
        farthest = jnp.maximum(state.farthest, jnp.abs(params - state.initial_params))
        average = beta1 * state.average + (1 - beta1) * farthest
        scale = (1 - beta1) / (1 - beta1**t) * jnp.sqrt((1 - beta2**t) / (1 - beta2))
        rate = scale * average / (1 - beta1**t)
        step = -rate * first_moment / jnp.sqrt(t * (eps + second_moment))
        state = AppendixCState(
            count, state.initial_params, first_moment, second_moment, farthest, average
        )
        return step, state

    return optax.GradientTransformation(init_fn, update_fn)


def exact_coreset(seed: int = 0, d: int = 3, num_rows: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Return data and the only weights of the first d + 1 rows that reproduce the likelihood.

    Of Gaussian location Σ_n ℓ_n = Σ_m w*_m ℓ_m + const asks for Σ w* = N and Σ w* x_m = Σ x_n: as
    many equations as weights.
    """
    rng = np.random.default_rng(seed)
    corners = np.vstack([np.eye(d), -np.ones(d)])
    x = np.vstack([corners, 0.5 * rng.standard_normal((num_rows - d - 1, d))])
    system = np.vstack([np.ones(d + 1), corners.T])
    return x, np.linalg.solve(system, np.concatenate([[num_rows], x.sum(0)]))


def squared_distances(
    optimizer: optax.GradientTransformation, times: np.ndarray, num_runs: int, seed: int = 1
) -> np.ndarray:
    """Return ‖w_t − w*‖² on the toy at the given iterations, a row a run."""
    x, exact = exact_coreset()
    num_rows, size = x.shape[0], len(exact)
    feed = coremcmc.MemoryData({"x": x}).feed()
    algorithm = coremcmc.coreset_mcmc(
        coremcmc.GaussianLocation(),
        {"x": x[:size]},
        num_rows,
        optimizer=optimizer,
        hot_start=None,
        max_weight_sum=2.0 * num_rows,
    )

    def one(key):
        def step(state, t):
            key_move, key_rows = jax.random.split(jax.random.fold_in(key, t))
            subsample = feed.subsample(key_rows, t, num_rows // 2)
            state, _ = algorithm.step(key_move, state, subsample)
            return state, jnp.sum((state.weights - exact) ** 2)

        return jax.lax.scan(step, algorithm.init(key), jnp.arange(times[-1]))[1][times - 1]

    with jax.enable_x64(True):
        return np.asarray(jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(seed), num_runs)))


def watch(
    model: coremcmc.Model,
    columns: dict[str, np.ndarray],
    size: int,
    num_iterations: int,
    *,
    rows: np.ndarray | None = None,
    start: Any = None,
    hot_start: coremcmc.HotStart | None = None,
    max_weight_sum: float | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Return what a run of Hot DoG shows of the assumptions' constants.

    U bounds ‖g‖_∞, λ is the least eigenvalue of E[G_t], λ̄ the largest of E[G_t²]; they are asked
    for at every w and θ, and are seen here along one run, after the release of the weights.
    """
    data = coremcmc.MemoryData(columns)
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.choice(data.num_rows, size, replace=False)) if rows is None else rows
    coreset, feed = data.take(chosen), data.feed()
    algorithm = coremcmc.coreset_mcmc(
        model, coreset, data.num_rows, hot_start=hot_start, max_weight_sum=max_weight_sum
    )

    def centred(position, some):
        values = jax.vmap(lambda p: model.loglikelihood_fn(p, model.prepare_rows(some)))(position)
        return values - values.mean(axis=0)

    def body(carry, t):
        state, total, squares = carry
        key_move, key_rows = jax.random.split(jax.random.fold_in(jax.random.key(seed), t))
        subsample = feed.subsample(key_rows, t, size)
        position, is_free = state.chains.position, state.hot_start.passed_at >= 0
        own = centred(position, jax.tree.map(jnp.asarray, coreset))
        others = data.num_rows / size * centred(position, subsample).sum(axis=1)
        g = (own * (own @ state.weights - others)[:, None]).sum(axis=0) / (_NUM_CHAINS - 1)
        gram = own.T @ own / (_NUM_CHAINS - 1)
        total = total + jnp.where(is_free, gram, 0.0)
        squares = squares + jnp.where(is_free, gram @ gram, 0.0)
        state, info = algorithm.step(key_move, state, subsample)
        seen = (jnp.abs(g).max(), is_free, jnp.linalg.norm(g), info.gradient_norm)
        return (state, total, squares), seen

    with jax.enable_x64(True):
        key = jax.random.key(seed)
        positions = None
        if start is not None:
            draw, keys = start(columns), jax.random.split(key, _NUM_CHAINS)
            positions = jax.vmap(draw, (0, None))(keys, coreset)
        begun = algorithm.init(key, _NUM_CHAINS, positions=positions)
        begun = jax.tree.map(lambda a: jax.lax.convert_element_type(a, a.dtype), begun)
        zeros = jnp.zeros((size, size))
        run = jax.jit(partial(jax.lax.scan, body))
        (_, total, squares), seen = run((begun, zeros, zeros), jnp.arange(num_iterations))
        largest, is_free, norm, reported = map(np.asarray, seen)
    np.testing.assert_allclose(norm[is_free], reported[is_free], rtol=1e-6)  # it is ĝ that we see
    free = largest[is_free]
    eigenvalues = np.linalg.eigvalsh(np.asarray(total) / len(free))
    return {
        "size": size,
        "num_iterations": num_iterations,
        "held": int((~is_free).sum()),
        "median": float(np.median(free)),
        "q99": float(np.quantile(free, 0.99)),
        "first_tenth_max": float(free[: len(free) // 10].max()),
        "max": float(free.max()),
        "least": float(eigenvalues[0]),
        "largest": float(eigenvalues[-1]),
        "rank": int((eigenvalues > 1e-10 * eigenvalues[-1]).sum()),
        "largest_of_squares": float(np.linalg.eigvalsh(np.asarray(squares) / len(free))[-1]),
    }


def look(
    num_runs: int = 64, num_iterations: int = 50_000, num_watched: int = 20_000
) -> dict[str, Any]:
    """Compute everything that is stored."""
    times = np.unique(np.round(np.logspace(0, np.log10(num_iterations), 40)).astype(int))
    x, exact = exact_coreset()
    bound = 2.0 * len(x)
    curves = {}
    for name, optimizer in (("algorithm_2", coremcmc.hot_dog()), ("appendix_c", appendix_c())):
        squared = squared_distances(optimizer, times, num_runs)
        late = times >= 1_000
        slope = stats.linregress(np.log(times[late]), np.log(squared.mean(0)[late])).slope
        error = np.std([_slope(times, squared, seed) for seed in range(200)])
        curves[name] = {
            "mean": squared.mean(0).tolist(),
            "slope": float(slope),
            "slope_error": float(error),
        }
    gaussian = coremcmc.gaussian_location_data()
    toy = watch(
        coremcmc.GaussianLocation(),
        {"x": x},
        len(exact),
        num_watched,
        rows=np.arange(len(exact)),
        max_weight_sum=bound,
    )
    models = {
        "toy": toy,
        "gaussian": watch(
            coremcmc.GaussianLocation(),
            gaussian,
            100,
            num_watched,
            start=in_the_starting_posterior,
        ),
        "logistic": watch(
            coremcmc.LogisticRegression(),
            coremcmc.logistic_data(num_rows=10_000),
            20,
            num_watched,
            hot_start=coremcmc.HotStart(),
        ),
    }
    rate = toy["least"] * (1 - _BETA1) * _R / (2 * (_EPS + toy["max"] ** 2 / (1 - _BETA2)) ** 0.5)
    other = toy["largest_of_squares"] * bound**2 / (_EPS * (1 - _BETA1) ** 4 * (1 - _BETA2))
    return {
        "num_runs": num_runs,
        "iteration": times.tolist(),
        "curves": curves,
        "models": models,
        "bound": {
            "B": bound,
            "trivial": len(exact) * bound**2,
            "D": rate,
            "T": (other / rate) ** 2,
        },
    }


def _slope(times: np.ndarray, squared: np.ndarray, seed: int) -> float:
    """Slope on a log-log scale of the mean over resampled runs, from iteration 1,000 on."""
    rng, late = np.random.default_rng(seed), times >= 1_000
    mean = squared[rng.integers(0, len(squared), len(squared))].mean(0)
    return float(stats.linregress(np.log(times[late]), np.log(mean[late])).slope)


def stored() -> dict[str, Any]:
    """Read what was computed last."""
    return json.loads(STORED.read_text(encoding="utf-8"))
