"""Non-negative weights by which a few rows imitate the sum over all rows."""

import numpy as np

__all__ = ["nonnegative_ridge"]

_MAX_ROUNDS = 100
_PATIENCE = 10  # rounds without a loss lower by a thousandth


def nonnegative_ridge(
    terms: np.ndarray, target: np.ndarray, prior_weights: np.ndarray, ridge: float
) -> np.ndarray:
    """Minimise ‖terms·w − target‖² + ridge·‖w − prior_weights‖² over w ≥ 0.

    ``terms`` has a row a draw and a column a weight. Rows of a model vary over a posterior in few
    ways, so the draws are first condensed to the directions that exceed the ridge; every step then
    solves a small system. Active sets: what comes out negative is fixed at zero, what would gain by
    growing is freed.

    The result is feasible whatever happens; it is exact unless the rounds run out.
    """
    from scipy.linalg import cho_factor, cho_solve

    values, vectors = np.linalg.eigh(terms @ terms.T)
    kept = vectors[:, values > 1e-8 * ridge]
    terms, target = kept.T @ terms, kept.T @ target
    free = np.ones(terms.shape[1], bool)
    best, best_loss, waited = np.maximum(prior_weights, 0.0), np.inf, 0
    for _ in range(_MAX_ROUNDS):
        weights = np.zeros_like(prior_weights)
        columns = terms[:, free]
        gap = target - columns @ prior_weights[free]
        gram = columns @ columns.T
        gram[np.diag_indices_from(gram)] += ridge
        weights[free] = prior_weights[free] + columns.T @ cho_solve(cho_factor(gram), gap)
        negative = weights < 0
        feasible = np.maximum(weights, 0.0)
        residual = terms @ feasible - target
        loss = residual @ residual + ridge * np.sum((feasible - prior_weights) ** 2)
        waited = 0 if loss < 0.999 * best_loss else waited + 1
        if loss < best_loss:
            best, best_loss = feasible, loss
        slope = terms.T @ residual + ridge * (feasible - prior_weights)
        wanted = ~free & (slope < -1e-10 * np.abs(slope).max())
        if waited > _PATIENCE or not (negative.any() or wanted.any()):
            break
        free = (free & ~negative) | (wanted & ~negative.any())
    return best
