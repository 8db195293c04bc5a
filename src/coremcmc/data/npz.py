"""NumPy's npz: an array a column, a matrix a column for each of its own."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from coremcmc.data.format import CUT_SHORT, Format, first_bytes

__all__ = ["NPZ"]


@contextmanager
def _as_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        if isinstance(error, FileNotFoundError | PermissionError):
            raise
        if first_bytes(path, 2) == b"PK":
            raise ValueError(f"{str(path)!r} {CUT_SHORT}") from None
        raise ValueError(f"{str(path)!r} is not an npz file, whatever its name.") from None


def _shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Shapes of the arrays, from their headers."""
    shapes = {}
    with _as_errors(path), zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            with archive.open(member) as file:
                if np.lib.format.read_magic(file)[0] == 1:
                    header = np.lib.format.read_array_header_1_0(file)
                else:
                    header = np.lib.format.read_array_header_2_0(file)
            if header[2].hasobject:
                raise ValueError(
                    f"{str(path)!r} holds Python objects in {member.removesuffix('.npy')!r}. Save "
                    "arrays of numbers or of text (dtype=str)."
                )
            shapes[member.removesuffix(".npy")] = header[0]
    return shapes


def _columns(path: Path) -> list[tuple[str, str, int | None]]:
    """(column, its array, its place there) of a file: a matrix has a column for each of its own."""
    found: list[tuple[str, str, int | None]] = []
    for name, shape in _shapes(path).items():
        if len(shape) == 1:
            found.append((name, name, None))
        elif len(shape) == 2:
            found += [(f"{name}_{i}", name, i) for i in range(shape[1])]
    return found


def _names(path: Path) -> list[str]:
    return [column for column, _, _ in _columns(path)]


def _read(path: Path, columns: list[str]) -> Any:
    import pandas as pd

    places = {column: (array, i) for column, array, i in _columns(path)}
    with _as_errors(path), np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in {places[column][0] for column in columns}}
    lengths = {name: len(array) for name, array in sorted(arrays.items())}
    if len(set(lengths.values())) > 1:
        raise ValueError(
            f"the arrays of {str(path)!r} differ in their number of rows: {lengths}. Save arrays "
            "that share their first axis, or name the columns to read."
        )
    found = {}
    for column in columns:
        array, i = places[column]
        found[column] = arrays[array] if i is None else arrays[array][:, i]
    return pd.DataFrame(found)


NPZ = Format("npz", (".npz",), _names, _read)
