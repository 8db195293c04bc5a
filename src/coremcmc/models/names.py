"""Models of this package as plain values, for config.json, and back.

Classes go by the names under which files know them, wherever their modules move. So a run can be
drawn from without its data, and without running anything that a file says: only what is listed
here is made.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from coremcmc import models
from coremcmc.models import priors
from coremcmc.models.formula.model import FormulaModel

__all__ = ["NAMED", "from_plain", "to_plain"]

NAMED: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        *(getattr(models, name) for name in models.__all__),
        *(found for found in vars(priors).values() if isinstance(found, type)),
        FormulaModel,
    )
    if kind.__module__.startswith(f"{models.__name__}.")
}
"""Models of this package that are plain values, and their parts: what config.json may name."""


def to_plain(value: Any) -> Any:
    """Return numbers, texts, lists and mappings; None where a part is not of this package."""
    try:
        return _to_plain(value)
    except TypeError:
        return None


def _to_plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, tuple):
        return [_to_plain(part) for part in value]
    if isinstance(value, Mapping):
        return {"mapping": {str(name): _to_plain(part) for name, part in value.items()}}
    kind = type(value)
    if dataclasses.is_dataclass(value) and NAMED.get(kind.__name__) is kind:
        fields = [field for field in dataclasses.fields(value) if field.init]
        values = {field.name: _to_plain(getattr(value, field.name)) for field in fields}
        return {"class": kind.__name__, "values": values}
    raise TypeError(f"{kind.__qualname__} is not of this package")


def from_plain(value: Any) -> Any:
    """Return what :func:`to_plain` was given; None of None."""
    if isinstance(value, list):
        return tuple(from_plain(part) for part in value)
    if not isinstance(value, dict):
        return value
    if "mapping" in value:
        return {name: from_plain(part) for name, part in value["mapping"].items()}
    found = NAMED.get(str(value.get("class")))
    if found is None or not dataclasses.is_dataclass(found):
        raise ValueError(f"config.json names {value.get('class')!r}, which this version lacks.")
    return found(**{key: from_plain(part) for key, part in value["values"].items()})
