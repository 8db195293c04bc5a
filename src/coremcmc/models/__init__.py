"""Models: what knows a likelihood."""

from coremcmc.models.bradley_terry import BradleyTerry
from coremcmc.models.functions import FunctionModel
from coremcmc.models.gaussian_location import GaussianLocation
from coremcmc.models.glm import GLM
from coremcmc.models.paper_regressions import (
    LinearRegression,
    LogisticRegression,
    PoissonRegression,
)
from coremcmc.models.sparse_regression import SparseRegression

__all__ = [
    "GLM",
    "BradleyTerry",
    "FunctionModel",
    "GaussianLocation",
    "LinearRegression",
    "LogisticRegression",
    "PoissonRegression",
    "SparseRegression",
]
