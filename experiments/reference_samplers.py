"""Draws from full-data posteriors, without any of coremcmc's densities or kernels.

The smooth models are written in NumPyro and sampled with NUTS. Rows are summed up first where that
leaves the likelihood as it is: the linear model reads the triangular factor of its columns, the
Bradley-Terry model the number of wins of each pairing. The sparse regression has the Gibbs sampler
of George and McCulloch (1993), in NumPy.
"""

from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.flatten_util import ravel_pytree
from numpyro.infer import MCMC, NUTS
from numpyro.infer.util import log_density
from scipy.optimize import minimize

import coremcmc
from experiments.errors import StudyError

__all__ = ["NUMPYRO_MODELS", "gibbs", "log_joint", "nuts"]

Rows = dict[str, np.ndarray]
_LOG_2PI = float(np.log(2 * np.pi))


def _design(rows: Rows) -> np.ndarray:
    """[1 x]."""
    return np.column_stack([np.ones(len(rows["x"])), rows["x"]])


def _normals(name: str, size: int) -> jax.Array:
    return numpyro.sample(name, dist.Normal(0.0, 1.0).expand([size]).to_event(1))


def _linear(rows: Rows, model: coremcmc.Model) -> Callable[[], None]:
    """‖y − Xβ‖² is the same for the rows of R, where [X y] = QR."""
    factor = np.linalg.qr(np.column_stack([_design(rows), rows["y"]]), mode="r")
    x, y = jnp.asarray(factor[:, :-1]), jnp.asarray(factor[:, -1])
    rest = len(rows["y"]) - len(y)

    def density() -> None:
        beta = _normals("beta", x.shape[1])
        log_sigma2 = numpyro.sample("log_sigma2", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.Normal(x @ beta, jnp.exp(0.5 * log_sigma2)), obs=y)
        numpyro.factor("other_rows", -0.5 * rest * (log_sigma2 + _LOG_2PI))

    return density


def _logistic(rows: Rows, model: coremcmc.Model) -> Callable[[], None]:
    x, y = jnp.asarray(_design(rows)), jnp.asarray(rows["y"])

    def density() -> None:
        prior = dist.Cauchy(0.0, 1.0).expand([x.shape[1]]).to_event(1)
        beta = numpyro.sample("beta", prior)
        numpyro.sample("y", dist.Bernoulli(logits=x @ beta), obs=y)

    return density


def _poisson(rows: Rows, model: coremcmc.Model) -> Callable[[], None]:
    x, y = jnp.asarray(_design(rows)), jnp.asarray(rows["y"])

    def density() -> None:
        beta = _normals("beta", x.shape[1])
        numpyro.sample("y", dist.Poisson(jax.nn.softplus(x @ beta)), obs=y)

    return density


def _bradley_terry(rows: Rows, model: coremcmc.BradleyTerry) -> Callable[[], None]:
    """Games of the same two teams, the same one at home, are binomial."""
    pairs, games = np.unique(
        np.stack([rows["home"], rows["away"]], axis=1), axis=0, return_inverse=True
    )
    home, away = jnp.asarray(pairs[:, 0]), jnp.asarray(pairs[:, 1])
    played = jnp.asarray(np.bincount(games.ravel()))
    won = jnp.asarray(np.bincount(games.ravel(), weights=rows["y"]))

    def density() -> None:
        theta = _normals("theta", model.num_teams)
        logits = (theta[home] - theta[away]) / 400.0
        numpyro.sample("y", dist.Binomial(played, logits=logits), obs=won)

    return density


NUMPYRO_MODELS = {
    "linear": _linear,
    "logistic": _logistic,
    "poisson": _poisson,
    "bradley_terry": _bradley_terry,
}
"""By task: rows and coremcmc's model (for its sizes) to a NumPyro model of no arguments."""


def log_joint(density: Callable[[], None], position: dict[str, jax.Array]) -> jax.Array:
    """Log density of parameters and data, up to a constant; every site is a whole real line."""
    return log_density(density, (), {}, position)[0]


def _laplace(potential: Callable, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the mode, and a square root of the covariance of the normal that fits there."""
    value_and_grad, hessian = (
        jax.jit(jax.value_and_grad(potential)),
        jax.jit(jax.hessian(potential)),
    )
    found = minimize(
        lambda z: jax.tree.map(np.asarray, value_and_grad(z)),
        np.zeros(size),
        jac=True,
        hess=lambda z: np.asarray(hessian(z)),
        method="trust-exact",
        options={"maxiter": 1000},
    )
    try:
        lower = np.linalg.cholesky(np.asarray(hessian(found.x)))
    except np.linalg.LinAlgError:
        raise StudyError(
            "--task: the posterior has no proper mode, so no reference can be drawn. Look for "
            "constant or repeated features in the data."
        ) from None
    return found.x, np.linalg.inv(lower).T


def nuts(
    density: Callable[[], None],
    position: dict[str, np.ndarray],
    *,
    num_chains: int,
    num_warmup: int,
    num_draws: int,
    seed: int,
) -> Iterator[np.ndarray]:
    """Yield batches of draws, chains × draws × coordinates, of chains that go on and on.

    NUTS moves z, where θ = mode + root z, so that all directions are alike; chains start at three
    times the spread of the posterior. ``position`` gives the parameters' shapes, and their order
    is that of their sorted names.
    """
    start, unravel = ravel_pytree({name: jnp.zeros(np.shape(v)) for name, v in position.items()})

    def potential(theta: jax.Array) -> jax.Array:
        return -log_joint(density, unravel(theta))

    mode, root = _laplace(potential, start.size)
    key_start, key_run = jax.random.split(jax.random.key(seed))
    sampler = MCMC(
        NUTS(potential_fn=lambda z: potential(mode + root @ z)),
        num_warmup=num_warmup,
        num_samples=num_draws,
        num_chains=num_chains,
        chain_method="vectorized" if num_chains > 1 else "sequential",
        progress_bar=False,
    )
    shape = (num_chains, start.size) if num_chains > 1 else (start.size,)
    sampler.run(key_run, init_params=3.0 * jax.random.normal(key_start, shape))
    while True:
        z = np.asarray(sampler.get_samples(group_by_chain=True))
        yield mode + z @ root.T
        sampler.post_warmup_state = sampler.last_state
        sampler.run(sampler.post_warmup_state.rng_key)


def gibbs(
    rows: Rows,
    model: coremcmc.SparseRegression,
    *,
    num_chains: int,
    num_warmup: int,
    num_draws: int,
    seed: int,
) -> Iterator[np.ndarray]:
    """Yield batches of draws of (β, σ²), chains × draws × coordinates, of chains that go on.

    A sweep reads the rows through XᵀX, Xᵀy and yᵀy only. Chains start with other features in and
    other noise levels.
    """
    x, y = rows["x"].astype(np.float64), rows["y"].astype(np.float64)
    gram, moment, square = x.T @ x, x.T @ y, float(y @ y)
    rng = np.random.default_rng(seed)
    spike, slab = model.tau**-2, (model.c * model.tau) ** -2  # precisions
    log_odds = np.log(model.q / (1 - model.q)) + 0.5 * np.log(slab / spike)
    shape = 0.5 * (model.nu + len(y))
    p = len(moment)
    included = rng.random((num_chains, p)) < 0.5
    sigma2 = y.var() * np.exp(rng.standard_normal(num_chains))
    diagonal = np.arange(p)
    warmup = num_warmup
    while True:
        draws = np.empty((num_chains, num_draws, p + 1))
        for t in range(-warmup, num_draws):
            precision = gram / sigma2[:, None, None]
            precision[:, diagonal, diagonal] += np.where(included, slab, spike)
            root = np.linalg.inv(np.linalg.cholesky(precision))  # rootᵀ root is the covariance
            noise = rng.standard_normal((num_chains, p))
            white = root @ (moment / sigma2[:, None])[..., None] + noise[..., None]
            beta = (root.transpose(0, 2, 1) @ white)[..., 0]
            residual = square - 2 * beta @ moment + ((beta @ gram) * beta).sum(1)
            scale = 0.5 * (model.nu * model.lam + residual)
            sigma2 = scale / rng.standard_gamma(shape, num_chains)
            logit = log_odds + 0.5 * (spike - slab) * beta**2
            included = rng.logistic(size=logit.shape) < logit  # with probability 1 / (1 + e^-logit)
            if t >= 0:
                draws[:, t, :-1], draws[:, t, -1] = beta, sigma2
        warmup = 0
        yield draws
