"""Models from NumPyro programs."""
