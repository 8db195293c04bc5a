"""PyTensor graphs as JAX functions.

PyMC has a function for it, ``pymc.sampling.jax.get_jaxified_graph``. It is not used here because
importing its module gives the whole process 100 CPU devices, and because it drops the checks of
parameters, so that a negative scale would pass for a valid one.
"""

import functools
import importlib
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import numpy as np

from coremcmc.models.pymc.ops import convert

__all__ = ["NEEDLESS_REWRITES", "ancestors", "replaced", "to_jax"]

_DISPATCH = "pytensor.link.jax.dispatch"
NEEDLESS_REWRITES = ("fusion", "inplace", "BlasOpt", "cxx_only", "local_usmm")
"""What serves compiled C alone. The last two ask a compiler which BLAS there is."""


def ancestors(variables: Iterable[Any]) -> list[Any]:
    """Return all that the variables are computed from, themselves included, each once."""
    seen: dict[Any, None] = {}
    waiting = list(variables)
    while waiting:
        variable = waiting.pop()
        if variable not in seen:
            seen[variable] = None
            if variable.owner is not None:
                waiting.extend(variable.owner.inputs)
    return list(seen)


def replaced(outputs: Sequence[Any], replacements: dict[Any, Any]) -> list[Any]:
    """Return the outputs computed from replacements, other shared variables by their values.

    Every operation is applied anew, so that shapes known of a replacement become known of what is
    computed from it: JAX needs them.
    """
    import pytensor.tensor as pt
    from pytensor.compile import SharedVariable

    new = dict(replacements)
    waiting = list(outputs)
    while waiting:
        variable = waiting[-1]
        node = variable.owner
        missing = [x for x in node.inputs if x not in new] if node is not None else []
        if variable in new:
            waiting.pop()
        elif missing:
            waiting.extend(missing)
        elif node is not None:
            inputs = [new[x] for x in node.inputs]
            again = node if inputs == node.inputs else _apply_again(node, inputs)
            new.update(zip(node.outputs, again.outputs, strict=True))
        elif isinstance(variable, SharedVariable):
            if not hasattr(variable.type, "dtype"):
                raise ValueError(
                    "the model's log density or one of its deterministics contains draws of an "
                    "unregistered distribution (.dist). Make it a named variable of the model."
                )
            new[variable] = pt.constant(variable.get_value(borrow=True), name=variable.name)
        else:
            new[variable] = variable
    return [new[variable] for variable in outputs]


def _apply_again(node: Any, inputs: list[Any]) -> Any:
    try:
        return node.clone_with_new_inputs(inputs, strict=False)
    except Exception:  # an operation with a graph inside may insist on the shapes it was made for
        return node.clone_with_new_inputs(inputs, strict=True)


def to_jax(inputs: Sequence[Any], outputs: Sequence[Any]) -> Callable[..., Sequence[jax.Array]]:
    """Translate a graph without shared variables into a JAX function of its inputs.

    Raises ``ValueError`` with the name of an operation that JAX cannot do.
    """
    from pytensor.compile.mode import JAX
    from pytensor.graph.fg import FunctionGraph
    from pytensor.link.utils import fgraph_to_python

    if not outputs:
        return lambda *_: []
    dispatch = _jax_dispatch()
    graph = FunctionGraph(list(inputs), list(outputs), clone=True)
    _decide_checks(graph)
    JAX.excluding(*NEEDLESS_REWRITES).optimizer.rewrite(graph)
    _merge_branches(graph)

    with jax.enable_x64(True), warnings.catch_warnings():
        # Assertions inside a nested graph: nothing can be raised from compiled code.
        warnings.filterwarnings("ignore", message="Skipping")
        return fgraph_to_python(
            graph,
            functools.partial(convert, dispatch),
            type_conversion_fn=dispatch.jax_typify,
        )


def _jax_dispatch() -> Any:
    """Import PyTensor's translation to JAX, and undo what that does to JAX's configuration.

    In a thread of its own, where a local ``jax.enable_x64`` of the caller does not hide the
    global setting.
    """
    if _DISPATCH in sys.modules:
        return sys.modules[_DISPATCH]

    def load() -> Any:
        before = jax.config.jax_enable_x64  # type: ignore[attr-defined]
        try:
            importlib.import_module(_DISPATCH)
        finally:
            jax.config.update("jax_enable_x64", before)

    thread = threading.Thread(target=load)
    thread.start()
    thread.join()
    return sys.modules[_DISPATCH]


def _decide_checks(graph: Any) -> None:
    """Let parameters out of their range give −∞, as PyMC's own samplers have it."""
    import pytensor.tensor as pt
    from pytensor.raise_op import CheckAndRaise

    for node in graph.toposort():
        if isinstance(node.op, CheckAndRaise):
            value, *conditions = node.inputs
            if type(node.op).__name__ == "CheckParameterValue":
                holds = pt.all([_all_of(condition) for condition in conditions])
                value = pt.switch(holds, value, -np.inf).astype(value.dtype)
            graph.replace(node.outputs[0], value, import_missing=True)
    for node in graph.toposort():
        if _is_scalar_op(node, "GE", "LE") and _is_sure(node):
            true = pt.ones_like(node.inputs[0], dtype="bool")
            graph.replace(node.outputs[0], true, import_missing=True)


def _all_of(condition: Any) -> Any:
    import pytensor.tensor as pt

    return pt.all(pt.as_tensor(condition))


def _is_scalar_op(node: Any, *names: str) -> bool:
    return node is not None and type(getattr(node.op, "scalar_op", None)).__name__ in names


def _is_sure(node: Any) -> bool:
    """Whether a comparison says 0 ≤ sigmoid(x) or sigmoid(x) ≤ 1, which need not be computed."""
    import pytensor.tensor as pt

    left, right = node.inputs
    bound = pt.get_underlying_scalar_constant_value(right, raise_not_constant=False)
    return (
        _is_scalar_op(left.owner, "Sigmoid")
        and isinstance(bound, np.ndarray | np.generic | float | int)
        and float(bound) == (0.0 if _is_scalar_op(node, "GE") else 1.0)
    )


def _merge_branches(graph: Any) -> None:
    """Turn ``switch(c, f(a), f(b))`` into ``f(switch(c, a, b))``, which computes f once.

    PyMC's Bernoulli is such a switch between two softplus.
    """
    import pytensor.tensor as pt

    changed = True
    while changed:
        changed = False
        for node in graph.toposort():
            if not _is_scalar_op(node, "Switch"):
                continue
            condition, first, second = node.inputs
            if not (_is_unary(first.owner) and _is_unary(second.owner)):
                continue
            (a,), (b,) = first.owner.inputs, second.owner.inputs
            if first.owner.op != second.owner.op or a.type != b.type:
                continue
            merged = first.owner.op(pt.switch(condition, a, b))
            if merged.type == node.outputs[0].type:
                graph.replace(node.outputs[0], merged, import_missing=True)
                changed = True
                break


def _is_unary(node: Any) -> bool:
    return node is not None and len(node.inputs) == 1 and hasattr(node.op, "scalar_op")
