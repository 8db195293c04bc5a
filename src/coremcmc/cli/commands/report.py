"""``coremcmc report``: write a run's report anew."""

from coremcmc.cli.commands.options import AsJson, Quiet, Run
from coremcmc.cli.console import Output, guarded, warnings_shown

__all__ = ["report"]


def report(run: Run, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Write RUN/report.html anew, from the last checkpoint, also while the run goes on.

    \b
    Example:
      coremcmc report run
    """  # noqa: D301
    output = Output(quiet=quiet, as_json=as_json)
    with guarded(output):
        from coremcmc.cli.commands.training import title_of
        from coremcmc.cli.request import Request
        from coremcmc.cli.run_folder import RunFolder

        folder = RunFolder.open(run)
        request = Request.from_dict(folder.read_config()["request"])
        with warnings_shown(output):  # no lock: a run that goes on may be looked at
            folder.write_report(folder.load_fit(), title_of(request))
        output.show(str(folder.report))
        output.result({"run": str(folder), "files": {"report": str(folder.report)}})
