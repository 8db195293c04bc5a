"""``coremcmc resume``: go on with a run that was stopped."""

from coremcmc.cli.commands.options import AsJson, Quiet, Run
from coremcmc.cli.console import Output, guarded, warnings_shown

__all__ = ["resume"]


def resume(run: Run, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Go on with a run after Ctrl-C, a kill or a power cut.

    The result is the same, to the last bit, as that of a run that was never
    interrupted. The data must be where they were, and unchanged.

    \b
    Example:
      coremcmc resume run
    """  # noqa: D301
    output = Output(quiet=quiet, as_json=as_json)
    with guarded(output, f"coremcmc resume {run}"):
        from coremcmc.cli.commands.training import complete, describe_fit
        from coremcmc.cli.request import Request, check_same_data, prepare
        from coremcmc.cli.run_folder import RunFolder

        folder = RunFolder.open(run)
        with folder.locked():
            if folder.is_finished():
                output.show(
                    f"{folder} is finished already; there is nothing to resume. Look at it: "
                    f"coremcmc summary {folder}"
                )
                if output.as_json:
                    output.result(describe_fit(folder, folder.load_fit(), "already finished"))
                return
            config = folder.read_config()
            request = Request.from_dict(config["request"])
            check_same_data(config, folder)
            output.note(f"reading {request.data}")
            with warnings_shown(output):
                problem = prepare(request)
            complete(folder, request, problem, output)
