"""What tells one version of the program from another: the source of what decides its numbers.

Starting from the objects that the study takes from ``coremcmc``, every module that they import,
directly or not, is read, and the study's own modules between a job and its tables. Where a module
lies, its imports, comments and docstrings do not count.
"""

import ast
import hashlib
import importlib
import importlib.util
import inspect
from functools import cache
from pathlib import Path

import coremcmc
from coremcmc import optimizers
from coremcmc.algorithm.hot_start import hot_start_statistic
from coremcmc.diagnostics import average_squared_z
from experiments.tasks import Task

__all__ = ["deciding_modules", "program_digest"]

_PACKAGE = "coremcmc"
_ENDS = {"cli", "commands", "fitting", "report"}  # what a user sees of a run, not its numbers
_STUDY = ("engine", "methods", "starts", "tables")


def program_digest(task: Task) -> str:
    """Return a digest of the modules that decide the numbers of a task's jobs."""
    digests = sorted(map(_module_digest, deciding_modules(task)))
    return hashlib.blake2b("".join(digests).encode(), digest_size=8).hexdigest()


def deciding_modules(task: Task) -> list[str]:
    """Return the names of those modules."""
    parts = (
        coremcmc.coreset_mcmc,
        coremcmc.MemoryData,
        coremcmc.Stratified,
        type(task.model),
        optimizers,
        hot_start_statistic,
        average_squared_z,
    )
    todo = [module.__name__ for part in parts if (module := inspect.getmodule(part))]
    found: set[str] = set()
    while todo:
        name = todo.pop()
        if name not in found and not _ENDS & set(name.split(".")):
            found.add(name)
            todo += _imported(name)
    study = __name__.rpartition(".")[0]
    return sorted(found) + [f"{study}.{name}" for name in _STUDY]


@cache
def _file(name: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:  # a name in a module, not a module in a package
        return None
    return Path(spec.origin) if spec and spec.origin else None


@cache
def _tree(name: str) -> ast.Module:
    path = _file(name)
    if path is None:
        raise ModuleNotFoundError(name)
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _imported(name: str) -> list[str]:
    """Return the modules of the package that a module imports, anywhere in it."""
    found = []
    for node in ast.walk(_tree(name)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            is_package = _file(name).name == "__init__.py"
            here = name.split(".")[: None if is_package else -1]
            base = here[: len(here) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{origin}.{alias.name}"
                found.append(inner if origin.startswith(_PACKAGE) and _file(inner) else origin)
    return [found_name for found_name in found if found_name.startswith(f"{_PACKAGE}.")]


@cache
def _module_digest(name: str) -> str:
    """Digest a module's statements, but for imports, docstrings and what it exports."""
    tree = ast.parse(ast.unparse(_tree(name)))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [s for s in body if not _is_silent(s)] or [ast.Pass()]
    return hashlib.blake2b(ast.unparse(tree).encode(), digest_size=8).hexdigest()


def _is_silent(statement: ast.stmt) -> bool:
    """Whether a statement is an import, a text for readers, or the list of public names."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str)
    if isinstance(statement, ast.Assign):
        return [ast.unparse(t) for t in statement.targets] == ["__all__"]
    return isinstance(statement, ast.Import | ast.ImportFrom)
