"""Compiled programs are kept between commands: a first fit compiles for about ten seconds."""

import contextlib
import hashlib
import os
import platform
import sys
from pathlib import Path

__all__ = ["keep_compiled_programs"]

_MOST_BYTES = 500_000_000


def keep_compiled_programs() -> None:
    """Tell JAX, before it starts, to keep its programs in the user's cache folder.

    ``JAX_COMPILATION_CACHE_DIR`` names another folder, ``JAX_ENABLE_COMPILATION_CACHE=0`` turns it
    off. Where nothing can be written, nothing is kept.
    """
    if "jax" in sys.modules or "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    home = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    folder = Path(home) / "coremcmc" / f"jax-{_machine()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            return
        _prune(folder)
    except (OSError, RuntimeError):  # no home, a full disk, a file in the way
        return
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


def _machine() -> str:
    """Name the kind of processor: a home folder may be shared by several."""
    described = f"{platform.machine()} {platform.processor()}"
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        described += next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return hashlib.blake2b(described.encode(), digest_size=4).hexdigest()


def _prune(folder: Path) -> None:
    """Remove the oldest half once the folder has grown large."""
    found = sorted((p.stat().st_mtime, p.stat().st_size, p) for p in folder.iterdir())
    left = sum(size for _, size, _ in found)
    if left <= _MOST_BYTES:
        return
    for _, size, path in found:
        if left <= _MOST_BYTES // 2:
            return
        path.unlink(missing_ok=True)
        left -= size
