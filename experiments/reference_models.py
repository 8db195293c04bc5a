"""The smooth models of the study, written in NumPyro and without coremcmc's densities.

Rows are summed up where that leaves the likelihood as it is: the linear model reads the triangular
factor of its columns, the Bradley-Terry model the number of wins of each pairing.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer.util import log_density

import coremcmc

__all__ = ["NUMPYRO_MODELS", "log_joint"]

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
    """Σ y η is a product of two short vectors, and one exponential serves value and gradient.

    NumPyro's Bernoulli guards against η > 700, which no draw comes near, and takes 2.5 times as
    long.
    """
    design = _design(rows)
    columns, total = jnp.asarray(design.T), jnp.asarray(design.T @ rows["y"])

    def density() -> None:
        prior = dist.Cauchy(0.0, 1.0).expand([total.size]).to_event(1)
        beta = numpyro.sample("beta", prior)
        numpyro.factor("y", total @ beta - jnp.log1p(jnp.exp(beta @ columns)).sum())

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
