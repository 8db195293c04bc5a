"""Models from PyMC."""
