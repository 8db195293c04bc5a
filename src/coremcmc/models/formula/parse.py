"""The text of a formula: what it means, or in one line why it means nothing."""

import ast
import builtins
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from coremcmc.data.tables import close_matches

__all__ = ["FUNCTIONS", "Parsed", "names_of", "parse_formula"]

FUNCTIONS = {"sqrt": np.sqrt, "log1p": np.log1p, "abs": np.abs}
"""What R users write and formulaic lacks."""

_MARKED = re.compile("⧛(.*?)⧚", re.DOTALL)
_QUOTED = re.compile("`([^`]+)`")
_COMPARED = re.compile(r"\s*(\w+|`[^`]+`)\s*([=!<>]=|[<>])[^()]*")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Parsed(NamedTuple):
    """A formula that was understood.

    Attributes
    ----------
    text
        As it was written.
    response
        formulaic's factor on the left.
    terms
        formulaic's formula on the right.
    variables
        Columns of the table that it reads.
    """

    text: str
    response: Any
    terms: Any
    variables: tuple[str, ...]

    @property
    def response_name(self) -> str:
        """The left side, as text."""
        return self.response.expr


def parse_formula(text: str, columns: Iterable[str]) -> Parsed:
    """Read a formula whose columns are to be found in a table.

    Raises
    ------
    ValueError
        Where it does not parse, has no response or several, or names what is not in the table.
    """
    from formulaic import Formula

    columns = list(columns)
    context = {"__formulaic_variables_available__": columns}
    try:
        formula = Formula(_with_comparison(text), _context=context)
    except Exception as error:
        raise ValueError(_syntax_message(text, str(error))) from None
    left, right = getattr(formula, "lhs", None), getattr(formula, "rhs", None)
    if left is None or right is None:
        raise ValueError(
            f"the formula {text!r} has no response. Write it on the left, as in 'y ~ a + b'."
        )
    if isinstance(right, tuple) or isinstance(left, tuple):
        raise ValueError(
            f"the formula {text!r} has parts divided by '|', which are not known here."
        )
    factors = [factor for term in left for factor in term.factors]
    if len(factors) != 1 or factors[0].eval_method.value == "literal":
        raise ValueError(
            f"the formula {text!r} must have one response on the left; a sum is written I(a + b)."
        )
    named = set[str]()
    for term in (*left, *right):
        for factor in term.factors:
            named |= names_of(factor, columns)
    for name in sorted(named.difference(columns)):
        raise ValueError(_unknown_message(text, name, columns))
    return Parsed(text, factors[0], right, tuple(sorted(named)))


def _with_comparison(text: str) -> str:
    """Put a comparison that is the response, as in ``late == 'yes' ~ hour``, into I( )."""
    left, tilde, right = text.partition("~")
    if tilde and _COMPARED.fullmatch(left):
        return f"I({left.strip()}) ~ {right}"
    return text


def names_of(factor: Any, columns: list[str]) -> set[str]:
    """Return the columns that a factor reads, and names that are nothing at all.

    formulaic's own list leaves out what stands in poly(x) or bs(x).
    """
    from formulaic.transforms import TRANSFORMS

    if factor.eval_method.value == "literal":
        return set()
    if factor.eval_method.value == "lookup":
        return {factor.expr}
    quoted = _QUOTED.findall(factor.expr)
    try:
        tree = ast.parse(_QUOTED.sub("_", factor.expr), mode="eval")
    except SyntaxError as error:
        raise ValueError(_syntax_message(factor.expr, str(error))) from None
    bound = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - bound - {"_"}
    known = {*TRANSFORMS, *FUNCTIONS, *dir(builtins)}
    return {name for name in found if name in columns or name not in known} | set(quoted)


def _syntax_message(text: str, message: str) -> str:
    plain = _COLOUR.sub("", message)
    marked = _MARKED.search(plain)
    reason = plain.strip().split("\n")[0].rstrip(".")
    where = f" at {marked[1]!r}" if marked else ""
    hint = "Write it as in 'y ~ a + C(b) + log(c)'."
    if marked and set(marked[1]) & set("=<>!"):
        hint = "Put a comparison into I( ), as in I(y == 'yes')."
    return f"the formula {text!r} does not parse: {reason}{where}. {hint}"


def _unknown_message(text: str, name: str, columns: list[str]) -> str:
    if re.search(rf"(?<![\w.]){re.escape(name)}\s*\(", text):
        return (
            f"the formula {text!r} calls {name!r}, which is not known. NumPy's functions are there "
            f"as np.{name}, and log, exp, sqrt, poly, bs, center and scale by their names."
        )
    if name.partition(".")[0] in columns:
        return f"the formula {text!r}: write I({name}) in place of {name}."
    hint = close_matches(name, columns)
    hint = hint or f" Its columns: {', '.join(columns[:12])}{', …' if len(columns) > 12 else ''}."
    return f"the formula {text!r} names {name!r}, which is not in the table.{hint}"
