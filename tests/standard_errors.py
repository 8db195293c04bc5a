"""Judging Monte Carlo results in standard errors."""

import numpy as np
from scipy import stats


def z_scores(samples: np.ndarray, truth: np.ndarray | float) -> np.ndarray:
    """Standardized error of the mean of independent samples (first axis)."""
    error = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    return (samples.mean(axis=0) - truth) / error


def assert_unbiased(samples, truth, false_alarm: float = 1e-4) -> None:
    """Every coordinate's mean lies within the two-sided bound, corrected for their number."""
    z = np.ravel(z_scores(np.asarray(samples), truth))
    bound = stats.norm.isf(false_alarm / (2 * z.size))
    assert np.abs(z).max() < bound, (
        f"largest |z| {np.abs(z).max():.2f} of {z.size}, bound {bound:.2f}"
    )


def is_biased(samples, truth, false_alarm: float = 1e-4) -> bool:
    """The opposite verdict, for tests that a wrong method is found out."""
    try:
        assert_unbiased(samples, truth, false_alarm)
    except AssertionError:
        return True
    return False
