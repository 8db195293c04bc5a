"""Compiled programs are kept between sessions: a first fit compiles for several seconds."""

import contextlib
import hashlib
import os
import platform
import sys
from pathlib import Path

__all__ = ["keep_compiled_programs"]

_MOST_BYTES = 500_000_000
_FOLDER = "jax_compilation_cache_dir"
_KEEP_ALL = {
    "jax_persistent_cache_min_compile_time_secs": 0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}


def keep_compiled_programs() -> Path | None:
    """Keep compiled programs in your cache folder, so that later sessions need not compile anew.

    A first fit spends several seconds on compilation; with its programs kept, one or two. The
    command ``coremcmc`` does this by itself. ``JAX_COMPILATION_CACHE_DIR`` names another folder,
    ``JAX_ENABLE_COMPILATION_CACHE=0`` turns it off.

    Returns
    -------
    The folder, or None where nothing can be written.
    """
    is_loaded = "jax" in sys.modules
    chosen = os.environ.get(_FOLDER.upper())
    if is_loaded:
        import jax

        chosen = jax.config.values[_FOLDER] or chosen
    if chosen:
        return Path(chosen)
    home = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    folder = Path(home) / "coremcmc" / f"jax-{_machine()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            return None
        _prune(folder)
    except (OSError, RuntimeError):  # no home, a full disk, a file in the way
        return None
    settings = {_FOLDER: str(folder), **_KEEP_ALL}
    if is_loaded:
        from jax.experimental.compilation_cache import compilation_cache

        for name, value in settings.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()  # it may have been asked already, and found none
    else:  # JAX reads these when it starts; starting it now would take most of a second
        for name, value in settings.items():
            os.environ.setdefault(name.upper(), str(value))
    return folder


def _machine() -> str:
    """Name the kind of processor: a home folder may be shared by several."""
    described = f"{platform.machine()} {platform.processor()}"
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        described += next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return hashlib.blake2b(described.encode(), digest_size=4).hexdigest()


def _prune(folder: Path, most_bytes: int = _MOST_BYTES) -> None:
    """Remove the oldest half once the folder has grown large."""
    found = sorted((p.stat().st_mtime, p.stat().st_size, p) for p in folder.iterdir())
    left = sum(size for _, size, _ in found)
    if left <= most_bytes:
        return
    for _, size, path in found:
        if left <= most_bytes // 2:
            return
        path.unlink(missing_ok=True)
        left -= size
