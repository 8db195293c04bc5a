"""``coremcmc summary``: what a run found."""

from coremcmc.cli.commands.options import AsJson, Quiet, Run
from coremcmc.cli.console import Output, guarded

__all__ = ["summary"]


def summary(run: Run, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Show verdict, posterior and files of a run, finished or not.

    \b
    Examples:
      coremcmc summary run
      coremcmc summary run --json | jq .verdict
    """  # noqa: D301
    output = Output(quiet=quiet, as_json=as_json)
    with guarded(output):
        from coremcmc.cli.commands.training import show_fit
        from coremcmc.cli.run_folder import RunFolder

        folder = RunFolder.open(run)
        show_fit(folder, folder.load_fit(), output)
