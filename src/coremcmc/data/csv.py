"""CSV: which columns a file has, its rows, and in one line what is wrong with it."""

import csv
import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from coremcmc.data.format import CUT_SHORT, Format, first_bytes

__all__ = ["CSV"]

_BLOCK_BYTES = 1 << 20
# What pandas takes for a missing value too.
_MISSING = ["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-nan", "NULL", "null", "None", "<NA>"]


@contextmanager
def _as_errors(path: Path) -> Iterator[None]:
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
        reason = CUT_SHORT if is_cut else "is not a gzip file, whatever its name. Rename it."
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


def _names(path: Path) -> list[str]:
    if first_bytes(path, 4) in (b"PAR1", b"ARRO", b"PK\x03\x04"):
        raise ValueError(f"{str(path)!r} is not a CSV file, whatever its name. Rename it.")
    with _as_errors(path), _open_text(path) as file:
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


def _read(path: Path, columns: list[str]) -> Any:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    _require_whole_end(path)
    with _as_errors(path):
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
            raise ValueError(f"{str(path)!r} {CUT_SHORT} (a quotation is left open)")
        file.seek(max(0, file.tell() - _BLOCK_BYTES))
        tail = file.read().decode("utf-8", errors="replace")
    lines = [line for line in tail.splitlines() if line.strip()]
    if tail.endswith("\n") or len(lines) < 2 or '"' in lines[-1] + lines[-2]:
        return
    if lines[-1].count(",") < lines[-2].count(","):
        raise ValueError(f"{str(path)!r} {CUT_SHORT} (its last line lacks fields)")


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


CSV = Format("CSV", (".csv", ".csv.gz"), _names, _read)
