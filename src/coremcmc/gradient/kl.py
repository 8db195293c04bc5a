"""The estimate of the gradient of KL(π_w ‖ π) with respect to the weights."""

from jaxtyping import Array, Float

__all__ = ["kl_gradient", "kl_gradient_from_totals"]


def kl_gradient(
    weights: Float[Array, " M"],
    coreset_loglikelihoods: Float[Array, "K M"],
    subsample_loglikelihoods: Float[Array, "K S"],
    num_rows: int,
) -> Float[Array, " M"]:
    r"""Estimate ∇_w KL(π_w ‖ π) from K chains and a subsample of S rows.

    .. math::

        g = \frac{1}{K - 1} \sum_k \bar ℓ_{1:M}(θ_k)
            \left( \sum_m w_m \bar ℓ_m(θ_k) - \frac{N}{S} \sum_{s} \bar ℓ_s(θ_k) \right),
        \qquad \bar ℓ_n(θ_k) = ℓ_n(θ_k) - \frac1K \sum_j ℓ_n(θ_j).

    Its mean over chains distributed as π_w and uniform subsamples is
    Cov(ℓ_{1:M}, Σ_m w_m ℓ_m − Σ_n ℓ_n) under π_w, the gradient. The cost is O(K (M + S)).
    """
    subsample_size = subsample_loglikelihoods.shape[1]
    # Centring comes before summing: the terms are of the order of 1, their sums of 10^6.
    subsample = subsample_loglikelihoods - subsample_loglikelihoods.mean(axis=0)
    totals = (num_rows / subsample_size) * subsample.sum(axis=1)
    return kl_gradient_from_totals(weights, coreset_loglikelihoods, totals)[0]


def kl_gradient_from_totals(
    weights: Float[Array, " M"],
    coreset_loglikelihoods: Float[Array, "K M"],
    totals: Float[Array, " K"],
) -> tuple[Float[Array, " M"], Float[Array, " K"]]:
    """Estimate the same from estimates of Σ_n ℓ_n(θ_k), known up to a constant.

    Returns the gradient, and the residuals Σ_m w_m ℓ_m(θ_k) − Σ_n ℓ_n(θ_k), centred.
    """
    coreset = coreset_loglikelihoods - coreset_loglikelihoods.mean(axis=0)
    residual = coreset @ weights - (totals - totals.mean())
    return residual @ coreset / (totals.shape[0] - 1), residual
