"""``coremcmc fit``: data and a formula in, a folder with coreset, posterior and report out."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from coremcmc.cli.commands.options import AsJson, Quiet
from coremcmc.cli.console import Output, facts_table, guarded, warnings_shown

__all__ = ["FitCommand", "fit"]

_MODEL = "What to fit"
_RUN = "The run"
# Options of before, and the parameters whose priors they are.
_OLD_PRIORS = {
    "intercept_prior": "Intercept",
    "scale_prior": "sigma",
    "dispersion_prior": "phi",
    "df_prior": "df",
}


def _families(incomplete: str) -> list[str]:
    """Families, for the shell; here as elsewhere JAX is not imported before it is needed."""
    from coremcmc.models.families import FAMILIES

    return [name for name in FAMILIES if name.startswith(incomplete)]


def _links(incomplete: str) -> list[str]:
    from coremcmc.models.families import FAMILIES

    names = dict.fromkeys(link.name for family in FAMILIES.values() for link in family.links)
    return [name for name in names if name.startswith(incomplete)]


class FitCommand(TyperCommand):
    """Its help names the families and links that there are."""

    def format_help(self, context: Any, formatter: Any) -> None:
        """Add them to what is said of the options."""
        for parameter in self.params:
            known = {"family": _families, "link": _links}.get(str(parameter.name))
            if known is not None:
                text = getattr(parameter, "help", "")
                parameter.help = f"{text} One of {', '.join(known(''))}."  # type: ignore[attr-defined]
        super().format_help(context, formatter)


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
        str | None,
        typer.Option(
            metavar="FAMILY",
            help="Distribution of the response, such as logistic, poisson or gaussian.",
            autocompletion=_families,
            rich_help_panel=_MODEL,
        ),
    ] = None,
    link: Annotated[
        str | None,
        typer.Option(
            metavar="LINK",
            help="The family's own by default; poisson and negative_binomial: log or softplus.",
            autocompletion=_links,
            rich_help_panel=_MODEL,
        ),
    ] = None,
    prior: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=PRIOR",
            help='Of standardized coefficients, beta="normal(2.5)", "student_t(2.5, df=3)" or '
            '"cauchy(1)", student_t(2.5) by default; of Intercept, likewise; of a parameter of the '
            'family, sigma="half_normal(1)", "half_student_t(2.5)", "exponential(1)" or '
            '"gamma(2, rate=0.1)". Can be repeated.',
            rich_help_panel=_MODEL,
        ),
    ] = None,
    intercept_prior: Annotated[
        str | None, typer.Option(help="Now --prior Intercept=…", hidden=True)
    ] = None,
    scale_prior: Annotated[
        str | None, typer.Option(help="Now --prior sigma=…", hidden=True)
    ] = None,
    dispersion_prior: Annotated[
        str | None, typer.Option(help="Now --prior phi=…", hidden=True)
    ] = None,
    df: Annotated[
        float | None,
        typer.Option(
            help="Degrees of freedom of student_t, if known; learned otherwise.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    df_prior: Annotated[str | None, typer.Option(help="Now --prior df=…", hidden=True)] = None,
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
            help="Posterior draws of each chain, once trained; 2,000 by default.",
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
        --formula "rides ~ temp * humidity" --prior beta="normal(1)" --out run
      coremcmc fit flights.csv --family logistic --formula "late ~ hour" --dry-run
      coremcmc fit flights.csv --model mine.py:model --coreset-size auto --out run
    """  # noqa: D301
    output = Output(quiet=quiet, as_json=as_json)
    with guarded(output):
        from coremcmc.cli.request import Request, prepare
        from coremcmc.cli.run_folder import RunFolder

        old = {
            "intercept_prior": intercept_prior,
            "scale_prior": scale_prior,
            "dispersion_prior": dispersion_prior,
            "df_prior": df_prior,
        }
        terms = {
            "link": link,
            "priors": _priors(prior or [], old, output) or None,
            "df": df,
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


def _priors(texts: list[str], old: dict[str, str | None], output: Output) -> dict[str, str]:
    """Read ``NAME=PRIOR``, and what was written before there were names, with a warning."""
    given = []
    for text in texts:
        name, equals, prior = (part.strip() for part in text.partition("="))
        if equals and name.isidentifier():
            given.append((name, prior))
        else:  # "normal(1, location=2)" has an = too
            given.append(("beta", text))
            output.warn(f'--prior "{text}" goes in the next release; write --prior beta="{text}".')
    for option, found in old.items():
        if found is not None:
            name, spelled = _OLD_PRIORS[option], "--" + option.replace("_", "-")
            given.append((name, found))
            output.warn(f'{spelled} goes in the next release; write --prior {name}="{found}".')
    for name, _ in given:
        if [other for other, _ in given].count(name) > 1:
            raise ValueError(f"--prior gives the prior of {name} twice. Give it once.")
    return dict(given)


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _size(text: str | None) -> int | str | None:
    if text is None or text == "auto":
        return text
    try:
        return int(text.replace(",", ""))
    except ValueError:
        raise ValueError(f"--coreset-size must be a number or auto, not {text!r}.") from None
