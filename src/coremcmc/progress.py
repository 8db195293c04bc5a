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

__all__ = ["Interrupt", "ProgressBar", "interrupts"]


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
