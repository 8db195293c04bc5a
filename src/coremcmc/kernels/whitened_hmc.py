"""Hamiltonian Monte Carlo whitened by the curvature of the coreset posterior."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from coremcmc.base import KernelInfo, KernelState, Position, PRNGKey
from coremcmc.derivatives import weighted_derivatives
from coremcmc.target import Target

__all__ = ["WhitenedHMC", "Whitening"]

_FLOOR = 1e-8


class Whitening(NamedTuple):
    """The metric: a covariance Σ and a factor F with F Fᵀ = Σ."""

    covariance: Float[Array, "d d"]
    factor: Float[Array, "d d"]
    precision: Float[Array, "d d"]


@dataclass(frozen=True)
class WhitenedHMC:
    """A few leapfrog steps in coordinates in which the posterior is about round.

    Parameters
    ----------
    num_steps
        Leapfrog steps.
    step_size
        Their length, in whitened units, before jitter.
    jitter
        The length varies uniformly by this fraction.
    short_share, short_factor
        This share of the trajectories has steps shorter by this factor, so that no chain
        freezes where the curvature is higher than the metric says.
    refresh
        The metric is computed anew every so many iterations.
    """

    num_steps: int = 3
    step_size: float = 0.6
    jitter: float = 0.3
    short_share: float = 0.1
    short_factor: float = 0.15
    refresh: int = 50

    def init(self, position: Position, target: Target) -> KernelState:
        """Start a chain at a position."""
        if not target.model.is_continuous:
            raise ValueError(
                "kernel 'whitened_hmc' moves unconstrained reals only, and "
                f"{type(target.model).__name__} has other parameters. Use kernel="
                f"{target.model.default_kernel!r}."
            )
        return KernelState(position, target.loglikelihoods(position))

    def adapt(
        self, target: Target, positions: Position, previous: Whitening | None = None
    ) -> Whitening:
        """Return the metric at the mean of the chains; the previous one where it is not finite."""
        centre = jax.tree.map(lambda x: x.mean(axis=0), positions)
        likelihood = weighted_derivatives(target.model, centre, target.rows, target.weights)
        flat, unravel = ravel_pytree(centre)
        prior = jax.hessian(lambda x: target.model.logprior_fn(unravel(x)))(flat)
        values, vectors = jnp.linalg.eigh(-(likelihood.hessian + prior))
        values = jnp.maximum(jnp.abs(values), _FLOOR * jnp.abs(values).max())
        found = Whitening(
            (vectors / values) @ vectors.T,
            vectors / jnp.sqrt(values),
            (vectors * values) @ vectors.T,
        )
        if previous is None:
            return found
        is_finite = jnp.isfinite(found.factor).all()
        return jax.tree.map(lambda new, old: jnp.where(is_finite, new, old), found, previous)

    def step(
        self, rng_key: PRNGKey, state: KernelState, target: Target, whitening: Whitening
    ) -> tuple[KernelState, KernelInfo]:
        """Move once."""
        flat, unravel = ravel_pytree(state.position)
        key_velocity, key_others = jax.random.split(rng_key)
        for_size, for_short, for_accept = jax.random.uniform(key_others, (3,))

        def evaluate(x):
            def logdensity(y):
                position = unravel(y)
                terms = target.loglikelihoods(position)
                return target.logdensity(position, terms), terms

            (value, terms), gradient = jax.value_and_grad(logdensity, has_aux=True)(x)
            return value, gradient, terms

        velocity = whitening.factor @ jax.random.normal(key_velocity, flat.shape)
        spread = 1 + self.jitter * (2 * for_size - 1)
        is_short = for_short < self.short_share
        size = self.step_size * spread * jnp.where(is_short, self.short_factor, 1.0)

        def kinetic(velocity):
            return 0.5 * velocity @ whitening.precision @ velocity

        value, first_gradient, terms = evaluate(flat)
        before = value - kinetic(velocity)

        def leapfrog(carry, _):
            x, v, gradient, _, _ = carry
            v = v + 0.5 * size * (whitening.covariance @ gradient)
            x = x + size * v
            value, gradient, terms = evaluate(x)
            v = v + 0.5 * size * (whitening.covariance @ gradient)
            return (x, v, gradient, value, terms), None

        start = (flat, velocity, first_gradient, value, terms)
        (x, v, _, value, terms), _ = jax.lax.scan(leapfrog, start, None, length=self.num_steps)
        log_ratio = value - kinetic(v) - before
        # False for NaN, and for a kinetic energy that overflows to minus infinity.
        accept = (jnp.log(for_accept) < log_ratio) & (log_ratio < jnp.inf)
        position = unravel(jnp.where(accept, x, flat))
        new_terms = jnp.where(accept, terms, state.loglikelihoods)
        evaluations = jnp.asarray(self.num_steps + 1, int)
        # With a slope or a metric that is not finite, every step from here is rejected.
        is_stuck = ~(jnp.isfinite(first_gradient).all() & jnp.isfinite(whitening.factor).all())
        return KernelState(position, new_terms), KernelInfo(evaluations, is_stuck)
