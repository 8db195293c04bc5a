"""Draws from full-data posteriors, without any of coremcmc's densities or kernels."""

from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from numpyro.infer import MCMC, NUTS
from scipy.optimize import minimize

import coremcmc
from experiments.errors import StudyError
from experiments.reference_models import log_joint

__all__ = ["gibbs", "nuts"]


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
    shapes: dict[str, tuple[int, ...]],
    *,
    num_chains: int,
    num_warmup: int,
    num_draws: int,
    seed: int,
    together: bool,
) -> Iterator[np.ndarray]:
    """Yield batches of draws, chains × draws × coordinates, of chains that go on and on.

    NUTS moves z, where θ = mode + root z, so that all directions are alike; chains start at three
    times the spread of the posterior. The order of the parameters is that of their sorted names.
    """
    start, unravel = ravel_pytree({name: jnp.zeros(shape) for name, shape in shapes.items()})

    def potential(theta: jax.Array) -> jax.Array:
        return -log_joint(density, unravel(theta))

    mode, root = _laplace(potential, start.size)
    key_start, key_run = jax.random.split(jax.random.key(seed))
    sampler = MCMC(
        NUTS(potential_fn=lambda z: potential(mode + root @ z), dense_mass=True),
        num_warmup=num_warmup,
        num_samples=num_draws,
        num_chains=num_chains,
        chain_method="vectorized" if together else "sequential",
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
    rows: dict[str, np.ndarray],
    model: coremcmc.SparseRegression,
    *,
    num_chains: int,
    num_warmup: int,
    num_draws: int,
    seed: int,
) -> Iterator[np.ndarray]:
    """Sample as George and McCulloch (1993) do.

    Yields batches of draws of (β, σ²), chains × draws × coordinates, of chains that go on.

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
