"""Files that are written whole or not at all."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["check_writable", "replacing"]


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary neighbour to write to; force it to disk, and rename it into place.

    A power cut, a full disk or an exception at any moment leaves the old file or the new one,
    never half of one.
    """
    temporary = path.with_name(f".{path.name}.part")
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def check_writable(path: Path, argument: str) -> None:
    """Raise at once if a file could not be written there later."""
    folder = path.parent
    if path.is_dir():
        raise ValueError(f"{argument}={str(path)!r} is a folder; name a file in it.")
    if not folder.is_dir():
        raise ValueError(f"{argument}: the folder {str(folder)!r} does not exist; create it first.")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ValueError(
            f"{argument}: cannot write to the folder {str(folder)!r} ({error.strerror}). Choose "
            "another, or change its permissions."
        ) from None
