"""The version, readable also where the package is run from its source tree."""

__version__ = "0.1.0"
