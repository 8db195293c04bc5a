"""What tells one PyTensor graph from another, in any process."""

import hashlib
from collections.abc import Sequence
from typing import Any

from coremcmc.identity import describe

__all__ = ["graph_digest"]


def graph_digest(inputs: Sequence[Any], outputs: Sequence[Any]) -> str:
    """Return a digest of the operations and constants that make the outputs of the inputs.

    The same in every process: it knows no address, and no name but those of the inputs.
    """
    content = hashlib.blake2b(digest_size=12)
    numbers: dict[Any, int] = {}

    def enter(variable: Any, text: str) -> None:
        numbers[variable] = len(numbers)
        content.update(f"{text}: {_type_text(variable.type)}\n".encode())

    for variable in inputs:
        enter(variable, f"input {variable.name}")
    waiting = list(reversed(outputs))
    while waiting:
        variable = waiting[-1]
        node = variable.owner
        missing = [x for x in node.inputs if x not in numbers] if node is not None else []
        if variable in numbers:
            waiting.pop()
        elif missing:
            waiting.extend(reversed(missing))
        elif node is None:
            enter(variable, f"constant {describe(getattr(variable, 'data', None))}")
        else:
            places = [numbers[x] for x in node.inputs]
            enter(variable, f"{_op_text(node.op)}{places}[{node.outputs.index(variable)}]")
    content.update(repr([numbers[x] for x in outputs]).encode())
    return content.hexdigest()


def _op_text(op: Any) -> str:
    """Return an operation's class and properties, those of its inner graph included."""
    name = f"{type(op).__module__}.{type(op).__qualname__}"
    properties = [_property_text(getattr(op, key)) for key in getattr(op, "__props__", None) or ()]
    inner = getattr(op, "fgraph", None)
    if inner is not None:
        properties.append(graph_digest(inner.inputs, inner.outputs))
    elif getattr(op, "__props__", None) is None:
        properties.append(describe(str(op)))
    return f"{name}{properties}"


def _property_text(value: Any) -> str:
    from pytensor.graph.basic import Variable
    from pytensor.graph.op import Op
    from pytensor.graph.type import Type

    if isinstance(value, Op):
        return _op_text(value)
    if isinstance(value, Type):
        return _type_text(value)
    if isinstance(value, Variable):
        return graph_digest([], [value])
    if isinstance(value, tuple | list):
        return str([_property_text(item) for item in value])
    return describe(value)


def _type_text(type_: Any) -> str:
    shape = getattr(type_, "shape", None)
    return f"{type(type_).__qualname__} {getattr(type_, 'dtype', '')} {shape}"
