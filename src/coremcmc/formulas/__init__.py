"""Formulas: a line of text and a table become a model and its data."""

from coremcmc.formulas.build import FormulaProblem, from_formula

__all__ = ["FormulaProblem", "from_formula"]
