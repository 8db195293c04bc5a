"""What a column must be; each failure names the column, what was found, and what to do."""

import numpy as np

__all__ = [
    "require_binary",
    "require_counts",
    "require_indices",
    "require_matrix",
    "require_vector",
]


def _first_bad(bad: np.ndarray, values: np.ndarray) -> str:
    where = int(np.argmax(bad))
    return f"{values[where]!s} at row {where:,} ({int(bad.sum()):,} such rows)"


def require_matrix(name: str, values: np.ndarray) -> None:
    """Two axes, at least one column."""
    if values.ndim != 2 or values.shape[1] == 0:
        raise ValueError(
            f"data[{name!r}] must be a matrix with a column per feature, but its shape is "
            f"{values.shape}. Reshape a single feature with {name}.reshape(-1, 1)."
        )


def require_vector(name: str, values: np.ndarray) -> None:
    """One axis."""
    if values.ndim != 1:
        raise ValueError(
            f"data[{name!r}] must be a vector with one number per row, but its shape is "
            f"{values.shape}. Flatten a single column with {name}.ravel()."
        )


def require_binary(name: str, values: np.ndarray) -> None:
    """Labels 0 and 1."""
    require_vector(name, values)
    bad = (values != 0) & (values != 1)
    if bad.any():
        raise ValueError(
            f"data[{name!r}] must hold the labels 0 and 1, but holds {_first_bad(bad, values)}. "
            f"Recode it, for example ({name} == 'yes').astype(int)."
        )


def require_counts(name: str, values: np.ndarray) -> None:
    """Whole numbers, none negative."""
    require_vector(name, values)
    bad = (values < 0) | (values != np.floor(values))
    if bad.any():
        raise ValueError(
            f"data[{name!r}] must hold counts 0, 1, 2, …, but holds {_first_bad(bad, values)}. "
            "Negative or fractional responses need another model, such as LinearRegression."
        )


def require_indices(name: str, values: np.ndarray, size: int) -> None:
    """Integers 0 … size − 1."""
    require_vector(name, values)
    if not np.issubdtype(values.dtype, np.integer):
        raise ValueError(
            f"data[{name!r}] must hold integers 0 to {size - 1}, but its dtype is {values.dtype}. "
            f"Convert it with {name}.astype(int)."
        )
    bad = (values < 0) | (values >= size)
    if bad.any():
        raise ValueError(
            f"data[{name!r}] must hold integers 0 to {size - 1}, but holds "
            f"{_first_bad(bad, values)}. Renumber it, or give the model a larger size."
        )
