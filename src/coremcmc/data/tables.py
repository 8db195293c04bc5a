"""Tables from files: CSV, Parquet, Arrow and npz, one file, a folder of them, or a glob.

Rows are numbered from 0 in the order of the file. Files of a folder or glob follow one another in
the order of their sorted paths, so that a row's number means the same row in every process.
"""

import difflib
import glob
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coremcmc.data.arrow import ARROW, PARQUET
from coremcmc.data.csv import CSV
from coremcmc.data.format import Format
from coremcmc.data.npz import NPZ

if TYPE_CHECKING:
    import pandas

__all__ = ["FORMATS", "close_matches", "read_table", "table_columns", "table_files"]

FORMATS = (CSV, PARQUET, ARROW, NPZ)
"""What tables are read from."""


def read_table(
    source: str | os.PathLike, columns: Sequence[str] | None = None
) -> "pandas.DataFrame":
    """Read a table, or some of its columns.

    Parameters
    ----------
    source
        A file, a folder (the files in it and below, hidden ones and those that begin with ``_``
        passed over), or a glob such as ``"parts/*.parquet"``. CSV (``.csv``, ``.csv.gz``),
        Parquet (``.parquet``), Arrow or Feather (``.arrow``, ``.feather``) and NumPy (``.npz``:
        an array a column; the columns of a matrix ``x`` are ``x_0``, ``x_1``, …).
    columns
        The columns to read; the others are left on the disk. All by default.

    Returns
    -------
    The rows, numbered from 0 in the order of the file; files of a folder or glob in the order of
    their sorted paths.

    Raises
    ------
    ValueError
        In one line: where there is no such file, or it is empty, cut short, or of another format;
        where a column is not there, twice there, or mixes numbers and text; where the files of a
        folder disagree.
    """
    if isinstance(columns, str):
        raise ValueError(f"columns must be a list of names, not the text {columns!r}.")
    files = table_files(source)
    form = _one_format(source, files)
    try:
        names = _common_names(files, form, None if columns is None else list(columns))
        parts = [form.read(path, names) for path in files]
    except PermissionError as error:
        raise ValueError(f"{error.filename!r} may not be read: permission denied.") from None
    table = _join(files, parts, names)
    if len(table) == 0:
        raise ValueError(f"{str(source)!r} has columns but no rows.")
    return table


def table_columns(source: str | os.PathLike) -> list[str]:
    """Return the names of a table's columns, without reading its rows."""
    files = table_files(source)
    return _common_names(files[:1], _one_format(source, files), None)


def table_files(source: str | os.PathLike) -> list[Path]:
    """Return the files that a path, a folder or a glob names, sorted."""
    path = Path(source)
    if path.is_file():
        return [path]
    if path.is_dir():
        files = _below(path)
        if not files:
            raise ValueError(f"the folder {str(path)!r} holds no files. Name another.")
        return files
    if glob.has_magic(str(source)):
        found = [Path(name) for name in glob.glob(str(source), recursive=True)]
        files = sorted({f for p in found for f in (_below(p) if p.is_dir() else [p])})
        if not files:
            raise ValueError(
                f"no file matches {str(source)!r}. Check the pattern; a relative one begins in "
                f"{os.getcwd()!r}."
            )
        return files
    siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
    hint = close_matches(path.name, siblings) or " Check the path."
    raise ValueError(f"there is no file or folder {str(source)!r}.{hint}")


def _below(folder: Path) -> list[Path]:
    """Files in a folder and its folders; hidden ones and markers such as _SUCCESS are none."""
    found = (p for p in folder.rglob("*") if p.is_file())
    return sorted(
        p
        for p in found
        if not any(part.startswith((".", "_")) for part in p.relative_to(folder).parts)
    )


def close_matches(name: str, known: Iterable[str]) -> str:
    """Return a sentence with the names nearest to one that is not known, or nothing."""
    close = difflib.get_close_matches(name, list(known), n=3, cutoff=0.6)
    return f" Did you mean {' or '.join(map(repr, close))}?" if close else ""


def _format_of(path: Path) -> Format:
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


def _one_format(source: str | os.PathLike, files: list[Path]) -> Format:
    """Refuse files of several formats."""
    forms = {form.name: form for form in map(_format_of, files)}
    if len(forms) > 1:
        raise ValueError(
            f"{str(source)!r} holds files of several formats: {', '.join(sorted(forms))}. Name one "
            f"of them by a glob, such as '*{next(iter(forms.values())).suffixes[0]}'."
        )
    return next(iter(forms.values()))


def _common_names(files: list[Path], form: Format, wanted: list[str] | None) -> list[str]:
    """Return the columns to read, after a look at every file's own."""
    first: list[str] = []
    for path in files:
        names = form.names(path)
        twice = [name for name, count in Counter(names).items() if count > 1]
        if wanted is not None:
            twice = [name for name in twice if name in wanted]
        if twice:
            raise ValueError(
                f"{str(path)!r} has more than one column of the name {twice[0]!r}. Rename one of "
                "them."
            )
        if wanted is None and first and set(names) != set(first):
            differing = sorted(set(names) ^ set(first))
            raise ValueError(
                f"{str(path)!r} and {str(files[0])!r} differ in their columns: {differing[0]!r} is "
                "in one of them only. Name files with the same columns, or the columns to read."
            )
        for name in wanted or []:
            if name not in names:
                hint = close_matches(name, names) or f" Its columns: {_listed(names)}."
                raise ValueError(f"{str(path)!r} has no column {name!r}.{hint}")
        first = first or names
    if not first:
        raise ValueError(f"{str(files[0])!r} has no columns.")
    return list(dict.fromkeys(wanted)) if wanted is not None else first


def _listed(names: list[str]) -> str:
    return ", ".join(names[:12]) + (", …" if len(names) > 12 else "")


def _join(files: list[Path], parts: list[Any], names: list[str]) -> "pandas.DataFrame":
    """Put the files' rows one after the other."""
    import pandas as pd

    if len(parts) > 1:
        for name in names:
            _require_same_kind(files, parts, name)
    if isinstance(parts[0], pd.DataFrame):
        filled = [part for part in parts if len(part)] or parts[:1]  # no rows, no types
        return filled[0] if len(filled) == 1 else pd.concat(filled, ignore_index=True)
    import pyarrow as pa

    whole = pa.concat_tables(parts, promote_options="permissive")
    parts.clear()
    # Column by column, freeing what is done: about one copy at the peak.
    return whole.to_pandas(
        split_blocks=True, self_destruct=True, ignore_metadata=True, date_as_object=False
    )


def _require_same_kind(files: list[Path], parts: list[Any], name: str) -> None:
    """Refuse a column that is numbers in one file and text in another."""
    first: tuple[Path, str] | None = None
    for path, part in zip(files, parts, strict=True):
        kind = _kind(part, name)
        if kind and first and kind != first[1]:
            raise ValueError(
                f"column {name!r} mixes types: {first[1]} in {str(first[0])!r}, {kind} in "
                f"{str(path)!r}. Give it one type in all files."
            )
        if kind and first is None:
            first = path, kind


def _kind(part: Any, name: str) -> str | None:
    """What a column holds; None where it holds nothing."""
    import pandas as pd

    if isinstance(part, pd.DataFrame):
        column = part[name]
        if column.isna().all():
            return None
        if pd.api.types.infer_dtype(column, skipna=True) == "boolean":
            return "booleans"
        kinds = {"i": "numbers", "u": "numbers", "f": "numbers", "M": "times"}
        return kinds.get(column.dtype.kind, "text")
    import pyarrow as pa

    kind = part.schema.field(name).type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_null(kind):
        return None
    if pa.types.is_boolean(kind):
        return "booleans"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return "numbers"
    return "times" if pa.types.is_temporal(kind) else "text"
