"""Short descriptions of functions and arrays that tell one from another, run after run.

A function's address changes from process to process; its code, its constants, what it closes
over and the globals that it reads do not.
"""

import dis
import functools
import hashlib
import re
import types
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["describe"]

_MAX_DEPTH = 8
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def describe(value: Any, depth: int = 0) -> str:
    """Describe a value in one line: its repr if that says it all, else its name and a digest."""
    inner = functools.partial(describe, depth=depth + 1)
    if depth > _MAX_DEPTH:  # what refers to itself
        return type(value).__qualname__
    if isinstance(value, (bool, int, float, str, type(None))):
        return repr(value)
    if hasattr(value, "__array__"):
        array = np.asarray(value)
        return f"{array.dtype}{list(array.shape)}#{_digest(array.tobytes())}"
    if isinstance(value, types.FunctionType):
        parts = "".join(map(inner, _parts(value)))
        return f"{_name(value)}#{_digest(parts.encode())}"
    if isinstance(value, types.CodeType):
        names = (value.co_code.hex(), *value.co_names, *value.co_varnames)
        return inner((*names, *value.co_consts))
    if isinstance(value, functools.partial):
        return f"partial{inner((value.func, value.args, value.keywords))}"
    if isinstance(value, types.MethodType):
        return f"method{inner((value.__func__, value.__self__))}"
    if hasattr(value, "__wrapped__"):  # jax.jit(f), for one
        return f"{type(value).__qualname__}({inner(value.__wrapped__)})"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(inner, value))})"
    if isinstance(value, (set, frozenset)):
        return f"{{{', '.join(sorted(map(inner, value)))}}}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{k}: {inner(v)}' for k, v in value.items())}}}"
    if type(value).__repr__ is object.__repr__:
        attributes = inner(dict(sorted(getattr(value, "__dict__", {}).items())))
        return f"{_name(type(value))}{attributes}"
    return _ADDRESS.sub("", repr(value))


def _name(thing: Any) -> str:
    """The name of a class or function: ours without its module, which may move."""
    is_ours = str(thing.__module__).partition(".")[0] == __name__.partition(".")[0]
    return thing.__qualname__ if is_ours else f"{thing.__module__}.{thing.__qualname__}"


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=6).hexdigest()


def _parts(function: types.FunctionType) -> tuple[Any, ...]:
    """Return what determines a function: its own parts, and what it reads by a global name."""
    return (*_own_parts(function), _globals_read(function))


def _own_parts(function: types.FunctionType) -> tuple[Any, ...]:
    cells = tuple(_content(cell) for cell in function.__closure__ or ())
    return function.__code__, function.__defaults__, function.__kwdefaults__, cells


def _globals_read(function: types.FunctionType) -> dict[str, Any]:
    """Plain values and functions of its own module that a function, or one that it calls, reads.

    Not modules and what belongs to them: their versions are told apart elsewhere.
    """
    found: dict[str, Any] = {}
    calling = [function]
    while calling:
        current = calling.pop()
        for name in _global_names(current.__code__):
            value = current.__globals__.get(name)
            if name in found or value is function:
                continue
            if isinstance(value, types.FunctionType) and value.__module__ == function.__module__:
                found[name] = _own_parts(value)
                calling.append(value)
            elif _is_plain(value):
                found[name] = value
    return dict(sorted(found.items()))


def _global_names(code: types.CodeType) -> set[str]:
    """Return the names that a function's code, and the code within it, looks up globally."""
    names = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return names.union(*map(_global_names, inner))


def _is_plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(map(_is_plain, value.values()))
    if isinstance(value, (tuple, list, set, frozenset)):
        return all(map(_is_plain, value))
    is_array = hasattr(value, "__array__") and hasattr(value, "dtype")
    return isinstance(value, (bool, int, float, str)) or (
        is_array and getattr(value.dtype, "kind", "O") in "biufc"
    )


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not yet filled: the function refers to itself
        return None


_SEEN: dict[Any, str] = {}


def has_changed(thing: Any, identity: str) -> bool:
    """Whether something that compares equal was described otherwise when last seen.

    An object changed in place finds the programs again that were compiled for what it was.
    """
    before = _SEEN.get(thing)
    _SEEN[thing] = identity
    return before is not None and before != identity
