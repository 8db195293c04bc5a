"""When is a run long enough? The residual is flat, and the posterior mean stands still."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Settled", "Stopping"]


class Settled(NamedTuple):
    """The outcome of a check.

    Attributes
    ----------
    is_flat
        The residual variance no longer falls, so that the average of the weights is worth more
        than the last ones.
    is_still
        Nor does the posterior mean move.
    is_done
        And the residual is small, or more iterations do not make it so.
    reason
        In words, with the numbers.
    """

    is_flat: bool
    is_still: bool
    is_done: bool
    reason: str


@dataclass(frozen=True)
class Stopping:
    """When a run of ``num_iterations="auto"`` looks at itself, and what it calls settled.

    Parameters
    ----------
    first_check
        Iterations before the first check; then whenever they have doubled. (A run of any length
        looks then at its control variate.)
    longest
        Iterations after which it ends in any case.
    still_falling, still_worth_it
        The residual is flat once that of the last quarter is at least so much of the quarter
        before, and more iterations are of no use once it is at least so much of the second.
    small
        Residual variance a coordinate, below which sds are right to a few percent.
    mean_change
        Average squared change of the mean between the last two quarters, in sds, below which it
        stands still.
    """

    first_check: int = 2_000
    longest: int = 32_000
    still_falling: float = 0.7
    still_worth_it: float = 0.6
    small: float = 0.01
    mean_change: float = 0.01

    def checks(self, num_iterations: int) -> list[int]:
        """Return when to check: first at some 2,000 iterations, then whenever they have doubled."""
        found = []
        while num_iterations >= self.first_check:
            found.append(num_iterations)
            num_iterations //= 2
        return sorted(found)

    def settled(self, residual_variance: Any, positions: Any) -> Settled:
        """Compare the last quarter of the records with the one before.

        ``residual_variance`` has an entry a record, ``positions`` records × chains × coordinates.
        """
        residual_variance, positions = np.asarray(residual_variance), np.asarray(positions)
        count = len(residual_variance)
        if count < 8:
            return Settled(False, False, False, "too few records to tell")
        quarters = [slice(i * count // 4, (i + 1) * count // 4) for i in range(4)]
        third, fourth = quarters[2:]
        early, before, after = (float(np.median(residual_variance[q])) for q in quarters[1:])
        is_flat = after >= self.still_falling * before
        is_small = after <= self.small * positions.shape[-1]
        latter = positions[count // 2 :].reshape(-1, positions.shape[-1])
        sd = latter.std(axis=0)
        change = positions[fourth].mean((0, 1)) - positions[third].mean((0, 1))
        squared = float(np.mean(np.square(change / np.where(sd > 0, sd, 1.0))))
        is_still = squared < self.mean_change
        is_done = is_flat and is_still and (is_small or after >= self.still_worth_it * early)
        reason = (
            f"residual variance {after:.2g} in the last quarter after {before:.2g} and {early:.2g} "
            f"in those before, mean moved by {np.sqrt(squared):.2g} posterior sds"
        )
        return Settled(is_flat, is_still, is_done, reason)
