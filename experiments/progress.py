"""How far the study is, and how long it will take."""

import contextlib
import sys
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from experiments.store import Job

__all__ = ["progress_bar"]


@contextlib.contextmanager
def progress_bar(
    jobs: list[Job], num_iterations: int
) -> Iterator[tuple[Callable[[Job, int, float], None], Callable[[str], None]]]:
    """Show one bar a job, with the time left; off a terminal, one line when a job ends.

    Gives two functions: ``report(job, iteration, seconds)`` and ``say(line)``.
    """
    console = Console(file=sys.stderr)
    bars: dict[str, int] = {}
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:

        def report(job: Job, iteration: int, seconds: float) -> None:
            if job.name not in bars:
                number = [other.name for other in jobs].index(job.name) + 1
                label = f"{job.name} ({number} of {len(jobs)})"
                bars[job.name] = progress.add_task(label, total=num_iterations)
            progress.update(bars[job.name], completed=iteration)
            if iteration >= num_iterations and not console.is_terminal:
                console.print(f"{job.name}: {iteration:,} iterations, {seconds:.0f} s")

        def say(line: str) -> None:
            # The line as it is: not broken, and no [brackets] taken for colours.
            progress.console.print(
                line, style="yellow", highlight=False, markup=False, soft_wrap=True
            )

        yield report, say
