"""How large must the coreset be? As large as the certificate wants it."""

import warnings
from collections.abc import Callable

from coremcmc.fitting.result import Fit

__all__ = ["LARGEST", "grow"]

SMALLEST = 100
LARGEST = 12_800


def grow(fit_of_size: Callable[[int], Fit], num_rows: int) -> Fit:
    """Double the coreset until its certificate says good, or a cap is reached, with a warning."""
    size = min(SMALLEST, num_rows)
    while True:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = fit_of_size(size)
        assert found.certificate is not None
        verdict = found.certificate.verdict
        if verdict == "good" or found.stopped == "interrupted":
            break
        if 2 * size > min(LARGEST, num_rows):
            warnings.warn(
                f"coreset_size='auto' stopped at {size:,} rows, where the certificate says "
                f"{verdict}. Give a larger coreset_size, or look at what the certificate says.",
                stacklevel=3,
            )
            break
        size *= 2
    for warning in caught:  # of the last fit only: the others were not kept
        warnings.warn(warning.message, warning.category, stacklevel=3)
    return found
