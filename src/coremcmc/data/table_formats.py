"""The file formats of tables: which columns a file has, and how some of them are read.

Every reader says in one line what is wrong with a file, and what to do.
"""

import csv
import gzip
import os
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = ["FORMATS", "Format", "format_of"]

_CUT_SHORT = "is cut short: it ends too early. Copy or write it again."
_BLOCK_BYTES = 1 << 20


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


def format_of(path: Path) -> Format:
    """Choose by the end of the name; a file without content is of no format."""
    lowered = path.name.lower()
    for form in FORMATS:
        if lowered.endswith(form.suffixes):
            if path.stat().st_size == 0:
                raise ValueError(f"{str(path)!r} is empty (0 bytes). Write it again.")
            return form
    known = ", ".join(suffix for form in FORMATS for suffix in form.suffixes)
    raise ValueError(
        f"{str(path)!r} has a suffix that is not known. Tables are read from files that end in "
        f"{known}."
    )


def _first_bytes(path: Path, count: int) -> bytes:
    with path.open("rb") as file:
        return file.read(count)


# -- CSV ------------------------------------------------------------------------------------------

# What pandas takes for a missing value too.
_MISSING = ["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-nan", "NULL", "null", "None", "<NA>"]


@contextmanager
def _csv_errors(path: Path) -> Iterator[None]:
    """Turn what reading text may raise into one line."""
    import pyarrow as pa

    try:
        yield
    except UnicodeDecodeError:
        raise ValueError(f"{str(path)!r} is not text in UTF-8. Save it as CSV in UTF-8.") from None
    except (EOFError, OSError) as error:
        if isinstance(error, FileNotFoundError | PermissionError):
            raise
        is_cut = isinstance(error, EOFError) or "Truncated" in str(error)
        reason = _CUT_SHORT if is_cut else "is not a gzip file, whatever its name. Rename it."
        raise ValueError(f"{str(path)!r} {reason}") from None
    except (pa.ArrowInvalid, csv.Error) as error:
        reason = " ".join(str(error).split()).removeprefix("CSV parse error: ")[:200]
        raise ValueError(
            f"{str(path)!r} does not parse as CSV: {reason}. Mend that line, or quote fields that "
            "hold commas."
        ) from None


def _open_text(path: Path) -> Any:
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _csv_names(path: Path) -> list[str]:
    if _first_bytes(path, 4) in (b"PAR1", b"ARRO", b"PK\x03\x04"):
        raise ValueError(f"{str(path)!r} is not a CSV file, whatever its name. Rename it.")
    with _csv_errors(path), _open_text(path) as file:
        header = next(csv.reader(file), [])
    if len(header) == 1 and any(mark in header[0] for mark in ";\t|"):
        raise ValueError(
            f"{str(path)!r} is not separated by commas: its first line is {header[0][:60]!r}. "
            "Write it with commas."
        )
    # A column without a name is a row number that someone wrote along.
    names = [name for name in header if name.strip()]
    if not names:
        raise ValueError(f"{str(path)!r} has no column names in its first line. Write them there.")
    return names


def _read_csv(path: Path, columns: list[str]) -> Any:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    _require_whole_end(path)
    with _csv_errors(path):
        table = arrow_csv.read_csv(
            path,
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=columns, null_values=_MISSING, strings_can_be_null=True
            ),
        )
    for name in columns:
        kind = table.schema.field(name).type
        if pa.types.is_binary(kind):
            raise ValueError(f"{str(path)!r} is not text in UTF-8. Save it as CSV in UTF-8.")
        if pa.types.is_string(kind):
            _require_text(path, name, table[name])
    return table


def _require_whole_end(path: Path) -> None:
    """Refuse a file that ends within a line; gzip itself tells when it is cut short."""
    if path.name.lower().endswith(".gz"):
        return
    with path.open("rb") as file:
        quotes = sum(block.count(b'"') for block in iter(lambda: file.read(_BLOCK_BYTES), b""))
        if quotes % 2:
            raise ValueError(f"{str(path)!r} {_CUT_SHORT} (a quotation is left open)")
        file.seek(max(0, file.tell() - _BLOCK_BYTES))
        tail = file.read().decode("utf-8", errors="replace")
    lines = [line for line in tail.splitlines() if line.strip()]
    if tail.endswith("\n") or len(lines) < 2 or '"' in lines[-1] + lines[-2]:
        return
    if lines[-1].count(",") < lines[-2].count(","):
        raise ValueError(f"{str(path)!r} {_CUT_SHORT} (its last line lacks fields)")


def _require_text(path: Path, name: str, column: Any) -> None:
    """Refuse a column of numbers in which some text stands; a few numbers among text are text."""
    import pandas as pd

    values = column.to_pandas()
    present = values[values.notna()]
    is_number = pd.to_numeric(present, errors="coerce").notna()
    if is_number.mean() > 0.5 and not is_number.all():
        text = present[~is_number]
        raise ValueError(
            f"column {name!r} of {str(path)!r} mixes numbers and text: {text.iloc[0]!r} at row "
            f"{text.index[0]:,} ({len(text):,} such rows). Leave fields without a value empty and "
            "correct the others; or, if they are labels, read the file with pandas and dtype=str."
        )


# -- Parquet and Arrow ----------------------------------------------------------------------------

_INDEX = re.compile(r"__index_level_\d+__")


@contextmanager
def _arrow_errors(path: Path, name: str, magic: bytes) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError | PermissionError):
            raise
        if _first_bytes(path, len(magic)) != magic:
            raise ValueError(
                f"{str(path)!r} is not {name} file, whatever its name. Rename it."
            ) from None
        with path.open("rb") as file:
            file.seek(-len(magic), os.SEEK_END)
            whole = file.read() == magic
        reason = " ".join(str(error).split())
        reason = f"cannot be read: {reason[:200]}. Write it again." if whole else _CUT_SHORT
        raise ValueError(f"{str(path)!r} {reason}") from None


def _parquet_names(path: Path) -> list[str]:
    import pyarrow.parquet as pq

    with _arrow_errors(path, "a Parquet", b"PAR1"):
        return [name for name in pq.read_schema(path).names if not _INDEX.fullmatch(name)]


def _read_parquet(path: Path, columns: list[str]) -> Any:
    import pyarrow.parquet as pq

    with _arrow_errors(path, "a Parquet", b"PAR1"), pq.ParquetFile(path) as file:
        return _plain(file.read(columns=columns).select(columns))


def _open_arrow(path: Path) -> Any:
    import pyarrow as pa

    source = pa.memory_map(str(path))
    if _first_bytes(path, 4) == b"\xff\xff\xff\xff":  # the streaming form has no magic
        return pa.ipc.open_stream(source)
    return pa.ipc.open_file(source)


def _arrow_names(path: Path) -> list[str]:
    with _arrow_errors(path, "an Arrow", b"ARROW1"):
        return [name for name in _open_arrow(path).schema.names if not _INDEX.fullmatch(name)]


def _read_arrow(path: Path, columns: list[str]) -> Any:
    with _arrow_errors(path, "an Arrow", b"ARROW1"):
        return _plain(_open_arrow(path).read_all().select(columns))


def _plain(table: Any) -> Any:
    """Without what pandas would make an index of, and decimals as floats."""
    import pyarrow as pa

    for i, entry in enumerate(table.schema):
        if pa.types.is_decimal(entry.type):
            table = table.set_column(i, entry.name, table.column(i).cast(pa.float64()))
    return table.replace_schema_metadata(None)


# -- npz ------------------------------------------------------------------------------------------


@contextmanager
def _npz_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        if isinstance(error, FileNotFoundError | PermissionError):
            raise
        if _first_bytes(path, 2) == b"PK":
            raise ValueError(f"{str(path)!r} {_CUT_SHORT}") from None
        raise ValueError(f"{str(path)!r} is not an npz file, whatever its name.") from None


def _npz_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Shapes of the arrays, from their headers."""
    shapes = {}
    with _npz_errors(path), zipfile.ZipFile(path) as archive:
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


def _npz_columns(path: Path) -> list[tuple[str, str, int | None]]:
    """(column, its array, its place there) of a file: a matrix has a column for each of its own."""
    found: list[tuple[str, str, int | None]] = []
    for name, shape in _npz_shapes(path).items():
        if len(shape) == 1:
            found.append((name, name, None))
        elif len(shape) == 2:
            found += [(f"{name}_{i}", name, i) for i in range(shape[1])]
    return found


def _npz_names(path: Path) -> list[str]:
    return [column for column, _, _ in _npz_columns(path)]


def _read_npz(path: Path, columns: list[str]) -> Any:
    import pandas as pd

    places = {column: (array, i) for column, array, i in _npz_columns(path)}
    with _npz_errors(path), np.load(path, allow_pickle=False) as file:
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


FORMATS = (
    Format("CSV", (".csv", ".csv.gz"), _csv_names, _read_csv),
    Format("Parquet", (".parquet", ".pq"), _parquet_names, _read_parquet),
    Format("Arrow", (".arrow", ".feather", ".ipc"), _arrow_names, _read_arrow),
    Format("npz", (".npz",), _npz_names, _read_npz),
)
"""What tables are read from."""
