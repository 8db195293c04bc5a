"""The public names of ``coremcmc``."""

from . import diagnostics, optimizers
from .algorithm.hot_start import HotStart
from .algorithm.step import coreset_mcmc
from .base import LinearPredictorModel, Model
from .compile_cache import keep_compiled_programs
from .coreset import Coreset
from .data import (
    MemoryData,
    gaussian_location_data,
    logistic_data,
    sparse_regression_data,
)
from .data.tables import read_table
from .fitting.fit import fit
from .fitting.result import Fit
from .fitting.run import FitError
from .models import (
    GLM,
    BradleyTerry,
    FunctionModel,
    GaussianLocation,
    LinearRegression,
    LogisticRegression,
    PoissonRegression,
    SparseRegression,
)
from .models.formula import from_formula
from .models.numpyro.from_numpyro import from_numpyro
from .models.pymc.from_pymc import from_pymc
from .optimizers import hot_dog
from .selection import Stratified
from .version import __version__

__all__ = [
    "GLM",
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
    "__version__",
    "coreset_mcmc",
    "diagnostics",
    "fit",
    "from_formula",
    "from_numpyro",
    "from_pymc",
    "gaussian_location_data",
    "hot_dog",
    "keep_compiled_programs",
    "logistic_data",
    "optimizers",
    "read_table",
    "sparse_regression_data",
]
