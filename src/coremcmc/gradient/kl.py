"""The estimate of the gradient of KL(π_w ‖ π) with respect to the weights."""

from typing import NamedTuple

import jax
from jaxtyping import Array, Float

from coremcmc.base import Model, Position, Rows

__all__ = ["GradientEstimate", "kl_gradient", "plain_totals"]


class GradientEstimate(NamedTuple):
    """What one iteration learns of the gradient.

    Attributes
    ----------
    gradient
        ĝ.
    residual
        Σ_m w_m ℓ_m(θ_k) minus the estimate of Σ_n ℓ_n(θ_k), centred over the chains.
    control_ratio
        Variance of what the subsample sums with the control variate over that without; 1 where
        there is none.
    """

    gradient: Float[Array, " M"]
    residual: Float[Array, " K"]
    control_ratio: Float[Array, ""]


def kl_gradient(
    weights: Float[Array, " M"],
    coreset_loglikelihoods: Float[Array, "K M"],
    totals: Float[Array, " K"],
) -> tuple[Float[Array, " M"], Float[Array, " K"]]:
    r"""Estimate ∇_w KL(π_w ‖ π) from K chains, and estimates of Σ_n ℓ_n(θ_k) up to a constant.

    .. math::

        g = \frac{1}{K - 1} \sum_k \bar ℓ_{1:M}(θ_k)
            \left( \sum_m w_m \bar ℓ_m(θ_k) - \bar t_k \right),
        \qquad \bar ℓ_n(θ_k) = ℓ_n(θ_k) - \frac1K \sum_j ℓ_n(θ_j),

    where :math:`t_k` are the totals, those of :func:`plain_totals` in the paper, and
    :math:`\bar t_k` the same centred over the chains. Its mean over chains distributed as π_w, and
    over subsamples, is Cov(ℓ_{1:M}, Σ_m w_m ℓ_m − Σ_n ℓ_n) under π_w, the gradient. The cost is
    O(K M).

    Returns the gradient, and the residuals in the parentheses.
    """
    coreset = coreset_loglikelihoods - coreset_loglikelihoods.mean(axis=0)
    residual = coreset @ weights - (totals - totals.mean())
    return residual @ coreset / (totals.shape[0] - 1), residual


def plain_totals(
    model: Model, positions: Position, subsample: Rows, num_rows: int
) -> Float[Array, " K"]:
    r"""Estimate Σ_n ℓ_n(θ_k), centred over the chains, by a subsample of S rows alone.

    .. math:: \frac{N}{S} \sum_s \bar ℓ_s(θ_k)
    """
    values = jax.vmap(model.loglikelihood_fn, in_axes=(0, None))(positions, subsample)
    values = values.astype(float)
    # Centring comes before summing: the terms are of the order of 1, their sums of 10^6.
    return num_rows / values.shape[1] * (values - values.mean(axis=0)).sum(axis=1)
