"""Bayesian coresets and posterior draws from them, with nothing to tune."""
