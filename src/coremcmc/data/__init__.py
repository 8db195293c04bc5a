"""Data sources: what knows where rows come from."""

from coremcmc.data.memory import MemoryData
from coremcmc.data.source import as_data_source
from coremcmc.data.synthetic import (
    gaussian_location_data,
    logistic_data,
    sparse_regression_data,
)

__all__ = [
    "MemoryData",
    "as_data_source",
    "gaussian_location_data",
    "logistic_data",
    "sparse_regression_data",
]
