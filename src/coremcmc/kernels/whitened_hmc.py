"""Hamiltonian Monte Carlo whitened by the curvature of the coreset posterior."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PyTree

from coremcmc.base import Kernel, KernelInfo, KernelState, Position, PRNGKey, flat_positions
from coremcmc.posterior.derivatives import weighted_derivatives
from coremcmc.posterior.target import Target

__all__ = ["WhitenedHMC", "Whitening"]

_FLOOR = 1e-8


class Whitening(NamedTuple):
    """The metric: a covariance Σ and a factor F with F Fᵀ = Σ."""

    covariance: Float[Array, "d d"]
    factor: Float[Array, "d d"]
    precision: Float[Array, "d d"]


class Noise(NamedTuple):
    """Standard normals, one a coordinate, and three uniforms; leading axes for chains."""

    normal: Float[Array, "*chains d"]
    uniform: Float[Array, "*chains 3"]


@dataclass(frozen=True)
class WhitenedHMC(Kernel):
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
    moves_reals_only: ClassVar[bool] = True

    def learn_metric(
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
        self, rng_key: PRNGKey, state: KernelState, target: Target, metric: PyTree = None
    ) -> tuple[KernelState, KernelInfo]:
        """Move once."""
        size = ravel_pytree(state.position)[0].size
        return self._move(_draw_noise(rng_key, size), state, target, metric)

    def step_chains(
        self,
        rng_key: PRNGKey,
        chains: KernelState,
        target: Target,
        metric: PyTree = None,
        iteration: Int[Array, ""] | None = None,
    ) -> tuple[KernelState, KernelInfo, PyTree]:
        """Move each chain once, after a new metric where one is due.

        The randomness of all chains is drawn at once, which compiles, and runs, several times
        faster than chain by chain.
        """
        if iteration is not None:
            metric = jax.lax.cond(
                iteration % self.refresh == 0,
                lambda: self.learn_metric(target, chains.position, metric),
                lambda: metric,
            )
        noise = _draw_noise(rng_key, *flat_positions(chains.position).shape)
        move = jax.vmap(self._move, in_axes=(0, 0, None, None))
        return *move(noise, chains, target, metric), metric

    def _move(
        self, noise: Noise, state: KernelState, target: Target, whitening: Whitening
    ) -> tuple[KernelState, KernelInfo]:
        """Move once, all randomness being given."""
        flat, unravel = ravel_pytree(state.position)
        for_size, for_short, for_accept = noise.uniform

        def evaluate(x: Array) -> Any:
            def logdensity(y: Array) -> Any:
                position = unravel(y)
                terms = target.loglikelihoods(position)
                return target.logdensity(position, terms), terms

            (value, terms), gradient = jax.value_and_grad(logdensity, has_aux=True)(x)
            return value, gradient, terms

        velocity = whitening.factor @ noise.normal
        spread = 1 + self.jitter * (2 * for_size - 1)
        is_short = for_short < self.short_share
        size = self.step_size * spread * jnp.where(is_short, self.short_factor, 1.0)

        def kinetic(velocity: Array) -> Array:
            return 0.5 * velocity @ whitening.precision @ velocity

        def leapfrog(carry: Any, times: Any) -> Any:
            x, v, _, _ = carry
            drift, kick = times
            x = x + drift * v
            value, gradient, terms = evaluate(x)
            v = v + kick * (whitening.covariance @ gradient)
            return (x, v, value, terms), jnp.isfinite(gradient).all()

        # The first entry moves nowhere, so that the density is compiled once, not twice; half kicks
        # that meet are one.
        drifts = jnp.full(self.num_steps + 1, size).at[0].set(0.0)
        kicks = drifts.at[0].set(0.5 * size).at[-1].set(0.5 * size)
        before = target.logdensity(state.position, state.loglikelihoods) - kinetic(velocity)
        start = (flat, velocity, before, state.loglikelihoods)
        (x, v, value, terms), is_finite = jax.lax.scan(leapfrog, start, (drifts, kicks))
        log_ratio = value - kinetic(v) - before
        # False for NaN, and for a kinetic energy that overflows to minus infinity.
        accept = (jnp.log(for_accept) < log_ratio) & (log_ratio < jnp.inf)
        position = unravel(jnp.where(accept, x, flat))
        new_terms = jnp.where(accept, terms, state.loglikelihoods)
        evaluations = jnp.asarray(self.num_steps + 1, int)
        # With a slope or a metric that is not finite, every step from here is rejected.
        is_stuck = ~(is_finite[0] & jnp.isfinite(whitening.factor).all())
        return KernelState(position, new_terms), KernelInfo(evaluations, is_stuck)


def _draw_noise(rng_key: PRNGKey, *shape: int) -> Noise:
    """Draw what a step needs; ``shape`` ends with the number of coordinates."""
    key_velocity, key_others = jax.random.split(rng_key)
    # As vectors: drawn with two axes they take three times as long to compile.
    normal = jax.random.normal(key_velocity, (math.prod(shape),)).reshape(shape)
    others = (*shape[:-1], 3)
    uniform = jax.random.uniform(key_others, (math.prod(others),)).reshape(others)
    return Noise(normal, uniform)
