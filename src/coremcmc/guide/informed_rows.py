"""Which rows matter: half of them uniform, half by how much they vary over the posterior."""

import numpy as np

from coremcmc.gradient.control_passes import Largest
from coremcmc.selection import Selected

__all__ = ["InformedRows"]


class InformedRows:
    """Choose rows from a stream of all: half uniformly, half in proportion to their sd.

    The sd is that of the row's log-likelihood over draws near the posterior. No row is taken twice.

    Parameters
    ----------
    size
        M.
    num_rows
        N.
    """

    def __init__(self, rng: np.random.Generator, size: int, num_rows: int):
        self._rng, self._size, self._num_rows = rng, size, num_rows
        self._half = size // 2
        self._uniform = np.sort(rng.choice(num_rows, size - self._half, replace=False))
        self._informed, self._widest = Largest(self._half), Largest(self._half)
        self._total = 0.0  # Σ sd(ℓ_n)

    def add(self, index: np.ndarray, sd: np.ndarray) -> None:
        """Take in a block of rows."""
        self._total += sd.sum()
        self._widest.add(sd, index, sd)
        # Efraimidis and Spirakis: the largest of log(u)/s are a draw without replacement in
        # proportion to s. Rows of the uniform half are passed over.
        keys = np.log(self._rng.random(len(index))) / np.maximum(sd, 1e-150)
        others = ~np.isin(index, self._uniform, assume_unique=True)
        self._informed.add(keys[others], index[others], sd[others])

    @property
    def indices(self) -> np.ndarray:
        """The chosen rows: the uniform half, then the informed one."""
        return np.concatenate([self._uniform, self._informed.index])

    def selected(self, sd: np.ndarray) -> Selected:
        """Return the rows, ascending, with weights of one over their expected counts.

        ``sd`` holds those of :attr:`indices`, in that order.
        """
        widest = np.sort(self._widest.values)[::-1]
        counts = _expected_counts(sd, self._half, self._total, widest)
        uniform = (self._size - self._half) / self._num_rows
        weights = 1.0 / np.minimum(uniform + counts, 1.0)
        order = np.argsort(self.indices)
        return Selected(self.indices[order], weights[order])


def _expected_counts(sd: np.ndarray, size: int, total: float, widest: np.ndarray) -> np.ndarray:
    """Expected counts of rows in a draw of ``size`` in proportion to their sd, without replacement.

    A row whose share would exceed one is taken once, and the others share what is left. ``widest``
    holds the largest sds, descending, ``total`` the sum of all.
    """
    certain = 0
    for value in widest:
        if total <= 0 or (size - certain) * value < total:
            break
        certain, total = certain + 1, total - value
    sure = sd >= widest[certain - 1] if certain else np.zeros(sd.shape, bool)
    rest = (size - certain) * sd / total if total > 0 else np.zeros_like(sd)
    return np.where(sure, 1.0, np.minimum(rest, 1.0))
