"""The progress bar, and the handling of Ctrl-C."""

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

__all__ = ["Interrupt", "PassBar", "ProgressBar", "interrupts"]


class _RateColumn(ProgressColumn):
    """Iterations a second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f}/s")


class ProgressBar:
    """Iterations, rate, time left, hot-start state and statistic, gradient norm.

    Parameters
    ----------
    total
        The number of iterations.
    enabled
        ``None`` shows the bar on a terminal and in a notebook only.
    """

    def __init__(self, total: int, completed: int = 0, enabled: bool | None = None):
        console = Console(file=sys.stderr)
        if enabled is None:
            enabled = console.is_terminal or console.is_jupyter
        self._progress = Progress(
            TextColumn("coreset"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            _RateColumn(),
            TextColumn("{task.fields[state]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not enabled,
        )
        self._task = self._progress.add_task(
            "", total=total, completed=completed, state="compiling"
        )

    def __enter__(self) -> "ProgressBar":
        self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._progress.stop()

    def update(self, iteration: int, is_hot: bool, statistic: float, gradient_norm: float) -> None:
        """Show where the run stands."""
        state = "hot" if is_hot else f"hot start u={statistic:.2g}"
        self._progress.update(
            self._task, completed=iteration, state=f"{state}  |g|={gradient_norm:.2g}"
        )


class PassBar:
    """Rows done in a pass over the data, and which pass it is; vanishes when all are done.

    Call it with the number of rows done; a number no larger than before begins another pass. In a
    file the last state stays, and where there was no pass there is nothing. ``unit`` is what else
    there may be passes of.
    """

    def __init__(
        self, what: str, num_rows: int, enabled: bool | None = None, *, unit: str = "rows"
    ):
        console = Console(file=sys.stderr)
        if enabled is None:
            enabled = console.is_terminal or console.is_jupyter
        self._what, self._num_rows, self._pass, self._done = what, num_rows, 1, 0
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn(unit),
            TimeElapsedColumn(),
            console=console,
            disable=not enabled,
            transient=console.is_terminal or console.is_jupyter,
        )

    def __enter__(self) -> "PassBar":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._progress.tasks:
            self._progress.stop()

    def __call__(self, rows_done: int) -> None:
        """Show how far the pass is."""
        if not self._progress.tasks:
            self._task = self._progress.add_task("", total=self._num_rows)
            self._progress.start()
        if rows_done <= self._done:
            self._pass += 1
        self._done = rows_done
        description = f"{self._what}, pass {self._pass}"
        self._progress.update(self._task, completed=rows_done, description=description)


class Interrupt:
    """Whether Ctrl-C was pressed."""

    requested = False


@contextlib.contextmanager
def interrupts() -> Iterator[Interrupt]:
    """Turn the first Ctrl-C into a request to stop soon; the second one acts as usual."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    previous = signal.getsignal(signal.SIGINT)

    def handle(signum: int, frame: FrameType | None) -> None:
        interrupt.requested = True
        signal.signal(signal.SIGINT, previous)

    signal.signal(signal.SIGINT, handle)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, previous)
