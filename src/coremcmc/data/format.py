"""What every reader of files needs: the first bytes, and what is said of half a file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["CUT_SHORT", "Format", "first_bytes"]

CUT_SHORT = "is cut short: it ends too early. Copy or write it again."


class Format(NamedTuple):
    """How one kind of file is read.

    Attributes
    ----------
    name
        For messages.
    suffixes
        Ends of file names.
    names
        ``names(path)``: all columns, in order, duplicates included.
    read
        ``read(path, columns)``: a pandas or Arrow table of these columns.
    """

    name: str
    suffixes: tuple[str, ...]
    names: Callable[[Path], list[str]]
    read: Callable[[Path, list[str]], Any]


def first_bytes(path: Path, count: int) -> bytes:
    """Return how a file begins, which tells its format whatever its name."""
    with path.open("rb") as file:
        return file.read(count)
