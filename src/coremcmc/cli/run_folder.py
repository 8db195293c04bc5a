"""The folder of a run: what it holds, written whole or not at all, overwritten only when told.

==================  =============================================================================
config.json         what was asked for, the data's path and fingerprint, versions
checkpoint.npz      the state of the run, saved every 30 seconds; the finished fit at the end
coreset.parquet     the coreset: row number, weight, and the user's own columns
posterior.nc        the posterior as ArviZ reads it
report.html         the report
==================  =============================================================================
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from coremcmc.files import replacing
from coremcmc.fitting.result import Fit

__all__ = ["RunFolder", "fingerprint_of_files"]

FORMAT = "coremcmc-run-2"
_RESULTS = ("coreset", "posterior", "report")
_FINISHED = ("finished", "settled")
_CHUNK = 1 << 16
_CHUNKS = 64  # of a file, evenly spaced, make its fingerprint


class RunFolder:
    """The folder of a run, its files by name.

    Parameters
    ----------
    path
        The folder. :meth:`create` makes it; :meth:`open` asks that it be one.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = Path(path)
        self.config = self.path / "config.json"
        self.checkpoint = self.path / "checkpoint.npz"
        self.coreset = self.path / "coreset.parquet"
        self.posterior = self.path / "posterior.nc"
        self.report = self.path / "report.html"

    def __str__(self) -> str:
        return str(self.path)

    @classmethod
    def open(cls, path: str | os.PathLike) -> "RunFolder":
        """Take a folder that a run has been made in."""
        folder = cls(path)
        if not folder.config.is_file():
            what = "holds no run" if folder.path.is_dir() else "does not exist"
            raise ValueError(
                f"{folder} {what} (no config.json). Make one: coremcmc fit DATA --out {folder}"
            )
        return folder

    def check_free(self, overwrite: bool) -> None:
        """Raise where a new run would overwrite something without leave; nothing is written."""
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise ValueError(f"--out {self} is a file; name a folder.")
        if self.config.exists():
            if not overwrite:
                raise ValueError(
                    f"--out {self} holds a run already. Go on with it (coremcmc resume {self}), "
                    "name another folder, or pass --overwrite to replace it."
                )
        elif any(self.path.iterdir()):
            raise ValueError(
                f"--out {self} exists, is not empty and holds no run. Name a new folder."
            )

    def create(self, config: dict[str, Any]) -> None:
        """Make the folder, take the results of an earlier run out of it, and write the config.

        Files that no run writes stay where they are.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        self.write_config(config)
        for path in [*self.checkpoints(), *(getattr(self, name) for name in _RESULTS)]:
            path.unlink(missing_ok=True)

    def checkpoints(self) -> list[Path]:
        """The checkpoint, and those of the sizes that ``--coreset-size auto`` goes through."""
        return sorted(self.path.glob("checkpoint*.npz"))

    def checkpoint_of_size(self, size: int) -> Path:
        """The checkpoint of one of the sizes of ``--coreset-size auto``."""
        return self.path / f"checkpoint-{size}.npz"

    def remove_other_checkpoints(self) -> None:
        """Remove those of the sizes that were tried."""
        for path in self.checkpoints():
            if path != self.checkpoint:
                path.unlink()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from writing to the run; the lock ends with the process."""
        try:
            import fcntl
        except ImportError:  # Windows
            yield
            return
        with (self.path / ".lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ValueError(
                    f"{self} is being written by another coremcmc process. Wait for it, or stop it."
                ) from None
            yield

    # -- files --------------------------------------------------------------------------------

    def write_config(self, config: dict[str, Any]) -> None:
        """Write config.json."""
        with replacing(self.config) as temporary:
            temporary.write_text(json.dumps({"format": FORMAT, **config}, indent=1) + "\n")

    def read_config(self) -> dict[str, Any]:
        """Read config.json."""
        try:
            config = json.loads(self.config.read_text())
        except (OSError, ValueError) as error:
            raise ValueError(
                f"{self.config} cannot be read ({error}). Make the run anew."
            ) from None
        if not isinstance(config, dict) or config.get("format") != FORMAT:
            found = config.get("format") if isinstance(config, dict) else None
            raise ValueError(
                f"{self.config} has the format {found!r}; this version reads {FORMAT!r}. Use the "
                "version that wrote it, or make the run anew (--overwrite)."
            )
        return config

    def load_fit(self) -> Fit:
        """Read the checkpoint, finished or not."""
        if not self.checkpoint.exists():
            raise ValueError(
                f"{self} has no checkpoint yet: the run was stopped before its first. Begin it "
                f"again: coremcmc resume {self}"
            )
        return Fit.load(self.checkpoint)

    def load_finished(self) -> Fit:
        """Read the fit, which must have been trained to its end."""
        fit = self.load_fit()
        if fit.stopped not in _FINISHED:
            raise ValueError(
                f"{self} is not finished ({fit.stopped}, iteration {fit.iteration:,}). Go on with "
                f"it first: coremcmc resume {self}"
            )
        return fit

    def is_finished(self) -> bool:
        """Whether there is nothing left to do: trained, and all results written."""
        if not all(getattr(self, name).exists() for name in ("checkpoint", *_RESULTS)):
            return False
        return self.load_fit().stopped in _FINISHED

    def write_results(self, fit: Fit, table: Any, title: str | None = None) -> None:
        """Write the coreset with the rows of ``table``, the posterior and the report."""
        self.write_coreset(fit, table)
        self.write_posterior(fit)
        self.write_report(fit, title)

    def write_coreset(self, fit: Fit, table: Any) -> None:
        """Write coreset.parquet. ``table``'s index holds the row numbers in the user's file."""
        frame = fit.coreset.to_pandas(table)
        if table is not None:
            frame["row"] = table.index.to_numpy()[fit.coreset.indices]
        with replacing(self.coreset) as temporary:
            frame.to_parquet(temporary, index=False)

    def write_posterior(self, fit: Fit) -> None:
        """Write posterior.nc."""
        data = fit.to_arviz()
        # In memory first: on a full disk HDF5 itself fills the terminal and crashes.
        tree = data.to_datatree() if hasattr(data, "to_datatree") else data
        # A copy, as newer versions of xarray hand out a view that crashes Python at its end.
        content = bytes(tree.to_netcdf(engine="h5netcdf"))
        with replacing(self.posterior) as temporary:
            temporary.write_bytes(content)

    def write_report(self, fit: Fit, title: str | None = None) -> None:
        """Write report.html."""
        import pandas

        from coremcmc.report import write_report

        table = pandas.read_parquet(self.coreset) if self.coreset.exists() else None
        write_report(fit, self.report, title=title, coreset_table=table)

    def files(self) -> dict[str, str]:
        """Paths of the results that exist, by name."""
        names = (*_RESULTS, "checkpoint", "config")
        return {name: str(getattr(self, name)) for name in names if getattr(self, name).exists()}


def fingerprint_of_files(paths: list[Path]) -> list[dict[str, Any]]:
    """Name, size and digest of each file; of large files evenly spaced pieces are read."""
    return [
        {"path": str(path), "bytes": path.stat().st_size, "digest": _digest(path)} for path in paths
    ]


def _digest(path: Path) -> str:
    size = path.stat().st_size
    digest = hashlib.blake2b(str(size).encode(), digest_size=16)
    step = max(_CHUNK, size // _CHUNKS)
    with path.open("rb") as file:
        for start in range(0, size, step):
            file.seek(start)
            digest.update(file.read(_CHUNK))
        file.seek(max(0, size - _CHUNK))
        digest.update(file.read(_CHUNK))
    return digest.hexdigest()
