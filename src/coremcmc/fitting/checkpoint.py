"""Checkpoints: their file format, what a resumed run needs, and whether it is the same run."""

import importlib.metadata
import json
import zipfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coremcmc.base import DataSource, Model
from coremcmc.files import replacing
from coremcmc.gradient.control_variate import ControlVariate
from coremcmc.pytrees import pack_tree, prepared, unpack_tree
from coremcmc.version import __version__

__all__ = [
    "check_same_problem",
    "prefixed",
    "read_archive",
    "read_control",
    "unprefixed",
    "versions",
    "write_archive",
    "write_control",
]

FORMAT = "coremcmc-2"
_META = "meta.json"
_CONTROL_PREFIX, _REVISED_AT = "control", "revised_at"


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


def prefixed(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Put a prefix and a slash before each name."""
    return {f"{prefix}/{name}": array for name, array in arrays.items()}


def unprefixed(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return what has the prefix, without it."""
    start = f"{prefix}/"
    return {name[len(start) :]: x for name, x in arrays.items() if name.startswith(start)}


def write_control(control: ControlVariate | None, revised_at: int) -> dict[str, np.ndarray]:
    """Return what a resumed run needs of a control variate that was revised, else nothing."""
    if control is None or revised_at < 0:
        return {}
    kept = jax.tree.map(np.asarray, control._replace(exact_rows=()))
    number = {_CONTROL_PREFIX + _REVISED_AT: np.asarray(revised_at)}
    return {**pack_tree(_CONTROL_PREFIX, kept), **number}


def read_control(
    state: dict[str, np.ndarray], control: ControlVariate | None, model: Model, data: DataSource
) -> tuple[ControlVariate | None, int]:
    """Return the control variate of a checkpoint and the iteration of its revision, or −1."""
    if control is None or _CONTROL_PREFIX + _REVISED_AT not in state:
        return control, -1
    kept = jax.tree.map(np.asarray, control._replace(exact_rows=()))
    found = unpack_tree(_CONTROL_PREFIX, state, kept)
    exact = prepared(model, data.take(found.exact_indices))
    found = jax.tree.map(jnp.asarray, found)._replace(exact_rows=exact)
    return found, int(state[_CONTROL_PREFIX + _REVISED_AT])


def check_same_problem(
    saved: dict[str, Any],
    current: dict[str, Any],
    saved_rows: np.ndarray,
    rows: np.ndarray,
    iteration: int,
) -> None:
    """Compare everything that shapes the result, but the number of iterations and versions.

    ``saved`` and ``current`` are configs of fits, with the indices of their coresets' rows;
    ``iteration`` is where the saved one stands.
    """
    different = []
    for key in ("model", "data", "coreset_size", "seed", "initial_positions"):
        if saved[key] != current[key]:
            different.append(f"{key}: {saved[key]} there, {current[key]} here")
    for key, value in current["settings"].items():
        there = saved["settings"].get(key, value)  # older versions had fewer
        if key != "num_iterations" and there != value:
            different.append(f"{key}: {there} there, {value} here")
    if not different and not np.array_equal(saved_rows, rows):
        different.append("selection: other rows there")
    if different:
        raise ValueError(
            f"checkpoint belongs to another problem ({'; '.join(different)}). Name another file, "
            "or restore those arguments."
        )
    if iteration > current["settings"]["num_iterations"]:
        raise ValueError(
            f"checkpoint is at iteration {iteration:,}, beyond num_iterations = "
            f"{current['settings']['num_iterations']:,}. Raise num_iterations, or load it with "
            "Fit.load."
        )


def versions() -> dict[str, str]:
    """Return the versions that a result depends on."""
    others = {name: importlib.metadata.version(name) for name in ("jax", "optax", "numpy")}
    return {"coremcmc": __version__, **others}
