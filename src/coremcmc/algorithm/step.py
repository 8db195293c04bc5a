"""One iteration of Coreset MCMC (Algorithm 1, with the hot start of Algorithm 2).

The only place where the weights w and the chains θ meet. Pure functions throughout; the loop
around them is in :mod:`coremcmc.algorithm.loop`, or the user's own.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PyTree

from coremcmc.algorithm.hot_start import HotStart, HotStartState
from coremcmc.base import (
    Kernel,
    KernelState,
    Model,
    Position,
    PRNGKey,
    Rows,
    SamplingAlgorithm,
    flat_positions,
)
from coremcmc.gradient.control_variate import ControlVariate, controlled_totals
from coremcmc.gradient.kl import GradientEstimate, kl_gradient, plain_totals
from coremcmc.kernels.given import as_kernel
from coremcmc.optimizers import OPTIMIZERS, constrained, gated
from coremcmc.posterior.target import Target

__all__ = ["FAILURES", "CoresetMCMC", "CoresetState", "StepInfo", "coreset_mcmc"]

FAILURES = (
    "no failure",
    "the gradient estimate is not finite: some row has a log-likelihood of NaN or ±infinity at "
    "the chains' positions. Check the model for overflow, or rescale the features",
    "a chain cannot move: the log density or its slope is NaN, infinite or discontinuous around "
    "its position. Check the model's log density there",
    "the log density of a chain is not finite. Check the model for overflow, or rescale the "
    "features",
)
"""What ``StepInfo.failure`` means."""


class CoresetState(NamedTuple):
    """Where a run stands.

    Attributes
    ----------
    iteration
        t, the number of iterations done.
    weights
        w_t.
    optimizer_state
        The optimizer's, inside its gate and its constraint.
    chains
        The K chains, each leaf with a leading axis of length K.
    hot_start
        Whether the weights may move yet.
    num_evaluations
        Log density evaluations by all chains so far.
    metric
        What a kernel that adapts has learned; None for others.
    """

    iteration: Int[Array, ""]
    weights: Float[Array, " M"]
    optimizer_state: PyTree
    chains: KernelState
    hot_start: HotStartState
    num_evaluations: Int[Array, ""]
    metric: PyTree = None


class StepInfo(NamedTuple):
    """What one iteration did.

    Attributes
    ----------
    gradient_norm
        ‖ĝ_t‖.
    log_potentials
        Σ_m w_m ℓ_m(θ_k) of each chain after its move.
    failure
        Zero, or an index into :data:`FAILURES`.
    residual_variance
        Variance over the chains of Σ_m w_m ℓ_m(θ_k) minus the estimate of Σ_n ℓ_n(θ_k): twice
        the KL divergence that remains, while it is small, plus the noise of the estimate.
    control_ratio
        Variance of what the subsample sums with the control variate over that without; 1
        where there is none.
    """

    gradient_norm: Float[Array, ""]
    log_potentials: Float[Array, " K"]
    failure: Int[Array, ""]
    residual_variance: Float[Array, ""]
    control_ratio: Float[Array, ""]


@dataclass(frozen=True)
class CoresetMCMC:
    """The algorithm with its parts chosen. Hashable, so that its compiled loop is found again."""

    model: Model
    num_rows: int
    kernel: Kernel
    optimizer: optax.GradientTransformation
    hot_start: HotStart | None = HotStart()
    max_weight_sum: float | int | None = None
    identity: str = ""  # tells two models apart that compare equal, one having been changed

    @property
    def _weight_optimizer(self) -> optax.GradientTransformationExtraArgs:
        # The constraint inside the gate: weights that are held are not projected either.
        return gated(constrained(self.optimizer, self.max_weight_sum))

    def init(self, positions: Position, weights: Float[Array, " M"], rows: Rows) -> CoresetState:
        """Start K chains at ``positions`` (leading axis K) with the coreset's rows and weights."""
        _require_64_bits()
        target = Target(self.model, rows, weights)
        chains = jax.vmap(self.kernel.init, in_axes=(0, None))(positions, target)
        num_chains = chains.loglikelihoods.shape[0]
        return CoresetState(
            iteration=jnp.zeros((), int),
            weights=weights,
            optimizer_state=self._weight_optimizer.init(weights),
            chains=chains,
            hot_start=(
                HotStart.disabled(num_chains)
                if self.hot_start is None
                else self.hot_start.init(num_chains)
            ),
            num_evaluations=jnp.zeros((), int),
            metric=self.kernel.learn_metric(target, positions),
        )

    def step(
        self,
        rng_key: PRNGKey,
        state: CoresetState,
        subsample: Rows,
        rows: Rows,
        control: ControlVariate | None = None,
        subsample_indices: Int[Array, " S"] | None = None,
    ) -> tuple[CoresetState, StepInfo]:
        """One iteration: the weights first, then the chains, then the hot-start test.

        ``subsample`` and ``rows`` (the coreset's) are as ``model.prepare_rows`` makes them. A
        control variate also needs the indices of the subsample.
        """
        _require_64_bits()
        estimate = self.gradient(state, subsample, control, subsample_indices)
        updates, optimizer_state = self._weight_optimizer.update(
            estimate.gradient, state.optimizer_state, state.weights, is_hot=state.hot_start.is_hot
        )
        weights = optax.apply_updates(state.weights, updates)

        target = Target(self.model, rows, weights)
        chains, kernel_info, metric = self.kernel.step_chains(
            rng_key, state.chains, target, state.metric, state.iteration
        )
        log_potentials = jax.vmap(target.log_potential)(chains.loglikelihoods)

        iteration = state.iteration + 1
        hot_start = state.hot_start
        if self.hot_start is not None:
            dimension = flat_positions(chains.position).shape[1]
            hot_start = self.hot_start.update(hot_start, iteration, log_potentials, dimension)
        gradient_norm = jnp.linalg.norm(estimate.gradient)
        failure = jnp.select(
            [
                ~jnp.isfinite(gradient_norm),
                kernel_info.is_stuck.any(),
                ~jnp.isfinite(log_potentials).all(),
            ],
            [1, 2, 3],
            0,
        ).astype(int)
        new_state = CoresetState(
            iteration,
            weights,
            optimizer_state,
            chains,
            hot_start,
            state.num_evaluations + kernel_info.num_evaluations.sum(),
            metric,
        )
        residual = estimate.residual
        residual_variance = jnp.sum(residual * residual) / (residual.shape[0] - 1)
        return new_state, StepInfo(
            gradient_norm, log_potentials, failure, residual_variance, estimate.control_ratio
        )

    def gradient(
        self,
        state: CoresetState,
        subsample: Rows,
        control: ControlVariate | None = None,
        subsample_indices: Int[Array, " S"] | None = None,
    ) -> GradientEstimate:
        """Estimate ∇_w KL(π_w ‖ π) at a state, from a subsample as ``model.prepare_rows`` makes it.

        A control variate also needs the indices of the subsample.
        """
        positions = state.chains.position
        if control is None or subsample_indices is None:
            totals = plain_totals(self.model, positions, subsample, self.num_rows)
            control_ratio = jnp.ones(())
        else:
            is_exact = control.has_exact(subsample_indices)
            totals, plain, remaining = controlled_totals(
                self.model, control, positions, subsample, is_exact, self.num_rows
            )
            control_ratio = remaining / jnp.where(plain > 0, plain, 1.0)
        gradient, residual = kl_gradient(state.weights, state.chains.loglikelihoods, totals)
        return GradientEstimate(gradient, residual, control_ratio)


def _require_64_bits() -> None:
    if jnp.zeros(()).dtype != jnp.float64:
        raise ValueError(
            "Coreset MCMC needs 64-bit floats: log densities of the order of 10^6 lose their "
            "differences in 32 bits. Run inside `with jax.enable_x64(True):`."
        )


def coreset_mcmc(
    model: Model,
    coreset_rows: Rows,
    num_rows: int,
    *,
    kernel: Kernel | None = None,
    optimizer: optax.GradientTransformation | None = None,
    hot_start: HotStart | None = HotStart(),
    max_weight_sum: float | int | None = None,
) -> SamplingAlgorithm:
    """Coreset MCMC for people with their own loop.

    Run it in 64-bit mode (``with jax.enable_x64(True):``).

    Parameters
    ----------
    model
        The prior and the likelihood.
    coreset_rows
        The M chosen rows.
    num_rows
        N, the number of rows that they were chosen from.
    kernel, optimizer
        By default the model's own kernel, and :func:`coremcmc.hot_dog`.
    hot_start
        Settings of the hot-start test, or ``None`` to move the weights from the start.
    max_weight_sum
        B, a bound on the sum of the weights.

    Returns
    -------
    SamplingAlgorithm
        A pair of pure functions:

        - ``init(rng_key, num_chains=2, weights=None, positions=None) -> CoresetState``, where
          ``positions`` (leading axis ``num_chains``) are drawn from the model's own start if
          they are not given
        - ``step(rng_key, state, subsample) -> (CoresetState, StepInfo)``, where ``subsample`` is
          a fresh uniform draw of S distinct rows of the data, of the same structure as
          ``coreset_rows``.

    Examples
    --------
    >>> import jax, numpy as np, coremcmc
    >>> data = coremcmc.gaussian_location_data(num_rows=1000, dimension=2)
    >>> rng = np.random.default_rng(0)
    >>> with jax.enable_x64(True):
    ...     algorithm = coremcmc.coreset_mcmc(
    ...         coremcmc.GaussianLocation(), {"x": data["x"][:10]}, num_rows=1000)
    ...     state = algorithm.init(jax.random.key(0))
    ...     for i in range(3):
    ...         rows = {"x": data["x"][rng.choice(1000, 10, replace=False)]}
    ...         state, info = algorithm.step(jax.random.key(i), state, rows)
    >>> int(state.iteration)
    3
    """
    algorithm = CoresetMCMC(
        model,
        num_rows,
        as_kernel(model.default_kernel if kernel is None else kernel),
        OPTIMIZERS["hot_dog"]() if optimizer is None else optimizer,
        hot_start,
        max_weight_sum,
    )

    def prepare(stored: Rows) -> Rows:
        return model.prepare_rows(jax.tree.map(jnp.asarray, stored))

    def init(
        rng_key: PRNGKey, num_chains: int = 2, weights: Any = None, positions: Any = None
    ) -> CoresetState:
        if num_chains < 2:
            raise ValueError(f"num_chains must be at least 2, but is {num_chains}.")
        _require_64_bits()
        prepared = prepare(coreset_rows)
        coreset_size = jax.tree.leaves(coreset_rows)[0].shape[0]
        if weights is None:
            weights = jnp.full(coreset_size, num_rows / coreset_size)
        weights = jnp.asarray(weights, float)
        if positions is None:
            keys = jax.random.split(rng_key, num_chains)
            positions = jax.vmap(lambda key: model.initial_position(key, prepared))(keys)
        return algorithm.init(positions, weights, prepared)

    def step(
        rng_key: PRNGKey, state: CoresetState, subsample: Rows
    ) -> tuple[CoresetState, StepInfo]:
        return algorithm.step(rng_key, state, prepare(subsample), prepare(coreset_rows))

    return SamplingAlgorithm(init, step)
