"""The certificate's and Laplace's numbers, moved to the scale that the parameters are named on.

A certificate speaks of the coordinates that the chains move in, a person of named parameters. Where
a named parameter is a coordinate, or a multiple of one plus a constant, mean and sd carry over
exactly; where it is a linear combination of several, the mean does. Which is the case is read off
the draws, so that no model has to tell. Elsewhere (σ from log σ²) nothing is said.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Comparison", "compare", "draws_needed"]

_TOLERANCE = 1e-6  # of a linear relation, in sds of the parameter
_MOST_COORDINATES = 300  # for which combinations are looked for
_BLOCK = 256


@dataclass(frozen=True, eq=False)
class Comparison:
    """One entry for each named parameter; NaN where the certificate says nothing about it.

    Attributes
    ----------
    corrected_mean, corrected_sd
        Of the full posterior, as the certificate's importance weights have it.
    laplace_mean, laplace_sd
        Of the Gaussian at the mode.
    coordinate
        Which coordinate of the certificate the parameter is a multiple of; −1 for none.
    """

    corrected_mean: np.ndarray
    corrected_sd: np.ndarray
    laplace_mean: np.ndarray
    laplace_sd: np.ndarray
    coordinate: np.ndarray


def draws_needed(num_coordinates: int) -> int:
    """Return how many draws show whether a relation is linear; more would only cost time."""
    return max(200, 3 * (num_coordinates + 1)) if num_coordinates <= _MOST_COORDINATES else 200


def compare(named: np.ndarray, coordinates: np.ndarray, certificate: Any) -> Comparison:
    """Move a certificate to the scale of named parameters.

    Parameters
    ----------
    named, coordinates
        The same draws in both forms: draws × parameters, draws × coordinates.
    certificate
        A certificate, or None.
    """
    count = named.shape[1]
    unknown = np.full(count, np.nan)
    nothing = Comparison(unknown, unknown, unknown, unknown, np.full(count, -1))
    usable = np.isfinite(coordinates).all(axis=1) & np.isfinite(named).all(axis=1)
    if certificate is None or coordinates.shape[1] != len(certificate.names) or usable.sum() < 8:
        return nothing
    named, coordinates = named[usable], coordinates[usable]
    which, slope = _multiples(named, coordinates)
    centre, middle = named.mean(axis=0), coordinates.mean(axis=0)
    found: list[np.ndarray] = []
    for mean, sd in (
        (certificate.corrected_mean, certificate.corrected_sd),
        (certificate.laplace_mean, certificate.laplace_sd),
    ):
        if mean is None or np.shape(mean) != middle.shape:
            found += [unknown, unknown]
            continue
        moved_mean, moved_sd = unknown.copy(), unknown.copy()
        is_one = which >= 0
        own = which[is_one]
        moved_mean[is_one] = centre[is_one] + slope[is_one] * (mean - middle)[own]
        moved_sd[is_one] = np.abs(slope[is_one]) * sd[own]
        found += [moved_mean, moved_sd]
    combined = np.flatnonzero(which < 0)
    if combined.size and coordinates.shape[1] <= _MOST_COORDINATES:
        _combinations(named[:, combined], coordinates, certificate, combined, found)
    return Comparison(found[0], found[1], found[2], found[3], which)


def _multiples(named: np.ndarray, coordinates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the coordinate that each parameter is a multiple of, or −1, and the factor."""
    count = named.shape[1]
    which, slope = np.full(count, -1), np.zeros(count)
    x = coordinates - coordinates.mean(axis=0)
    x_sd = x.std(axis=0)
    scaled = x / np.where(x_sd > 0, x_sd, 1.0)
    for start in range(0, count, _BLOCK):
        y = named[:, start : start + _BLOCK]
        y = y - y.mean(axis=0)
        y_sd = y.std(axis=0)
        covariance = y.T @ scaled / len(x)
        best = np.argmax(np.abs(covariance), axis=1)
        factor = covariance[np.arange(y.shape[1]), best]
        residual = np.abs(y - scaled[:, best] * factor).max(axis=0)
        is_one = (y_sd > 0) & (x_sd[best] > 0) & (residual <= _TOLERANCE * y_sd)
        block = slice(start, start + y.shape[1])
        which[block] = np.where(is_one, best, -1)
        slope[block] = np.where(is_one, factor / np.where(x_sd[best] > 0, x_sd[best], 1.0), 0.0)
    return which, slope


def _combinations(
    named: np.ndarray, coordinates: np.ndarray, certificate: Any, places: np.ndarray, found: list
) -> None:
    """Fill in the means of parameters that are linear combinations of coordinates."""
    if len(named) < 2 * (coordinates.shape[1] + 1):
        return
    centre, middle = named.mean(axis=0), coordinates.mean(axis=0)
    sd = coordinates.std(axis=0)
    scale = np.where(sd > 0, sd, 1.0)
    x, y = (coordinates - middle) / scale, named - centre
    slopes, *_ = np.linalg.lstsq(x, y, rcond=None)
    y_sd = y.std(axis=0)
    is_linear = (y_sd > 0) & (np.abs(y - x @ slopes).max(axis=0) <= _TOLERANCE * y_sd)
    for index, mean in ((0, certificate.corrected_mean), (2, certificate.laplace_mean)):
        if mean is not None and np.shape(mean) == middle.shape:
            moved = centre + ((mean - middle) / scale) @ slopes
            found[index][places[is_linear]] = moved[is_linear]
