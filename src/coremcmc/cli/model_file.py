"""A model of the user's own, from a Python file: ``file.py:name``."""

import importlib.util
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coremcmc.base import Model
from coremcmc.identity import describe

__all__ = ["load_named", "model_from_file", "split_model_spec"]


def split_model_spec(spec: str) -> tuple[Path, str]:
    """Split ``file.py:name``, and ask that the file exist."""
    path, colon, name = spec.rpartition(":")
    if not colon or not name.isidentifier():
        raise ValueError(
            f"--model {spec!r} must be file.py:name, where name is a model, or a function "
            "name(table) that returns (model, data)."
        )
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"--model: there is no file {path}. Check the path.")
    return file, name


def model_from_file(spec: str, table: Any) -> tuple[Model, Any]:
    """Return the model that a Python file defines, and its data from the user's table.

    Parameters
    ----------
    spec
        ``file.py:name``. ``name`` is a model, or a function that takes the table and returns
        ``(model, data)``, as :func:`coremcmc.from_numpyro` does, for one.
    table
        The user's data as a DataFrame. A model that lists its ``fields`` gets the columns of those
        names; one that does not gets all columns of numbers.
    """
    file, name = split_model_spec(spec)
    found = load_named(spec)
    if isinstance(found, Model):
        return found, _columns(found, table, spec)
    if isinstance(found, type) or not callable(found):
        raise ValueError(
            f"--model {spec}: {name} is {describe(found)[:80]}, neither a model (an instance) nor "
            "a function name(table) -> (model, data)."
        )
    try:
        made = found(table)
    except Exception as error:
        raise ValueError(f"--model {spec}: {_where(error, file)}") from error
    if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], Model)):
        raise ValueError(
            f"--model {spec}: {name}(table) must return (model, data), but returned "
            f"{type(made).__name__}."
        )
    return made


def load_named(spec: str) -> Any:
    """Run the file as a module, its own folder being importable; return what ``name`` is there."""
    file, name = split_model_spec(spec)
    # The same name in every process: a model's identity contains it.
    module_name = f"coremcmc_model_{file.stem}"
    found = importlib.util.spec_from_file_location(module_name, file)
    if found is None or found.loader is None:
        raise ValueError(f"--model: {file} is not a Python file. Its name must end in .py.")
    module = importlib.util.module_from_spec(found)
    sys.modules[module_name] = module
    folder = str(file.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise ValueError(f"--model {spec}: {_where(error, file)}") from error
    if not hasattr(module, name):
        known = [n for n, v in vars(module).items() if isinstance(v, Model) or _is_own(v, module)]
        raise ValueError(
            f"--model: {file} defines no {name!r}; it defines {', '.join(known) or 'nothing'}."
        )
    return getattr(module, name)


def _is_own(value: Any, module: Any) -> bool:
    return callable(value) and getattr(value, "__module__", None) == module.__name__


def _where(error: BaseException, file: Path) -> str:
    """The error, and the line of the user's file that led to it."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).name == file.name
    ]
    line = error.lineno if isinstance(error, SyntaxError) else (lines[-1] if lines else None)
    place = f"line {line}: " if line else ""
    return f"{place}{type(error).__name__}: {error}"


def _columns(model: Model, table: Any, spec: str) -> Mapping[str, Any]:
    names = [str(column) for column in table.columns]
    if model.fields:
        parts = {field: _parts_of(field, names) for field in model.fields}
        missing = [field for field, found in parts.items() if not found]
        if missing:
            raise ValueError(
                f"--model {spec} reads the column(s) {', '.join(missing)}, which the data lack; "
                f"theirs are {', '.join(names)}. Rename them, or make name a function(table) that "
                "returns (model, data)."
            )
        return {
            field: table[field if found == [field] else found].to_numpy()
            for field, found in parts.items()
        }
    numbers = table.select_dtypes(include=["number", "bool"])
    if not len(numbers.columns):
        raise ValueError(f"--model {spec}: the data have no column of numbers.")
    return {str(name): numbers[name].to_numpy() for name in numbers.columns}


def _parts_of(field: str, names: list[str]) -> list[str]:
    """The column of that name, or those of a matrix: ``x_0``, ``x_1``, …, as an npz has them."""
    if field in names:
        return [field]
    count = 0
    while f"{field}_{count}" in names:
        count += 1
    return [f"{field}_{i}" for i in range(count)]
