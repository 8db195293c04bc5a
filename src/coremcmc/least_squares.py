"""Non-negative weights by which a few rows imitate the sum over all rows."""

import numpy as np

__all__ = ["nonnegative_ridge"]

_MAX_ROUNDS = 60


def nonnegative_ridge(
    terms: np.ndarray, target: np.ndarray, prior_weights: np.ndarray, ridge: float
) -> np.ndarray:
    """Minimise ‖terms·w − target‖² + ridge·‖w − prior_weights‖² over w ≥ 0.

    ``terms`` has a row a draw and a column a weight, draws being fewer than weights as a rule:
    every step solves a system of the size of the draws. Active sets: what comes out negative is
    fixed at zero, what would gain by growing is freed.

    The result is feasible whatever happens; it is exact unless the rounds run out.
    """
    free = np.ones(terms.shape[1], bool)
    best, best_loss = np.maximum(prior_weights, 0.0), np.inf
    for _ in range(_MAX_ROUNDS):
        weights = np.zeros_like(prior_weights)
        columns = terms[:, free]
        gap = target - columns @ prior_weights[free]
        gram = columns @ columns.T
        gram[np.diag_indices_from(gram)] += ridge
        weights[free] = prior_weights[free] + columns.T @ np.linalg.solve(gram, gap)
        negative = weights < 0
        feasible = np.maximum(weights, 0.0)
        residual = terms @ feasible - target
        loss = residual @ residual + ridge * np.sum((feasible - prior_weights) ** 2)
        if loss < best_loss:
            best, best_loss = feasible, loss
        slope = terms.T @ residual + ridge * (feasible - prior_weights)
        wanted = ~free & (slope < -1e-10 * np.abs(slope).max())
        if not negative.any() and not wanted.any():
            break
        free = (free & ~negative) | (wanted & ~negative.any())
    return best
