"""``coremcmc fit``: data and a formula in, a folder with coreset, posterior and report out."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from coremcmc.cli.commands.options import AsJson, Quiet
from coremcmc.cli.console import Output, facts_table, guarded, warnings_shown

__all__ = ["fit"]

Family = Literal["gaussian", "student_t", "logistic", "probit", "poisson", "negative_binomial"]
Link = Literal["identity", "logit", "probit", "log", "softplus"]

_MODEL = "What to fit"
_RUN = "The run"


def fit(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="CSV, Parquet (a file, a folder, a quoted glob), Arrow/Feather or npz.",
        ),
    ],
    formula: Annotated[
        str | None,
        typer.Option(help='For example "y ~ a + log(b) + C(c) + a:b".', rich_help_panel=_MODEL),
    ] = None,
    family: Annotated[
        Family | None,
        typer.Option(
            metavar="FAMILY",
            help="Distribution of the response: gaussian, student_t, logistic, probit, poisson, "
            "negative_binomial.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    link: Annotated[
        Link | None,
        typer.Option(
            metavar="LINK",
            help="The family's own by default; poisson and negative_binomial: log or softplus.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(
            metavar="PRIOR",
            help='Of the coefficients of standardized features: "normal(2.5)", "student_t(2.5, '
            'df=3)", "cauchy(1)". student_t(2.5) by default.',
            rich_help_panel=_MODEL,
        ),
    ] = None,
    intercept_prior: Annotated[
        str | None,
        typer.Option(metavar="PRIOR", help="Of the intercept, likewise.", rich_help_panel=_MODEL),
    ] = None,
    scale_prior: Annotated[
        str | None,
        typer.Option(
            metavar="PRIOR",
            help='Of sigma (gaussian, student_t): "half_normal(1)", "half_student_t(2.5)", '
            '"exponential(1)", "gamma(2, rate=0.1)".',
            rich_help_panel=_MODEL,
        ),
    ] = None,
    dispersion_prior: Annotated[
        str | None,
        typer.Option(
            metavar="PRIOR", help="Of phi (negative_binomial), likewise.", rich_help_panel=_MODEL
        ),
    ] = None,
    df: Annotated[
        float | None,
        typer.Option(
            help="Degrees of freedom of student_t, if known; learned otherwise.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    df_prior: Annotated[
        str | None,
        typer.Option(metavar="PRIOR", help="Of df, where it is learned.", rich_help_panel=_MODEL),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.PY:NAME",
            help="A model of your own in place of formula and family: NAME is a coremcmc model "
            "whose fields are columns of DATA, or a function NAME(table) that returns (model, "
            "data), as from_numpyro does.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    drop_missing: Annotated[
        bool,
        typer.Option(
            "--drop-missing",
            help="Leave out rows with missing values, which are refused otherwise.",
            rich_help_panel=_MODEL,
        ),
    ] = False,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="Columns to read, and to keep in coreset.parquet; all by default.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    coreset_size: Annotated[
        str | None,
        typer.Option(
            metavar="M|auto",
            help="Rows of the coreset; auto doubles it until the certificate says good. 1,000 by "
            "default, or all rows where they are fewer.",
            rich_help_panel=_RUN,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same answer.", rich_help_panel=_RUN)] = 0,
    preset: Annotated[
        Literal["default", "paper"],
        typer.Option(help="paper: the published recipe to the letter.", rich_help_panel=_RUN),
    ] = "default",
    iterations: Annotated[
        int | None,
        typer.Option(help="Of the training; until it settles by default.", rich_help_panel=_RUN),
    ] = None,
    chains: Annotated[
        int | None, typer.Option(help="Markov chains, at least 2.", rich_help_panel=_RUN)
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option(
            help="Posterior draws of each chain, once trained; 1,000 by default.",
            rich_help_panel=_RUN,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Folder for the results.", rich_help_panel=_RUN),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a run in RUN.", rich_help_panel=_RUN)
    ] = False,
    checkpoint_every: Annotated[
        float, typer.Option(help="Seconds between checkpoints.", rich_help_panel=_RUN, min=0)
    ] = 30.0,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Check the input; print rows, columns, memory and an estimate of the time from a "
            "short timed piece; write nothing.",
            rich_help_panel=_RUN,
        ),
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Fit a coreset and its posterior to a data file.

    RUN then holds coreset.parquet (your rows with their weights), posterior.nc
    (for ArviZ), report.html, checkpoint.npz and config.json.

    \b
    Examples:
      coremcmc fit flights.csv --family logistic --out run \\
        --formula "cancelled ~ hour + dist + temp + C(origin)"
      coremcmc fit "parts/*.parquet" --family poisson --link softplus \\
        --formula "rides ~ temp * humidity" --prior "normal(1)" --out run
      coremcmc fit flights.csv --family logistic --formula "late ~ hour" --dry-run
      coremcmc fit flights.csv --model mine.py:model --coreset-size auto --out run
    """  # noqa: D301
    output = Output(quiet=quiet, as_json=as_json)
    with guarded(output):
        from coremcmc.cli.request import Request, prepare
        from coremcmc.cli.run_folder import RunFolder

        terms = {
            "link": link,
            "prior": prior,
            "intercept_prior": intercept_prior,
            "scale_prior": scale_prior,
            "dispersion_prior": dispersion_prior,
            "df": df,
            "df_prior": df_prior,
        }
        options = {
            "seed": seed,
            "preset": preset,
            "num_iterations": iterations,
            "num_chains": chains,
            "num_draws": draws,
            "checkpoint_every": checkpoint_every,
        }
        request = Request(
            data=data,
            columns=tuple(name.strip() for name in (columns or "").split(",") if name.strip()),
            formula=formula,
            family=family,
            terms=_given(terms),
            model=model,
            drop_missing=drop_missing,
            coreset_size=_size(coreset_size),
            options=_given(options),
        ).absolute()
        folder = None
        if not dry_run:
            if out is None:
                raise ValueError("--out is missing: name the folder for the results.")
            folder = RunFolder(out)
            folder.check_free(overwrite)
        output.note(f"reading {data}")
        with warnings_shown(output):
            problem = prepare(request)
        output.note(str(problem))
        request = request.with_size(problem.num_rows)
        if folder is None:
            _dry_run(request, problem, output)
        else:
            start(folder, request, problem, output)


def start(folder: Any, request: Any, problem: Any, output: Output) -> None:
    """Make the folder of a run, train, and show the results."""
    from coremcmc.cli.commands.training import complete, resume_command
    from coremcmc.cli.request import config_of

    folder.path.mkdir(parents=True, exist_ok=True)
    with folder.locked(), guarded(output, resume_command(folder)):
        folder.create(config_of(request, problem))
        complete(folder, request, problem, output)


def _dry_run(request: Any, problem: Any, output: Output) -> None:
    from coremcmc.cli.estimate import estimate
    from coremcmc.report.formatting import duration

    output.note("timing a short piece")
    found = estimate(
        problem.model, problem.data, request.coreset_size, request.options, problem.table_bytes
    )
    low, high = found.seconds
    least, most = found.iterations
    iterations = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    output.show(
        facts_table(
            {
                "rows": f"{found.num_rows:,}",
                "columns": ", ".join(problem.columns),
                "parameters": f"{found.num_parameters:,}",
                "coreset": request.coreset_size,
                "memory": f"about {found.memory_bytes / 1e9:.1f} GB (the model's data: "
                f"{found.data_bytes / 1e6:,.1f} MB)",
                "time": f"about {duration(low)}"
                + (f", at most {duration(high)}" if most > least else "")
                + (" for each size" if request.coreset_size == "auto" else ""),
                "of which": f"compiling and the rest {duration(found.seconds_starting)}, passes "
                f"over the data {duration(found.seconds_of_passes)}, {iterations} iterations at "
                f"{1e3 * found.seconds_an_iteration:.2g} ms",
            },
            title="dry run: nothing was written",
        )
    )
    output.result(
        {
            "num_rows": found.num_rows,
            "num_dropped": problem.num_dropped,
            "columns": problem.columns,
            "num_parameters": found.num_parameters,
            "coreset_size": request.coreset_size,
            "data_bytes": found.data_bytes,
            "memory_bytes": found.memory_bytes,
            "seconds": {"low": low, "high": high},
            "iterations": {"low": least, "high": most},
        }
    )


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _size(text: str | None) -> int | str | None:
    if text is None or text == "auto":
        return text
    try:
        return int(text.replace(",", ""))
    except ValueError:
        raise ValueError(f"--coreset-size must be a number or auto, not {text!r}.") from None
