"""Classes by the names under which files know them, wherever their modules move."""

from coremcmc import models
from coremcmc.models import priors
from coremcmc.models.formula.model import FormulaModel

__all__ = ["NAMED"]

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
