"""Files: one format for checkpoints and finished fits, written whole or not at all."""

import contextlib
import json
import os
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

__all__ = [
    "check_writable",
    "pack_tree",
    "prefixed",
    "read_archive",
    "replacing",
    "unpack_tree",
    "unprefixed",
    "write_archive",
]

FORMAT = "coremcmc-2"
_META = "meta.json"


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


def write_archive(path: Path, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write arrays and plain values, whole or not at all."""
    text = json.dumps({"format": FORMAT, **meta}, indent=1)
    encoded = np.frombuffer(text.encode(), dtype=np.uint8)
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **{_META: encoded, **arrays})  # type: ignore[arg-type]


def read_archive(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read what :func:`write_archive` wrote; say so where it is something else or damaged."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}.")
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        meta = json.loads(arrays.pop(_META).tobytes())
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is not a coremcmc file, or is damaged ({error}).") from None
    if meta.get("format") != FORMAT:
        raise ValueError(
            f"{path} has the format {meta.get('format')!r}; this version reads {FORMAT!r}. Use the "
            "version that wrote it, or make it again."
        )
    return meta, arrays


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


def pack_tree(prefix: str, tree: Any) -> dict[str, np.ndarray]:
    """Turn a pytree of arrays into named arrays."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {f"{prefix}{jax.tree_util.keystr(path)}": np.asarray(leaf) for path, leaf in leaves}


def unpack_tree(prefix: str, arrays: dict[str, np.ndarray], like: Any) -> Any:
    """Turn named arrays back into a pytree of the structure, shapes and dtypes of ``like``."""

    def find(path, leaf):
        name = f"{prefix}{jax.tree_util.keystr(path)}"
        found = arrays.get(name)
        if found is None or found.shape != leaf.shape or found.dtype != leaf.dtype:
            what = "is missing" if found is None else f"has shape {found.shape}, {found.dtype}"
            raise ValueError(f"{name} {what}; expected shape {leaf.shape}, {leaf.dtype}.")
        return found

    return jax.tree_util.tree_map_with_path(find, like)


def prefixed(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Put a prefix and a slash before each name."""
    return {f"{prefix}/{name}": array for name, array in arrays.items()}


def unprefixed(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return what has the prefix, without it."""
    start = f"{prefix}/"
    return {name[len(start) :]: x for name, x in arrays.items() if name.startswith(start)}
