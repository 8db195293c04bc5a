"""What a user may give as data, and the data source that it becomes."""

from collections.abc import Mapping
from typing import Any

from coremcmc.base import DataSource, Model
from coremcmc.data.memory import MemoryData

__all__ = ["as_data_source"]


def as_data_source(data: Any, model: Model) -> DataSource:
    """Accept a data source, a mapping of arrays, a table with columns, or a tuple of arrays.

    A tuple is matched with the model's own column names: ``(x, y)`` for a regression. Of a mapping
    or table the model's columns are used, and the others left where they are.
    """
    if isinstance(data, DataSource):
        return data
    if isinstance(data, tuple) and model.fields:
        if len(data) != len(model.fields):
            raise ValueError(
                f"data is a tuple of {len(data)} arrays, but {type(model).__name__} reads "
                f"{len(model.fields)}: {', '.join(model.fields)}."
            )
        data = dict(zip(model.fields, data, strict=True))
    if hasattr(data, "columns"):
        data = {str(name): data[name] for name in data.columns}
    if model.fields and not isinstance(data, Mapping):
        raise ValueError(
            f"data must be a mapping with the columns {', '.join(model.fields)} "
            f"(or a tuple of them in that order), not a {type(data).__name__}."
        )
    if model.fields:
        others = {name: x for name, x in data.items() if name not in model.fields}
        return MemoryData({name: x for name, x in data.items() if name not in others}, others)
    return MemoryData(data)
