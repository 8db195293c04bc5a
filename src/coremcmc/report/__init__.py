"""The report of a fit: one HTML file that needs no network, no script and no other file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["render", "write_report"]


def write_report(
    fit: Any,
    path: str | Path,
    *,
    title: str | None = None,
    coreset_table: Any = None,
    extra: Mapping[str, Any] | None = None,
) -> Path:
    """Write the report of a fit to an HTML file, whole or not at all.

    Parameters
    ----------
    fit
        A :class:`coremcmc.Fit`.
    path
        The file, which is replaced where it exists.
    title
        The heading; the model's name by default.
    coreset_table
        A DataFrame with a row for each of the coreset's, in their order, as
        ``fit.coreset.to_pandas(table)`` makes it: the heaviest rows are shown with its columns.
        The model's own columns by default.
    extra
        Further facts about the run, by name: the file, the formula, the command.

    Returns
    -------
    The path.
    """
    from coremcmc.files import check_writable, replacing

    path = Path(path)
    check_writable(path, "path")
    text = render(fit, title=title, coreset_table=coreset_table, extra=extra)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="replace")
    return path


def render(
    fit: Any,
    *,
    title: str | None = None,
    coreset_table: Any = None,
    extra: Mapping[str, Any] | None = None,
) -> str:
    """Return the report as text; see :func:`write_report`."""
    from coremcmc.report.page import render_page

    return render_page(fit, title, coreset_table, extra)
