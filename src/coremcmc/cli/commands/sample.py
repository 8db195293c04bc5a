"""``coremcmc sample``: more draws from a trained coreset."""

from typing import Annotated

import typer

from coremcmc.cli.commands.options import AsJson, Quiet, Run, Seed
from coremcmc.cli.console import Output, guarded, warnings_shown

__all__ = ["sample"]


def sample(
    run: Run,
    num_draws: Annotated[int, typer.Option(help="Draws that each chain keeps.", min=1)] = 1_000,
    chains: Annotated[int, typer.Option(help="Markov chains.", min=1)] = 4,
    kernel: Annotated[
        str,
        typer.Option(help="nuts, or a kernel of this package; of an unknown one all are listed."),
    ] = "nuts",
    warmup: Annotated[int, typer.Option(help="Steps before draws are kept.", min=1)] = 500,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Draw more from a trained coreset; RUN/posterior.nc and the report are replaced.

    The original data are not needed, unless --model named a function of them.

    \b
    Example:
      coremcmc sample run --num-draws 4000 --kernel nuts
    """  # noqa: D301
    output = Output(quiet=quiet, as_json=as_json)
    with guarded(output):
        from coremcmc.cli.commands.training import show_fit, title_of
        from coremcmc.cli.request import Request, model_of_run
        from coremcmc.cli.run_folder import RunFolder

        folder = RunFolder.open(run)
        config = folder.read_config()
        with folder.locked(), warnings_shown(output):
            fit = folder.load_finished()
            model, data = model_of_run(config, folder, fit.config["model"])
            output.note(f"drawing {chains} × {num_draws:,} with {kernel}")
            fit = fit.sample(
                num_draws,
                num_chains=chains,
                kernel=kernel,
                num_warmup=warmup,
                seed=seed,
                model=model,
                data=data,
            )
            folder.write_posterior(fit)
            fit.save(folder.checkpoint)
            folder.write_report(fit, title_of(Request.from_dict(config["request"])))
        show_fit(folder, fit, output)
