"""From a formula and a table to a model and data."""

import dataclasses
import os
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from coremcmc.models.formula.collinearity import dependent_columns
from coremcmc.models.formula.columns import Standardization, standardize
from coremcmc.models.formula.design import Design
from coremcmc.models.formula.model import FormulaModel
from coremcmc.models.formula.parse import parse_formula
from coremcmc.models.formula.response import response_of
from coremcmc.models.formula.table import Table
from coremcmc.models.glm import GLM
from coremcmc.models.priors import with_old_keywords

__all__ = ["FormulaProblem", "from_formula"]

_INTERCEPT = "Intercept"
_BLOCK_ENTRIES, _BLOCK_ROWS = 1 << 19, 1 << 16
_ALIGNMENT = 64  # where XLA reads an array in place
_MOST_NAMED = 5


class _Pair(NamedTuple):
    model: FormulaModel
    data: Mapping[str, np.ndarray]


class FormulaProblem(_Pair):
    """A pair ``(model, data)`` for :func:`coremcmc.fit`.

    Attributes
    ----------
    model, data
        The model, and its rows ``{"x", "y"}`` on the user's scale.
    rows
        Numbers of the table's rows that were kept: row i of ``data`` is row ``rows[i]`` there.
    """

    rows: np.ndarray

    def __new__(
        cls, model: FormulaModel, data: Mapping[str, np.ndarray], rows: np.ndarray
    ) -> "FormulaProblem":
        """Pair them."""
        pair = super().__new__(cls, model, data)
        pair.rows = rows
        return pair

    def __getnewargs__(self) -> tuple:
        """What makes it again."""
        return self.model, self.data, self.rows


def from_formula(
    formula: str,
    table: Any,
    *,
    family: str,
    link: str | None = None,
    priors: Mapping[str, Any] | None = None,
    df: Any = None,
    missing: str = "refuse",
    dtype: str = "float64",
    **old: Any,
) -> FormulaProblem:
    """Make a generalized linear model and its data from a formula and a table.

    Parameters
    ----------
    formula
        Such as ``"late ~ hour + log(dist) + C(origin) + hour:C(origin)"``, read by formulaic.
        There is an intercept unless the formula says ``0 +`` or ``- 1``; text is categorical;
        ``poly``, ``bs``, ``center``, ``scale`` and NumPy's functions (``np.…``) are known.
        Whatever depends on all rows is computed from all rows.
    table
        A pandas table, a mapping of names to arrays, or a path, folder or glob for
        :func:`coremcmc.read_table`, of which only the formula's columns are read.
    family, link, df
        As in :class:`coremcmc.GLM`.
    priors
        As in :class:`coremcmc.GLM`, ``{"beta": "normal(1)", "Intercept": "normal(2.5)"}``, but of
        *standardized* columns, like rstanarm's priors with ``autoscale``. Columns are centred
        (where there is an intercept) and divided by their standard deviation; a column of two
        values by the step between them, so that a prior of a category's coefficient speaks of the
        difference that it makes. The response of ``gaussian`` and ``student_t`` is standardized
        too, so that a prior scale of 2.5 means 2.5 standard deviations of the response for each of
        the feature. The intercept's prior is that of the response at the columns' means. One scale
        for each column, in the design's order, is possible as well.
    missing
        What to do with rows in which a value is missing: ``"refuse"`` or ``"drop"``.
    dtype
        ``"float32"`` halves the memory of the design.
    **old
        Priors by the keywords of before, as in :class:`coremcmc.GLM`.

    Returns
    -------
    ``(model, data)`` for :func:`coremcmc.fit`, with ``rows``, the numbers of the table's rows that
    were kept. The fit's coefficients are on the user's scale, each by its name: ``Intercept``,
    ``hour``, ``C(origin)[T.JFK]``; then ``sigma``, ``df`` or ``phi``.

    Raises
    ------
    ValueError
        In one line, with what to do, where formula, table and family do not fit together.

    Warns
    -----
    UserWarning
        Where columns are constant (they are left out) or linear combinations of others (they stay,
        and the prior decides between them), or rows were left out.
    """
    glm = GLM(family, link=link, priors=with_old_keywords(priors, old), df=df)
    if missing not in ("refuse", "drop"):
        raise ValueError(f"missing must be 'refuse' or 'drop', not {missing!r}.")
    if dtype not in ("float64", "float32"):
        raise ValueError(f"dtype must be 'float64' or 'float32', not {dtype!r}.")
    source = Table(table)
    parsed = parse_formula(formula, source.columns)
    frame, rows = source.take(parsed.variables, missing)
    design = Design(parsed, frame)
    y, response_location, response_scale = response_of(
        design.response(parsed), parsed.response_name, glm, _INTERCEPT in design.names
    )
    glm = dataclasses.replace(glm, intercept=_INTERCEPT in design.names)
    names = tuple(name for name in design.names if name != _INTERCEPT)
    if not design.names:
        raise ValueError(f"the formula {formula!r} has no terms. Write an intercept as 'y ~ 1'.")
    x = _fill(design, len(frame), np.dtype(dtype))
    found = standardize(x, names, centre=glm.intercept)
    x, names, found = _without_constants(x, names, found, glm.intercept)
    length = glm.priors["beta"].length
    if length not in (None, len(names)):
        raise ValueError(
            f"priors['beta'] was given for {length} coefficients, but the formula has "
            f"{len(names)}: {', '.join(names)}."
        )
    _warn_of_dependence(x, names, found, glm.intercept)
    model = FormulaModel(
        glm,
        formula,
        names,
        tuple(found.location.tolist()),
        tuple(found.scale.tolist()),
        response_location,
        response_scale,
    )
    return FormulaProblem(model, {"x": x, "y": y}, rows)


def _fill(design: Design, num_rows: int, dtype: np.dtype) -> np.ndarray:
    """Make the matrix, without the column of ones, block by block."""
    columns = [i for i, name in enumerate(design.names) if name != _INTERCEPT]
    nbytes = num_rows * len(columns) * dtype.itemsize
    _require_memory(num_rows, len(columns), nbytes)
    buffer = np.empty(nbytes + _ALIGNMENT, np.uint8)
    first = -buffer.ctypes.data % _ALIGNMENT
    x = buffer[first : first + nbytes].view(dtype).reshape(num_rows, len(columns))
    step = min(_BLOCK_ROWS, max(1, _BLOCK_ENTRIES // max(1, len(design.names))))
    lowest, highest = np.full(len(columns), np.inf), np.full(len(columns), -np.inf)
    for start in range(0, num_rows, step):
        stop = min(start + step, num_rows)
        block = design.block(start, stop)[:, columns]
        lowest, highest = np.minimum(lowest, block.min(0)), np.maximum(highest, block.max(0))
        finite = np.isfinite(block).all(axis=0) & (np.abs(block) < 1e100).all(axis=0)
        if not finite.all():
            name = design.names[columns[int(np.argmin(finite))]]
            raise ValueError(
                f"the column {name!r} of the design is not finite, or above 1e100, in rows "
                f"{start:,} to {stop - 1:,}. Change the term, or rescale what it is made of."
            )
        x[start:stop] = block
    largest = np.maximum(np.abs(lowest), np.abs(highest))
    coarse = (highest > lowest) & (largest * np.finfo(dtype).eps > 1e-4 * (highest - lowest))
    if coarse.any():
        raise ValueError(
            f"the column {design.names[columns[int(np.argmax(coarse))]]!r} varies too little for "
            f"its size to be stored as {dtype}. Subtract a constant from it."
        )
    return x


def _require_memory(num_rows: int, num_columns: int, nbytes: int) -> None:
    try:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not told on this system
        return
    if nbytes > 0.9 * there:
        raise ValueError(
            f"the formula makes {num_columns:,} columns of {num_rows:,} rows, {nbytes / 1e9:,.1f} "
            f"GB, and this machine has {there / 1e9:,.1f} GB of memory. Use categories with fewer "
            "levels or fewer interactions, or dtype='float32'."
        )


def _without_constants(
    x: np.ndarray, names: tuple[str, ...], found: Standardization, intercept: bool
) -> tuple[np.ndarray, tuple[str, ...], Standardization]:
    """Leave out columns that say nothing: constant ones beside an intercept, and zeros."""
    useless = found.is_constant & (intercept | (found.largest == 0))
    if not useless.any():
        return x, names, found
    kept = np.flatnonzero(~useless)
    dropped = [name for name, is_useless in zip(names, useless, strict=True) if is_useless]
    warnings.warn(
        f"the same value in every row: {_listed(dropped)}. Left out of the model, which cannot "
        "learn anything from it.",
        stacklevel=3,
    )
    num_rows, step = len(x), max(1, _BLOCK_ENTRIES // x.shape[1])
    smaller = x.reshape(-1)[: num_rows * len(kept)].reshape(num_rows, len(kept))
    for start in range(0, num_rows, step):  # in place, from the front
        smaller[start : start + step] = x[start : start + step][:, kept]
    parts = Standardization(*(part[kept] for part in found))
    return smaller, tuple(names[i] for i in kept), parts


def _warn_of_dependence(
    x: np.ndarray, names: tuple[str, ...], found: Standardization, intercept: bool
) -> None:
    if len(x) < len(names) + intercept:
        warnings.warn(
            f"the formula has {len(names) + intercept:,} coefficients, and the table {len(x):,} "
            "rows: the prior decides what the data cannot. Use fewer terms.",
            stacklevel=3,
        )
        return
    dependences = dependent_columns(x, found.scale, centre=intercept)
    if not dependences:
        return
    texts = [
        f"{names[d.column]!r} of {_listed([names[i] for i in d.others])}"
        for d in dependences[:_MOST_NAMED]
    ]
    more = len(dependences) - len(texts)
    warnings.warn(
        f"columns are linear combinations of others: {'; '.join(texts)}"
        f"{f'; and {more} more' if more else ''}. The data cannot tell their coefficients apart, "
        "and the prior decides. Take them out of the formula.",
        stacklevel=3,
    )


def _listed(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:_MOST_NAMED]))
    more = len(names) - _MOST_NAMED
    return f"{shown} and {more} more" if more > 0 else shown
