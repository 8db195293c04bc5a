"""What the command says: notes, warnings, tables, one JSON object, errors in one line."""

import contextlib
import errno
import json
import math
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import typer

__all__ = [
    "BAD_INPUT",
    "FAILED",
    "GOOD",
    "INTERRUPTED",
    "Output",
    "facts_table",
    "guarded",
    "posterior_table",
    "verdict_text",
    "warnings_shown",
]

GOOD, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
"""Exit codes."""

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_COLOURS = {"good": "green", "usable": "yellow", "poor": "red"}
_PIPE_WIDTH = 400  # of what goes to a file or a program: no line is broken


class Output:
    """Where the command speaks: results to stdout; notes, warnings and errors to stderr.

    Parameters
    ----------
    quiet
        Say nothing but errors.
    as_json
        Put one JSON object on stdout, and nothing else there.
    """

    def __init__(self, *, quiet: bool = False, as_json: bool = False):
        self.quiet, self.as_json = quiet, as_json
        self.warnings: list[str] = []

    @property
    def progress(self) -> bool | None:
        """The progress bar's setting: off, or on a terminal only."""
        return False if self.quiet else None

    def note(self, text: str) -> None:
        """Say what happens now."""
        if not (self.quiet or self.as_json):
            typer.echo(text, err=True)

    def warn(self, text: str) -> None:
        """Say what the user should know, once."""
        text = _one_line(text)
        if text not in self.warnings:
            self.warnings.append(text)
            if not self.quiet:
                typer.echo(f"warning: {text}", err=True)

    def show(self, *renderables: Any) -> None:
        """Print tables and texts of rich."""
        if self.quiet or self.as_json:
            return
        from rich.console import Console

        console = Console(markup=False, highlight=False, soft_wrap=False)
        if not console.is_terminal:
            console.width = _PIPE_WIDTH
        for renderable in renderables:
            console.print(renderable)

    def result(self, values: dict[str, Any]) -> None:
        """Print the one JSON object, where it was asked for."""
        if self.as_json:
            typer.echo(json.dumps(_finite({**values, "warnings": self.warnings}), indent=1))

    def fail(self, message: str, code: int) -> NoReturn:
        """Say in one line what is wrong and what to do, and end the command."""
        message = _one_line(message)
        typer.echo(f"error: {message}", err=True)
        self.result({"error": message, "exit_code": code})
        raise typer.Exit(code)


@contextlib.contextmanager
def guarded(output: Output, resume: str | None = None) -> Iterator[None]:
    """Turn what can go wrong into one line and an exit code.

    ``COREMCMC_TRACEBACK=1`` in the environment shows where it came from. ``resume`` is the command
    that goes on after Ctrl-C.
    """
    from coremcmc.fitting.run import FitError

    if os.environ.get("COREMCMC_TRACEBACK"):
        yield
        return
    try:
        yield
    except KeyboardInterrupt:
        output.fail(f"interrupted.{f' Go on with: {resume}' if resume else ''}", INTERRUPTED)
    except FitError as error:
        output.fail(str(error), FAILED)
    except MemoryError:
        output.fail(
            "there is not enough memory. `coremcmc fit … --dry-run` says how much a fit needs; "
            "name fewer columns in the formula, or give fewer rows.",
            FAILED,
        )
    except OSError as error:
        if error.errno == errno.EPIPE:  # whoever read our output has gone
            raise
        output.fail(_explain(error), BAD_INPUT)
    except (ValueError, ImportError) as error:
        output.fail(str(error), BAD_INPUT)


@contextlib.contextmanager
def warnings_shown(output: Output) -> Iterator[None]:
    """Show the warnings of the package in one line each, and hide those of other packages."""

    def show(message: Any, category: Any, *rest: Any, **others: Any) -> None:
        if issubclass(category, UserWarning):
            output.warn(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


def verdict_text(verdict: Any, without: str) -> Any:
    """The certificate as a coloured line and its reasons; where there is none, why."""
    from rich.text import Text

    if verdict is None:
        return Text(f"verdict: none; {without}", style="bold")
    text = Text("verdict: ", style="bold")
    text.append(verdict.verdict, style=f"bold {_COLOURS.get(verdict.verdict, 'white')}")
    for reason in verdict.reasons:
        text.append(f"\n  {reason}", style="not bold")
    return text


def posterior_table(parameters: list[Any], total: int) -> Any:
    """The posterior's parameters, of which there are ``total``, as a table."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from coremcmc.report.formatting import count, decimals_for, fixed
    from coremcmc.report.parameters import is_worrying

    table = Table(title="posterior", title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    table.add_column("parameter", overflow="fold")
    for name in ("mean", "sd", "5%", "95%", "ESS", "R-hat"):
        table.add_column(name, justify="right", no_wrap=True)
    for parameter in parameters:
        decimals = decimals_for(parameter.sd)
        shown = (parameter.mean, parameter.sd, parameter.low, parameter.high)
        style = "yellow" if is_worrying(parameter) else ""
        table.add_row(
            Text(parameter.name),
            *(fixed(value, decimals) for value in shown),
            Text(count(parameter.ess), style=style),
            Text(fixed(parameter.rhat, 3), style=style),
        )
    if total > len(parameters):
        table.caption = f"… and {total - len(parameters):,} more, in posterior.nc"
    return table


def facts_table(facts: dict[str, Any], title: str | None = None) -> Any:
    """Names and values in two columns."""
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=title, title_justify="left", title_style="bold", show_header=False, box=None
    )
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name, Text(str(value)))
    return table


def _explain(error: OSError) -> str:
    where = f" {error.filename}" if error.filename else ""
    reason = error.strerror or str(error)
    if error.errno in _NO_SPACE:
        return (
            f"cannot write{where}: {reason}. Free some space, or choose another folder; earlier "
            "files are as they were."
        )
    return f"cannot use{where}: {reason}. Check the path and its permissions."


def _one_line(text: str) -> str:
    return " ".join(str(text).split())


def _finite(value: Any) -> Any:
    """Put null in place of NaN and infinities, which JSON lacks."""
    if isinstance(value, dict):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value
