"""The public names: import them from ``coremcmc`` itself, which loads this module on first use."""

from coremcmc.base import LinearPredictorModel, Model
from coremcmc.compile_cache import keep_compiled_programs
from coremcmc.coreset_mcmc import coreset_mcmc
from coremcmc.data import (
    MemoryData,
    gaussian_location_data,
    logistic_data,
    sparse_regression_data,
)
from coremcmc.data.tables import read_table
from coremcmc.fit import fit
from coremcmc.formulas import from_formula
from coremcmc.hot_start import HotStart
from coremcmc.models import (
    GLM,
    BradleyTerry,
    FunctionModel,
    GaussianLocation,
    LinearRegression,
    LogisticRegression,
    PoissonRegression,
    SparseRegression,
)
from coremcmc.models.numpyro import from_numpyro
from coremcmc.models.pymc import from_pymc
from coremcmc.optimizers import hot_dog
from coremcmc.result import Coreset, Fit
from coremcmc.run import FitError
from coremcmc.selection import Stratified

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
    "coreset_mcmc",
    "fit",
    "from_formula",
    "from_numpyro",
    "from_pymc",
    "gaussian_location_data",
    "hot_dog",
    "keep_compiled_programs",
    "logistic_data",
    "read_table",
    "sparse_regression_data",
]
