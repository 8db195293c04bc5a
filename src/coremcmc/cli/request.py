"""From what the user asked for to a model and data: the same in every process of a run."""

import importlib.metadata
import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from coremcmc.base import Model
from coremcmc.cli.model_file import load_named, model_from_file
from coremcmc.cli.run_folder import fingerprint_of_files
from coremcmc.data import as_data_source
from coremcmc.data.tables import read_table, table_files
from coremcmc.fitting.settings import check_seed, resolve
from coremcmc.models.formula import from_formula
from coremcmc.models.names import from_plain, to_plain
from coremcmc.pytrees import example_position
from coremcmc.version import __version__

__all__ = ["Problem", "Request", "check_same_data", "config_of", "model_of_run", "prepare"]

_DEFAULT_SIZE = 1_000
_PACKAGES = (
    "jax",
    "jaxlib",
    "numpy",
    "optax",
    "blackjax",
    "arviz-base",
    "arviz-stats",
    "pandas",
    "pyarrow",
    "formulaic",
)


@dataclass(frozen=True)
class Request:
    """What a run is made from; config.json holds it.

    Attributes
    ----------
    data
        File, folder or glob.
    columns
        The columns to read and to keep; all where there are none.
    formula, family, terms
        Of a regression. ``terms`` are further arguments of :func:`coremcmc.from_formula`: link,
        priors and df.
    model
        ``file.py:name``, in place of a formula.
    drop_missing
        Whether rows with missing values are left out.
    coreset_size
        M, or ``"auto"``; None for 1,000, or all rows where they are fewer.
    options
        Further arguments of :func:`coremcmc.fit`.
    """

    data: str
    columns: tuple[str, ...] = ()
    formula: str | None = None
    family: str | None = None
    terms: dict[str, Any] | None = None
    model: str | None = None
    drop_missing: bool = False
    coreset_size: int | str | None = None
    options: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.model is not None and (self.formula is not None or self.family is not None):
            raise ValueError("give --model, or --formula with --family, not both.")
        if self.model is None and (self.formula is None or self.family is None):
            missing = "--formula" if self.formula is None else "--family"
            raise ValueError(
                f"{missing} is missing. A regression needs both, for example --family logistic "
                '--formula "y ~ a + C(b)"; a model of your own needs --model file.py:name.'
            )

    def absolute(self) -> "Request":
        """Return the same with absolute paths, so that a run can be resumed from any folder."""
        changed = asdict(self) | {"data": os.path.abspath(self.data)}
        if self.model is not None:
            file, _, name = self.model.rpartition(":")
            changed["model"] = f"{os.path.abspath(file)}:{name}"
        return Request(**changed)

    def with_size(self, num_rows: int) -> "Request":
        """Return the same with the default size of the coreset put in."""
        if self.coreset_size is not None:
            return self
        return Request(**(asdict(self) | {"coreset_size": min(_DEFAULT_SIZE, num_rows)}))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Request":
        """Read what :meth:`to_dict` wrote."""
        return cls(**{**values, "columns": tuple(values["columns"])})


@dataclass(frozen=True, eq=False)
class Problem:
    """A model, its data, and the table that they come from.

    Attributes
    ----------
    model, data
        As :func:`coremcmc.fit` takes them.
    table
        The user's rows, one for each row of ``data``; its index holds their numbers in the file.
        None where the model's function made other rows.
    num_dropped
        Rows left out because a value was missing.
    files
        What was read.
    """

    model: Model
    data: Any
    table: Any
    num_dropped: int
    files: list[Path]

    @property
    def columns(self) -> list[str]:
        """The user's columns."""
        return [] if self.table is None else [str(name) for name in self.table.columns]

    @property
    def table_bytes(self) -> int:
        """What the user's table occupies."""
        return 0 if self.table is None else int(self.table.memory_usage(deep=True).sum())

    @property
    def num_rows(self) -> int:
        """N."""
        return as_data_source(self.data, self.model).num_rows

    def __str__(self) -> str:
        """What was read, for a person."""
        named = f", {len(self.columns)} columns: {', '.join(self.columns)}" if self.columns else ""
        return f"{self.num_rows:,} rows{named}"


def prepare(request: Request) -> Problem:
    """Read the data, build the model, and refuse what cannot be fitted."""
    files = table_files(request.data)
    table = read_table(request.data, columns=list(request.columns) or None)
    num_read = len(table)
    if request.model is not None:
        if request.drop_missing:
            table = table.dropna()
        model, data = model_from_file(request.model, table)
    else:
        missing = "drop" if request.drop_missing else "refuse"
        made = from_formula(
            str(request.formula),
            table,
            family=str(request.family),
            missing=missing,
            **(request.terms or {}),
        )
        model, data = made
        if len(made.rows) < num_read:
            table = table.iloc[made.rows]
    source = as_data_source(data, model)
    source.check(model)
    _check_settings(request, source, model)
    if source.num_rows != len(table):
        table = None
    num_dropped = 0 if table is None else num_read - len(table)
    return Problem(model, data, table, num_dropped, files)


def _check_settings(request: Request, source: Any, model: Model) -> None:
    """Refuse what a fit would refuse, and a coreset with fewer rows than there are parameters."""
    settings, seed, preset = split_options(request.options or {})
    check_seed(seed)
    if request.coreset_size == "auto":
        if not resolve(model, source, 2, preset, settings).certificate:
            raise ValueError(
                f"--coreset-size auto asks the certificate, which --preset {preset} does not make. "
                "Give a number."
            )
        return
    size = int(request.with_size(source.num_rows).coreset_size or 0)
    resolve(model, source, size, preset, settings)
    dimension = _dimension(model, source)
    if dimension > size:
        raise ValueError(
            f"the model has {dimension:,} parameters, but the coreset only {size:,} rows. Raise "
            f"--coreset-size, best to {10 * dimension:,} or more, or take terms out of the formula."
        )


def split_options(options: dict[str, Any]) -> tuple[dict[str, Any], int, str]:
    """Split options of a fit into the settings proper, the seed and the preset."""
    named = ("seed", "preset", "checkpoint_every")
    settings = {name: value for name, value in options.items() if name not in named}
    return settings, options.get("seed", 0), options.get("preset", "default")


def _dimension(model: Model, source: Any) -> int:
    """Length of the unconstrained position."""
    with jax.enable_x64(True):
        like = example_position(model, source.take(np.arange(min(2, source.num_rows))))
    return sum(x.size for x in jax.tree.leaves(like))


# -- what config.json holds -----------------------------------------------------------------------


def config_of(request: Request, problem: Problem) -> dict[str, Any]:
    """What is needed to go on with the run, and to reproduce it."""
    versions = {"coremcmc": __version__, "python": platform.python_version()}
    return {
        "request": request.to_dict(),
        "data": fingerprint_of_files(problem.files),
        "num_rows": problem.num_rows,
        "num_dropped": problem.num_dropped,
        "columns": problem.columns,
        "model": to_plain(problem.model),
        "versions": versions | {name: importlib.metadata.version(name) for name in _PACKAGES},
        "platform": platform.platform(),
    }


def check_same_data(config: dict[str, Any], folder: Any) -> None:
    """Refuse to go on with data that are gone, or are not what they were."""
    before, data = config["data"], config["request"]["data"]
    try:
        now = table_files(data)
    except ValueError:
        raise ValueError(
            f"the data of {folder} are gone: there is no {data}. Put them back, or begin a new run."
        ) from None
    if [file["path"] for file in before] != [str(path) for path in now]:
        raise ValueError(
            f"{data} holds other files than when {folder} was begun. Restore them, or begin a new "
            "run in another folder."
        )
    for old, new in zip(before, fingerprint_of_files(now), strict=True):
        if old != new:
            raise ValueError(
                f"{new['path']} has changed since {folder} was begun. Restore it, or begin a new "
                "run in another folder."
            )


def model_of_run(config: dict[str, Any], folder: Any, identity: str) -> tuple[Model, Any]:
    """Return the model of a run, and its data if they had to be read to build it.

    ``identity`` is the description of the model that the run was made with.
    """
    request = Request.from_dict(config["request"])
    model = from_plain(config["model"])
    if model is None and request.model is not None:
        found = load_named(request.model)
        model = found if isinstance(found, Model) else None
    data = None
    if model is None:
        check_same_data(config, folder)
        problem = prepare(request)
        model, data = problem.model, problem.data
    if model.describe() != identity:
        what = request.model or "the package's version"
        raise ValueError(
            f"the model is not the one that {folder} was made with: {what} has changed since. "
            "Restore it, or begin a new run."
        )
    return model, data
