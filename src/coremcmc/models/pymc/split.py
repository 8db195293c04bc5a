"""What a row's log-likelihood need not compute at every evaluation.

Two things are found in its graph, by the operations that make them: a linear predictor, such as
the xᵀβ of a regression, which lets a move along a line cost one product
(:class:`coremcmc.base.LinearPredictorModel`); and costly terms that read the row alone, such as
log y!, which are computed once.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from coremcmc.models.pymc.graph import ancestors, replaced

__all__ = ["Split", "split_constant", "split_linear"]

_ALL_LINEAR = {"Add", "Sub", "Neg", "Identity", "MakeVector", "Join"}
_FIRST_LINEAR = {
    *("DimShuffle", "Reshape", "SpecifyShape", "Alloc", "Sum", "TrueDiv"),
    *("Subtensor", "AdvancedSubtensor", "AdvancedSubtensor1"),
}
_ONE_LINEAR = {"Mul", "Dot", "Einsum"}
_ONLY_SHAPE = {"Shape", "Shape_i"}
_COSTLY = {
    *("GammaLn", "Psi", "Log", "Log1p", "Log2", "Log10", "Exp", "Expm1", "Softplus", "Sigmoid"),
    *("Pow", "Sqrt", "Erf", "Erfc", "Erfcx", "Sin", "Cos", "Tanh", "BetaInc", "GammaInc"),
}


class Split(NamedTuple):
    """A row's log-likelihood in two steps.

    Attributes
    ----------
    inputs
        Parameters and the row's entries, in the order given.
    eta
        The predictor, of one entry, made of the inputs.
    eta_input, row
        The log-likelihood as a function of the predictor and the inputs.
    """

    inputs: list[Any]
    eta: Any
    eta_input: Any
    row: Any


def split_linear(values: Sequence[Any], entries: Sequence[Any], row: Any) -> Split | None:
    """Split the log-likelihood of a row at its linear predictor; None where it has none.

    There must be one predictor, and the parameters in it must enter through it alone.
    """
    import pytensor.tensor as pt
    from pytensor.graph.fg import FunctionGraph

    graph = FunctionGraph([*values, *entries], [row], clone=True)
    parameters, given = graph.inputs[: len(values)], graph.inputs[len(values) :]
    linear, free = set(parameters), set(given)
    for node in graph.toposort():
        dependent = [x for x in node.inputs if x not in free and not _is_constant(x)]
        name = _name(node.op)
        if not dependent or name in _ONLY_SHAPE:
            free.update(node.outputs)
        elif _keeps_linear(name, node.inputs, dependent, linear):
            linear.update(node.outputs)
    ends = {
        variable
        for variable in linear
        if all(length == 1 for length in variable.type.shape)
        and any(not linear.issuperset(node.outputs) for node, _ in graph.clients[variable])
        and not set(ancestors([variable])).isdisjoint(given)
    }
    if len(ends) != 1:
        return None
    eta: Any = ends.pop()
    eta_input = pt.tensor("eta", dtype=eta.dtype, shape=eta.type.shape)
    (rest,) = replaced(graph.outputs, {eta: eta_input})
    inside, outside = set(ancestors([eta])), set(ancestors([rest]))
    if any(x in inside and x in outside for x in parameters):
        return None
    return Split(list(graph.inputs), eta, eta_input, rest)


def split_constant(entries: Sequence[Any], row: Any) -> dict[Any, Any]:
    """Find the costly terms of a row's log-likelihood that read the row alone.

    Returns a new input for each, by which it can be replaced.
    """
    from pytensor.graph.fg import FunctionGraph

    inside = ancestors([row])
    inputs = [x for x in inside if x.owner is None and not _is_constant(x)]
    graph = FunctionGraph(inputs, [row], clone=False)
    constant = {x for x in inside if _is_constant(x)}
    free, costly = set(entries), set[Any]()
    for node in graph.toposort():
        if constant.issuperset(node.inputs):
            constant.update(node.outputs)
        elif all(x in free or x in constant for x in node.inputs):
            free.update(node.outputs)
            if _name(node.op) in _COSTLY or not costly.isdisjoint(node.inputs):
                costly.update(node.outputs)
    terms = [
        variable
        for variable in inside  # in an order that is the same in every process
        if variable in costly
        and any(not free.issuperset(node.outputs) for node, _ in graph.clients[variable])
    ]
    return {variable: variable.type(name=f"term {k}") for k, variable in enumerate(terms)}


def _keeps_linear(name: str, inputs: list[Any], dependent: list[Any], linear: set) -> bool:
    """Whether an operation of these inputs is linear in the parameters."""
    if not linear.issuperset(dependent):
        return False
    if name in _ALL_LINEAR:
        return dependent == [x for x in inputs if "float" in x.dtype]
    if name in _FIRST_LINEAR:
        return dependent == inputs[:1]
    return name in _ONE_LINEAR and len(dependent) == 1


def _name(op: Any) -> str:
    """Return the name of what an operation does to numbers, whatever it is mapped over."""
    name = type(op).__name__
    inner = {"Elemwise": "scalar_op", "Blockwise": "core_op"}.get(name)
    return name if inner is None else type(getattr(op, inner)).__name__


def _is_constant(variable: Any) -> bool:
    return variable.owner is None and hasattr(variable, "data")
