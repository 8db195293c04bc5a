"""Results on disk: one folder a job, Parquet inside, and a record of what is finished.

::

    results/
      study.json              format version and scale of everything below
      linear-1000/            one job: a task and a coreset size
        traces.parquet        the error of every run at the recorded iterations
        runs.parquet          one row a run: how it ended
        gate.parquet          gradient norms and hot-start statistics while the weights are held
        job.json              written last: sizes, digests of the files above, speed, versions
        checkpoint.npz        where to go on; not needed by the figures

Everything is written under another name first and then renamed, so that a power cut leaves the
old or the new, never half of one. ``job.json`` holds the digests of the three tables; a table that
does not match is reported and never read.
"""

import contextlib
import hashlib
import json
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from experiments.errors import StudyError
from experiments.scales import Scale
from experiments.tasks import Task

__all__ = ["FORMAT", "SCHEMAS", "Job", "Store"]

FORMAT = 1

_RUN = [
    pa.field("method", pa.string()),
    pa.field("parameter", pa.float64()),
    pa.field("hot_start", pa.bool_()),
    pa.field("trial", pa.int16()),
]

SCHEMAS = {
    # z2: average squared z-score of the mean over the latter half of the draws so far.
    # Up to iteration 200 in double precision, by which a replay is compared; then in single.
    # evaluations: log potentials ℓ_n(θ) evaluated so far, each row and each θ counting once.
    "traces": pa.schema(
        [
            *_RUN,
            pa.field("iteration", pa.int32()),
            pa.field("z2", pa.float64()),
            pa.field("evaluations", pa.int64()),
            pa.field("gradient_norm", pa.float64()),
        ]
    ),
    # passed_at: iteration of the hot start, 0 without one, -1 if still held.
    # failure: 0, or what coremcmc calls the first failure, at iteration failed_at.
    # mean: of the judged parameters, over the latter half of the draws.
    "runs": pa.schema(
        [
            *_RUN,
            pa.field("z2", pa.float64()),
            pa.field("evaluations", pa.int64()),
            pa.field("passed_at", pa.int32()),
            pa.field("is_forced", pa.bool_()),
            pa.field("failure", pa.int8()),
            pa.field("failed_at", pa.int32()),
            pa.field("weights_sum", pa.float64()),
            pa.field("weights_ess", pa.float64()),
            pa.field("mean", pa.list_(pa.float64())),
        ]
    ),
    # The held phase, which runs of a trial share whatever their method. statistic: of the latest
    # test, infinite before the first; every_statistic: what a test at this very iteration gives
    # (null in results of before it was kept).
    "gate": pa.schema(
        [
            pa.field("trial", pa.int16()),
            pa.field("iteration", pa.int32()),
            pa.field("gradient_norm", pa.float32()),
            pa.field("statistic", pa.float32()),
            pa.field("every_statistic", pa.float32()),
        ]
    ),
}
"""Columns of the three tables."""

_LABELS = ["method", "parameter", "hot_start", "trial", "iteration"]  # few values, often


def _floats(schema: pa.Schema) -> list[str]:
    """Columns of measured numbers, whose bytes compress better place by place."""
    return [f.name for f in schema if pa.types.is_floating(f.type) and f.name not in _LABELS]


_BEFORE_ANY_JOB = {"references", "study.partial"}  # may lie in a folder that has no study.json yet


@dataclass(frozen=True)
class Job:
    """A task and a coreset size: what advances together on the device."""

    task: Task
    coreset_size: int

    @property
    def name(self) -> str:
        """Return the name of its folder."""
        return f"{self.task.name}-{self.coreset_size}"


class Store:
    """A folder of results.

    Parameters
    ----------
    folder
        Made when something is first written.
    scale
        Of the study; a folder holds one scale only.
    """

    def __init__(self, folder: Path, scale: Scale):
        self.folder, self.scale = folder, scale
        header = folder / "study.json"
        if not header.is_file():
            if folder.is_dir() and {path.name for path in folder.iterdir()} - _BEFORE_ANY_JOB:
                raise StudyError(
                    f"--results {folder}: not empty, and not a results folder (no study.json). "
                    "Give a new or empty folder."
                )
            return
        found = _read_json(header) or {}
        if found.get("format") != FORMAT:
            raise StudyError(
                f"--results {folder}: written in format {found.get('format')}, but this version "
                f"reads format {FORMAT}. Give another folder."
            )
        if found.get("scale") != scale.name:
            raise StudyError(
                f"--results {folder}: holds a study of scale {found.get('scale')!r}, not "
                f"{scale.name!r}. Give another folder, or --scale {found.get('scale')}."
            )

    def path(self, job: Job, name: str) -> Path:
        """Return where a file of a job lies."""
        return self.folder / job.name / name

    def facts(self, job: Job) -> dict[str, Any] | None:
        """Return job.json, or None where the job has no results."""
        return _read_json(self.path(job, "job.json"))

    def problem(self, job: Job) -> str | None:
        """Say what is wrong with a job's results, if they exist and something is."""
        path = self.path(job, "job.json")
        if not path.is_file():
            return None
        files = (self.facts(job) or {}).get("files")
        if not isinstance(files, dict) or set(files) != {f"{name}.parquet" for name in SCHEMAS}:
            return f"{path} is corrupt"
        for name, digest in files.items():
            table = self.path(job, name)
            if not table.is_file():
                return f"{table} is missing"
            if _digest(table) != digest:
                return f"{table} is corrupt (its digest differs)"
        return None

    def write(self, job: Job, tables: dict[str, pa.Table], facts: dict[str, Any]) -> None:
        """Store a job's three tables and what is known about it."""
        self._begin(job)
        files = {}
        with self._writing():
            for name, schema in SCHEMAS.items():
                path = self.path(job, f"{name}.parquet")
                table = tables[name].cast(schema)
                partial = path.with_suffix(".partial")
                pq.write_table(
                    table,
                    partial,
                    compression="zstd",
                    compression_level=12,
                    use_dictionary=_LABELS,
                    use_byte_stream_split=_floats(schema),
                )
                _publish(partial, path)
                files[path.name] = _digest(path)
            _write_json(self.path(job, "job.json"), {"format": FORMAT, "files": files, **facts})

    def read(self, job: Job, name: str) -> pa.Table:
        """Read one of a job's tables, having checked its digest."""
        problem = self.problem(job)
        if problem:
            raise StudyError(f"{problem}. Run the job again: python -m experiments run.")
        if not self.path(job, "job.json").is_file():  # nothing vouches for the tables
            raise StudyError(f"{self.folder} has no results of the job {job.name}.")
        return pq.read_table(self.path(job, f"{name}.parquet"), schema=SCHEMAS[name])

    def save_checkpoint(self, job: Job, arrays: dict[str, np.ndarray]) -> None:
        """Keep what a job needs to go on, with checksums."""
        self._begin(job)
        path = self.path(job, "checkpoint.npz")
        partial = path.with_suffix(".partial")
        with self._writing():
            with partial.open("wb") as file:
                np.savez(file, **arrays)
            _publish(partial, path)

    def load_checkpoint(self, job: Job) -> dict[str, np.ndarray] | None:
        """Return what was saved last, or None; a broken file raises StudyError."""
        path = self.path(job, "checkpoint.npz")
        if not path.is_file():
            return None
        try:
            # Reading a member verifies its checksum only if its header asks for all of it.
            with zipfile.ZipFile(path) as archive:
                if broken := archive.testzip():
                    raise ValueError(f"checksum of {broken} differs")
            with np.load(path, allow_pickle=False) as file:
                return {name: file[name] for name in file.files}
        except Exception as error:
            raise StudyError(f"{path} is corrupt ({error})") from None

    def amend(self, job: Job, **facts: Any) -> None:
        """Add to what is known about a job; its tables stay as they are."""
        with self._writing():
            _write_json(self.path(job, "job.json"), (self.facts(job) or {}) | facts)

    def drop_checkpoint(self, job: Job) -> None:
        """Forget where to go on: there is nowhere left to go."""
        self.path(job, "checkpoint.npz").unlink(missing_ok=True)

    def discard(self, job: Job) -> None:
        """Forget a job's results. Its checkpoint has checksums of its own, and stays."""
        for name in ("job.json", *(f"{name}.parquet" for name in SCHEMAS)):
            self.path(job, name).unlink(missing_ok=True)

    def make(self) -> None:
        """Make the folder, and see that it can be written to."""
        with self._writing():
            self.folder.mkdir(parents=True, exist_ok=True)
            content = {"format": FORMAT, "scale": self.scale.name}
            _write_json(self.folder / "study.json", content)

    def _begin(self, job: Job) -> None:
        if not (self.folder / "study.json").is_file():
            self.make()
        with self._writing():
            (self.folder / job.name).mkdir(exist_ok=True)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StudyError(f"--results {self.folder}: cannot write there: {error}") from None


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _write_json(path: Path, content: dict[str, Any]) -> None:
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    _publish(partial, path)


def _publish(partial: Path, path: Path) -> None:
    """Put a finished file in its place, once it is on the disk."""
    with partial.open("rb") as file:
        os.fsync(file.fileno())
    partial.replace(path)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
