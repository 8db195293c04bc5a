"""A formula's design matrix, in blocks of rows.

formulaic reads the formula. Each of its factors, ``log(dist)`` or ``C(origin)``, is evaluated once
on the whole table, so that whatever depends on all rows (knots, means, levels) is what it is; the
matrix itself, with a column for each level and each product, is then made block by block.
"""

import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from coremcmc.models.formula.parse import FUNCTIONS, Parsed, names_of

__all__ = ["Design"]


class Design:
    """The right side of a formula over a table.

    Parameters
    ----------
    parsed
        The formula.
    table
        A pandas table without missing values in the formula's columns.

    Raises
    ------
    ValueError
        Where a term cannot be computed, or is not finite somewhere.
    """

    def __init__(self, parsed: Parsed, table: Any):
        factors = {f.expr: f for term in parsed.terms for f in term.factors}
        self._text, self._table = parsed.text, table
        self._whole = _materializer(_widened(table, [parsed.response, *factors.values()]))
        self._factors = {
            expr: self._evaluate(factor)
            for expr, factor in factors.items()
            if factor.eval_method.value != "literal"
        }
        some = self._materializer(0, min(2, len(table)))
        with _as_errors(parsed.text):
            matrix = some.get_model_matrix(parsed.terms, na_action="ignore", output="numpy")
        self._spec = matrix.model_spec
        self.names: tuple[str, ...] = tuple(map(str, self._spec.column_names))

    def block(self, start: int, stop: int) -> np.ndarray:
        """Rows from ``start`` up to ``stop``, one column for each name."""
        with _as_errors(self._text):
            matrix = self._materializer(start, stop).get_model_matrix(self._spec)
        return np.asarray(matrix, np.float64).reshape(stop - start, len(self.names))

    def response(self, parsed: Parsed) -> Any:
        """The left side over all rows, as pandas or NumPy has it."""
        return self._evaluate(parsed.response, is_response=True).values.__wrapped__

    def _evaluate(self, factor: Any, is_response: bool = False) -> Any:
        """A factor on the whole table, with its levels if it is categorical."""
        import pandas as pd
        from formulaic import ModelSpec
        from formulaic.materializers.types import EvaluatedFactor, FactorValues
        from formulaic.parser.types import Factor

        spec = ModelSpec(formula=[], na_action="ignore", output="numpy")
        with _as_errors(factor.expr), np.errstate(all="ignore"):
            found = self._whole._evaluate_factor(factor, spec, set())
        values = found.values
        if is_response:
            return found
        if found.metadata.kind is Factor.Kind.CATEGORICAL:
            # With the levels of the whole table, which a block may lack.
            levels = pd.Categorical(values.__wrapped__).remove_unused_categories()
            values = FactorValues(pd.Series(levels), metadata=found.metadata)
        else:
            for part in _arrays(values.__wrapped__):
                _require_numbers(factor.expr, part, len(self._table))
        return EvaluatedFactor(factor=factor, values=values, variables=found.variables)

    def _materializer(self, start: int, stop: int) -> Any:
        """formulaic's own, over some rows, with the factors that are known already."""
        from formulaic.materializers.types import EvaluatedFactor, FactorValues

        some = _materializer(self._table.iloc[start:stop])
        for expr, found in self._factors.items():
            part = _rows_of(found.values.__wrapped__, start, stop)
            if getattr(getattr(part, "dtype", None), "kind", None) in set("biuf"):
                part = part.astype(np.float64)  # products of small integers overflow
            values = FactorValues(part, metadata=found.metadata)
            some.factor_cache[expr] = EvaluatedFactor(found.factor, values, found.variables)
        return some


def _materializer(table: Any) -> Any:
    from formulaic.materializers import PandasMaterializer

    return PandasMaterializer(table, context=FUNCTIONS)


def _widened(table: Any, factors: list[Any]) -> Any:
    """The table, its columns in 64 bits where a factor computes with them.

    Differences of unsigned integers, and products of small ones, wrap around without a word.
    """
    computed = set[str]()
    for factor in factors:
        if factor.eval_method.value == "python":
            computed |= names_of(factor, list(table.columns))
    wide: dict[str, Any] = {}
    for name in computed:
        dtype = table[name].dtype
        if dtype.kind == "u" or (dtype.kind == "i" and dtype.itemsize < 8):
            wide[name] = np.int64
        elif dtype.kind == "f" and dtype.itemsize < 8:
            wide[name] = np.float64
    return table.astype(wide) if wide else table


class _as_errors:  # noqa: N801 (used like a function)
    """Say in one line what formulaic could not do, its warnings about levels included."""

    def __init__(self, term: str):
        self.term = term
        self.caught = warnings.catch_warnings()

    def __enter__(self) -> None:
        from formulaic.errors import DataMismatchWarning

        self.caught.__enter__()
        warnings.simplefilter("ignore", DeprecationWarning)  # of pandas, which formulaic uses
        warnings.simplefilter("error", DataMismatchWarning)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.caught.__exit__(kind, error, trace)
        if isinstance(error, Exception) and not isinstance(error, MemoryError):
            reason = " ".join(str(error).split())
            bracketed = re.search(r"\[(.*)\]$", reason)  # formulaic puts the cause there
            reason = (bracketed[1] if bracketed else reason).rstrip(".")
            raise ValueError(
                f"{self.term!r} cannot be computed: {reason[:300]}. Mend it in the formula, or "
                "make such a column beforehand."
            ) from None


def _arrays(values: Any) -> Iterator[Any]:
    """The arrays of a factor; a spline has several."""
    if isinstance(values, dict):
        for name, part in values.items():
            if not (isinstance(name, str) and name.startswith("__")):
                yield from _arrays(getattr(part, "__wrapped__", part))
    else:
        yield values


def _rows_of(values: Any, start: int, stop: int) -> Any:
    if isinstance(values, dict):
        return {
            name: part
            if isinstance(name, str) and name.startswith("__")
            else _rows_of(getattr(part, "__wrapped__", part), start, stop)
            for name, part in values.items()
        }
    return values.iloc[start:stop] if hasattr(values, "iloc") else values[start:stop]


def _require_numbers(term: str, values: Any, num_rows: int) -> None:
    """Finite numbers, one for each row."""
    array = np.asarray(values)
    if array.dtype.kind in "mM":
        raise ValueError(
            f"the term {term!r} of the formula is a time, not a number. Use a part of it, such as "
            f"I({term}.dt.hour) or C({term}.dt.month)."
        )
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"the term {term!r} of the formula is not a number (its dtype is {array.dtype}). Make "
            f"a category of it with C({term}), or convert it beforehand."
        )
    if array.ndim == 0 or len(array) != num_rows:
        raise ValueError(
            f"the term {term!r} of the formula has shape {array.shape}, but the table has "
            f"{num_rows:,} rows. A term must have one value for each row."
        )
    finite = np.isfinite(array).reshape(num_rows, -1).all(axis=1)
    if not finite.all():
        raise ValueError(
            f"the term {term!r} of the formula is not finite in {int((~finite).sum()):,} rows, the "
            f"first of them row {int(np.argmin(finite)):,}. Change the transform, as log(x) of a "
            "zero to log(x + 1), or leave such rows out."
        )
