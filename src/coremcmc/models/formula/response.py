"""The left side of a formula: numbers of the family's kind, or in one line why not."""

from typing import Any

import numpy as np

from coremcmc.models.families import BINARY
from coremcmc.models.formula.columns import rounded_location, rounded_scale
from coremcmc.models.glm import GLM

__all__ = ["response_of"]


def response_of(values: Any, name: str, glm: GLM, centre: bool) -> tuple[np.ndarray, float, float]:
    """Return the response as an array, its location and its scale.

    The latter are 0 and 1 but for a real response; its location is 0 without ``centre``.
    """
    import pandas as pd

    if isinstance(values, dict) or np.ndim(values) != 1:
        raise ValueError(f"the response {name!r} has several columns. It must be one number a row.")
    column = pd.Series(values)
    if isinstance(column.dtype, pd.CategoricalDtype) or column.dtype.kind not in "biufmM":
        raise ValueError(_text_message(column, name, glm))
    y = column.to_numpy()
    if y.dtype.kind in "mM":
        raise ValueError(
            f"the response {name!r} is a time, not a number. Turn it into one beforehand."
        )
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        first = int(np.argmin(np.isfinite(y)))
        raise ValueError(
            f"the response {name!r} is not finite, first in row {first:,}. Change the transform, "
            "as log(y) of a zero to log(y + 1), or leave such rows out."
        )
    _require_kind(y, name, glm)
    if (y == y[0]).all():
        raise ValueError(
            f"the response {name!r} is {y[0]} in every row: there is nothing to explain. Check the "
            "column, and which rows are in the table."
        )
    response = glm.response
    if not response.is_standardized:
        if response.dtype is None and y.dtype != bool:
            return y, 0.0, 1.0
        return y.astype(response.dtype or np.int64), 0.0, 1.0
    y = y.astype(response.dtype)
    scale = rounded_scale(float(y.std()))
    return y, rounded_location(float(y.mean()), scale) if centre else 0.0, scale


def _require_kind(y: np.ndarray, name: str, glm: GLM) -> None:
    """What the family's response must be."""
    response = glm.response
    bad = ~np.asarray(response.is_one(y))
    if bad.any():
        where = int(np.argmax(bad))
        raise ValueError(
            f"the response {name!r} must be {response.what} for family={glm.family!r}, but is "
            f"{y[where]} in row {where:,} ({int(bad.sum()):,} such rows). "
            f"{response.remedy.format(name=name, value=y[where])}"
        )


def _text_message(column: Any, name: str, glm: GLM) -> str:
    """A text means nothing until someone says which of its values is 1."""
    levels = sorted(str(level) for level in column.dropna().unique()[:1000])[:3]
    shown = ", ".join(map(repr, levels[:2])) + (", …" if len(levels) > 2 else "")
    if glm.response is BINARY:
        one = levels[-1] if len(levels) == 2 else levels[0]
        return (
            f"the response {name!r} is text ({shown}), and nothing says which value is 1. Write "
            f"it on the left of the formula, as in I({name} == {one!r})."
        )
    return (
        f"the response {name!r} is text ({shown}), but family={glm.family!r} needs numbers. Name "
        "a column of numbers, or read the file with that column as numbers."
    )
