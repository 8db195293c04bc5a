"""Bayesian coresets and posterior draws from them, with nothing to tune.

``coremcmc.fit(model, data, coreset_size)`` is all that a first fit needs.
"""

from coremcmc.base import LinearPredictorModel, Model
from coremcmc.coreset_mcmc import coreset_mcmc
from coremcmc.data import (
    MemoryData,
    gaussian_location_data,
    logistic_data,
    sparse_regression_data,
)
from coremcmc.fit import fit
from coremcmc.hot_start import HotStart
from coremcmc.models import (
    BradleyTerry,
    FunctionModel,
    GaussianLocation,
    LinearRegression,
    LogisticRegression,
    PoissonRegression,
    SparseRegression,
)
from coremcmc.optimizers import hot_dog
from coremcmc.result import Coreset, Fit
from coremcmc.run import FitError
from coremcmc.selection import Stratified
from coremcmc.version import __version__ as __version__

__all__ = [
    "BradleyTerry",
    "Coreset",
    "Fit",
    "FitError",
    "FunctionModel",
    "GaussianLocation",
    "HotStart",
    "LinearPredictorModel",
    "LinearRegression",
    "LogisticRegression",
    "MemoryData",
    "Model",
    "PoissonRegression",
    "SparseRegression",
    "Stratified",
    "coreset_mcmc",
    "fit",
    "gaussian_location_data",
    "hot_dog",
    "logistic_data",
    "sparse_regression_data",
]
