"""Parquet, Arrow and Feather: which columns a file has, its rows, and what is wrong with it."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from coremcmc.data.format import CUT_SHORT, Format, first_bytes

__all__ = ["ARROW", "PARQUET"]

_INDEX = re.compile(r"__index_level_\d+__")


@contextmanager
def _as_errors(path: Path, name: str, magic: bytes) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError | PermissionError):
            raise
        if first_bytes(path, len(magic)) != magic:
            raise ValueError(
                f"{str(path)!r} is not {name} file, whatever its name. Rename it."
            ) from None
        with path.open("rb") as file:
            file.seek(-len(magic), os.SEEK_END)
            whole = file.read() == magic
        reason = " ".join(str(error).split())
        reason = f"cannot be read: {reason[:200]}. Write it again." if whole else CUT_SHORT
        raise ValueError(f"{str(path)!r} {reason}") from None


def _parquet_names(path: Path) -> list[str]:
    import pyarrow.parquet as pq

    with _as_errors(path, "a Parquet", b"PAR1"):
        return [name for name in pq.read_schema(path).names if not _INDEX.fullmatch(name)]


def _read_parquet(path: Path, columns: list[str]) -> Any:
    import pyarrow.parquet as pq

    with _as_errors(path, "a Parquet", b"PAR1"), pq.ParquetFile(path) as file:
        return _plain(file.read(columns=columns).select(columns))


def _open_arrow(path: Path) -> Any:
    import pyarrow as pa

    source = pa.memory_map(str(path))
    if first_bytes(path, 4) == b"\xff\xff\xff\xff":  # the streaming form has no magic
        return pa.ipc.open_stream(source)
    return pa.ipc.open_file(source)


def _arrow_names(path: Path) -> list[str]:
    with _as_errors(path, "an Arrow", b"ARROW1"):
        return [name for name in _open_arrow(path).schema.names if not _INDEX.fullmatch(name)]


def _read_arrow(path: Path, columns: list[str]) -> Any:
    with _as_errors(path, "an Arrow", b"ARROW1"):
        return _plain(_open_arrow(path).read_all().select(columns))


def _plain(table: Any) -> Any:
    """Without what pandas would make an index of, and decimals as floats."""
    import pyarrow as pa

    for i, entry in enumerate(table.schema):
        if pa.types.is_decimal(entry.type):
            table = table.set_column(i, entry.name, table.column(i).cast(pa.float64()))
    return table.replace_schema_metadata(None)


PARQUET = Format("Parquet", (".parquet", ".pq"), _parquet_names, _read_parquet)
ARROW = Format("Arrow", (".arrow", ".feather", ".ipc"), _arrow_names, _read_arrow)
