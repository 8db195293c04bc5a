"""The ``coremcmc`` command."""

import os
from typing import Annotated

import typer

from coremcmc.cli.commands.demo import demo
from coremcmc.cli.commands.fit import FitCommand, fit
from coremcmc.cli.commands.report import report
from coremcmc.cli.commands.resume import resume
from coremcmc.cli.commands.sample import sample
from coremcmc.cli.commands.summary import summary
from coremcmc.compile_cache import keep_compiled_programs
from coremcmc.version import __version__

# One thread for XLA: its idle workers spin, which doubles the CPU time and gains nothing. Set
# before JAX starts, and only here, where the whole process is ours.
os.environ.setdefault("NPROC", "1")

app = typer.Typer(
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _version(show: bool) -> bool:
    if show:
        typer.echo(f"coremcmc {__version__}")
        raise typer.Exit
    return show


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Bayesian coresets and posterior draws from them, with nothing to tune.

    \b
    First steps:
      coremcmc demo
      coremcmc fit flights.csv --family logistic --formula "late ~ hour" --out run
      coremcmc summary run

    Exit codes: 0 good, 1 the run failed, 2 bad input, 130 interrupted.
    """  # noqa: D301
    keep_compiled_programs()


app.command(cls=FitCommand)(fit)
for command in (resume, sample, report, summary, demo):
    app.command()(command)


if __name__ == "__main__":
    app()
