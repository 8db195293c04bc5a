"""When is a run long enough? The residual is flat, and the posterior mean stands still."""

from typing import Any, NamedTuple

import numpy as np

__all__ = ["FIRST_CHECK", "LONGEST", "Settled", "check_iterations", "settled"]

FIRST_CHECK = 2_000
LONGEST = 32_000

_STILL_FALLING = 0.7  # the residual of the last quarter, relative to the quarter before,
_STILL_WORTH_IT = 0.6  # and to the second quarter
_SMALL = 0.01  # residual variance a coordinate, below which sds are right to a few percent
_MEAN_CHANGE = 0.01  # average squared change of the mean between those quarters, in sds


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


def check_iterations(longest: int) -> list[int]:
    """Return when to check: at 2,000 iterations, and whenever they have doubled."""
    checks = []
    while longest >= FIRST_CHECK:
        checks.append(longest)
        longest //= 2
    return sorted(checks)


def settled(residual_variance: Any, positions: Any) -> Settled:
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
    is_flat = after >= _STILL_FALLING * before
    is_small = after <= _SMALL * positions.shape[-1]
    latter = positions[count // 2 :].reshape(-1, positions.shape[-1])
    sd = latter.std(axis=0)
    change = positions[fourth].mean((0, 1)) - positions[third].mean((0, 1))
    squared = float(np.mean(np.square(change / np.where(sd > 0, sd, 1.0))))
    is_still = squared < _MEAN_CHANGE
    is_done = is_flat and is_still and (is_small or after >= _STILL_WORTH_IT * early)
    reason = (
        f"residual variance {after:.2g} in the last quarter after {before:.2g} and {early:.2g} in "
        f"those before, mean moved by {np.sqrt(squared):.2g} posterior sds"
    )
    return Settled(is_flat, is_still, is_done, reason)
