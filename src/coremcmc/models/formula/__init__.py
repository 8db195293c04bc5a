"""Formulas: a line of text and a table become a model and its data."""

from coremcmc.models.formula.from_formula import FormulaProblem, from_formula

__all__ = ["FormulaProblem", "from_formula"]
