"""The ``coremcmc`` command."""

import os
import warnings
from pathlib import Path
from typing import Annotated

import typer

# One thread for XLA: its idle workers spin, which doubles the CPU time and gains nothing. Set
# before JAX starts, and only here, where the whole process is ours.
os.environ.setdefault("NPROC", "1")

app = typer.Typer(
    help="Bayesian coresets and posterior draws from them, with nothing to tune.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)


def _version(show: bool) -> bool:
    if show:
        import coremcmc

        typer.echo(f"coremcmc {coremcmc.__version__}")
        raise typer.Exit
    return show


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Bayesian coresets and posterior draws from them, with nothing to tune."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the saved fit and the plot.")] = Path(
        "demo-output"
    ),
    num_rows: Annotated[int, typer.Option(help="Rows to generate.")] = 100_000,
    coreset_size: Annotated[int, typer.Option(help="Rows of the coreset.")] = 500,
    num_iterations: Annotated[
        int | None, typer.Option(help="Iterations of Coreset MCMC; until it settles if not given.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same answer.")] = 0,
) -> None:
    """Fit a logistic regression to generated rows, show a summary, save the fit and a plot."""
    import coremcmc

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(f"cannot make the folder {out}: {error.strerror}") from None
    typer.echo(
        f"Logistic regression, {num_rows:,} generated rows, true intercept -0.5 and coefficients "
        "1, 1/3, -1/3, -1."
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the summary has them
            fit = coremcmc.fit(
                coremcmc.LogisticRegression(),
                coremcmc.logistic_data(num_rows=num_rows),
                coreset_size,
                num_iterations=num_iterations,
                seed=seed,
            )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    except coremcmc.FitError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
    saved = fit.save(out / "fit.npz")
    plot = fit.plot(out / "fit.png")
    typer.echo(fit.summary())
    typer.echo(f"\nplot   {plot}\nfit    {saved}  (coremcmc.Fit.load reads it)")


if __name__ == "__main__":
    app()
