"""``python -m experiments``: the paper's study from the command line."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

# One thread for XLA on a CPU, whose idle workers spin; set before JAX starts. A GPU's compiler
# makes good use of them.
if shutil.which("nvidia-smi") is None:
    os.environ.setdefault("NPROC", "1")

from experiments.errors import StudyError
from experiments.scales import SCALES, Scale, scale_named, stop_after
from experiments.tasks import TASKS, VARIANTS, task_named

app = typer.Typer(
    help="Reproduce the study of Hot DoG: six models, every method, every figure.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

ScaleOption = Annotated[str, typer.Option("--scale", help=f"One of {', '.join(SCALES)}.")]
DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        help="Folder with bikes.npz, nba.npz and flights.npz, or in place of the last the paper's "
        "authors' linear_reg.csv and logistic_reg.csv.",
    ),
]
ResultsOption = Annotated[
    Path | None, typer.Option("--results", help="Folder of results; results/<scale> if not given.")
]
TaskOption = Annotated[list[str] | None, typer.Option("--task", help="Only this; repeatable.")]
SizeOption = Annotated[
    list[int] | None, typer.Option("--coreset-size", help="Only this M; repeatable.")
]


def _jobs(scale: Scale, tasks: list[str] | None, sizes: list[int] | None) -> list:
    from experiments.store import Job

    for size in sizes or []:
        if size not in scale.coreset_sizes:
            known = ", ".join(map(str, scale.coreset_sizes))
            raise StudyError(f"--coreset-size {size}: scale {scale.name} has {known}.")
    chosen = [task_named(name) for name in tasks or TASKS]
    return [Job(task, size) for task in chosen for size in sizes or scale.coreset_sizes]


def _data_folder(given: Path | None) -> Path | None:
    from experiments.datasets import default_folder

    if given is not None and not given.is_dir():
        raise StudyError(f"--data {given}: there is no such folder.")
    return given or default_folder()


def _results_folder(given: Path | None, scale: Scale) -> Path:
    """Return the given folder, or the one that comes with the repository for the paper's scale."""
    return given or Path(__file__).resolve().parent / "results" / scale.name


def _store(given: Path | None, scale: Scale):
    from experiments.store import Store

    return Store(_results_folder(given, scale), scale)


def _reference_folders(results: Path) -> list[Path]:
    from experiments.references import REFERENCES

    return [results / "references", REFERENCES]


@app.command("list")
def list_jobs(
    scale: ScaleOption = "paper", results: ResultsOption = None, data: DataOption = None
) -> None:
    """Show the jobs, their data, and how far each is."""
    from rich.console import Console
    from rich.table import Table

    from experiments.runner import is_of_program
    from experiments.sources import program_digest

    sizes = scale_named(scale)
    store, folder = _store(results, sizes), _data_folder(data)
    table = Table("job", "data", "iterations", "µs per iteration and run", "device")
    extra = [job for job in _jobs(sizes, [*VARIANTS], None) if store.facts(job)]
    for job in _jobs(sizes, None, None) + extra:
        try:
            origin = job.task.load(folder).origin
        except StudyError as error:
            origin = f"missing: {error}"
        facts = store.facts(job) or {}
        problem = store.problem(job)
        done = problem or f"{facts.get('num_iterations', 0):,} of {sizes.num_iterations:,}"
        if facts and not is_of_program(facts, json.dumps({"program": program_digest(job.task)})):
            done += ", of another program"
        speed = facts.get("microseconds_per_iteration_and_run")
        speed = "" if speed is None else f"{speed:.2f}"
        table.add_row(job.name, origin, done, speed, facts.get("device", ""))
    Console().print(table)


@app.command()
def reference(
    scale: ScaleOption = "paper",
    task: TaskOption = None,
    data: DataOption = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the files; the repository's if not given.")
    ] = None,
) -> None:
    """Compute full-data posteriors, and check them."""
    from experiments.references import REFERENCES, compute_reference, save_reference

    sizes, folder = scale_named(scale), _data_folder(data)
    if sizes.name == "smoke" and out is None:
        raise StudyError("--out: a smoke-scale reference needs a folder of its own.")
    for chosen in [task_named(name) for name in task or TASKS]:
        dataset = chosen.load(folder)
        typer.echo(f"{chosen.name} on {dataset.origin} …")
        found = compute_reference(chosen, dataset, scale=sizes, folder=folder, progress=typer.echo)
        path = save_reference(found, out or REFERENCES)
        typer.echo(f"  {path.name}: {'; '.join(found.provenance['checks'])}")


@app.command()
def run(
    scale: ScaleOption = "small",
    results: ResultsOption = None,
    data: DataOption = None,
    task: TaskOption = None,
    coreset_size: SizeOption = None,
    iterations: Annotated[
        int | None, typer.Option(help="Stop after about so many; a later run goes on from there.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or gpu.")] = "auto",
    seed: Annotated[int, typer.Option(help="Same seed, same answer.")] = 0,
    checkpoint_seconds: Annotated[float, typer.Option(help="Time between checkpoints.")] = 120.0,
) -> None:
    """Run the jobs that are not finished, from their last checkpoints on."""
    sizes = scale_named(scale)
    stop = stop_after(sizes, iterations)
    if seed < 0:
        raise StudyError(f"--seed {seed}: must not be negative.")
    _use_device(device)
    from experiments.progress import progress_bar
    from experiments.references import load_reference
    from experiments.runner import Plan, run_jobs

    store, folder = _store(results, sizes), _data_folder(data)
    folders = _reference_folders(store.folder)
    jobs = _jobs(sizes, task, coreset_size)
    with progress_bar(jobs, stop) as (report, say):
        plan = Plan(
            jobs,
            store,
            stop,
            folder,
            lambda job, dataset: load_reference(job.task, dataset, folders),
            seed,
            checkpoint_seconds,
            say,
        )
        try:
            done = run_jobs(plan, report)
        except KeyboardInterrupt:
            typer.echo("stopped; the same command goes on from here", err=True)
            raise typer.Exit(130) from None
    typer.echo(f"{len(done)} of {len(jobs)} jobs run, the others were finished: {store.folder}")


@app.command()
def replay(
    scale: ScaleOption = "paper",
    results: ResultsOption = None,
    data: DataOption = None,
    task: TaskOption = None,
    coreset_size: SizeOption = None,
    seed: Annotated[int, typer.Option(help="That of the run.")] = 0,
) -> None:
    """Run the first 200 iterations of finished jobs again, and compare with what is stored."""
    from experiments.references import load_reference
    from experiments.runner import Plan, replay_finished

    sizes = scale_named(scale)
    store, folder = _store(results, sizes), _data_folder(data)
    folders = _reference_folders(store.folder)
    chosen = _jobs(sizes, task or [*TASKS, *VARIANTS], coreset_size)
    jobs = [job for job in chosen if store.facts(job) is not None]
    plan = Plan(
        jobs,
        store,
        sizes.num_iterations,
        folder,
        lambda job, dataset: load_reference(job.task, dataset, folders),
        seed,
    )
    for job in jobs:
        typer.echo(f"{job.name}: {replay_finished(plan, job)}")


@app.command()
def figures(
    scale: ScaleOption = "paper",
    results: ResultsOption = None,
    out: Annotated[Path, typer.Option(help="Folder for the pictures and their numbers.")] = Path(
        "figures"
    ),
) -> None:
    """Draw every figure, as PNG and PDF, and write its numbers as CSV."""
    from experiments.figures import draw_figures

    for path in draw_figures(_store(results, scale_named(scale)), out):
        typer.echo(path)


@app.command()
def claims(
    scale: ScaleOption = "paper",
    results: ResultsOption = None,
    claim: Annotated[
        list[str] | None, typer.Option("--claim", help="Only this table (3a), or claim (3).")
    ] = None,
) -> None:
    """Print the numbers behind the claims, as tables in Markdown."""
    from experiments.claims import claims_markdown

    typer.echo(claims_markdown(_store(results, scale_named(scale)), claim))


@app.command()
def page(
    results: ResultsOption = None,
    out: Annotated[Path | None, typer.Option(help="Write there; printed if not given.")] = None,
) -> None:
    """Write docs/reproduction.md, every number of it from the results."""
    from experiments.page import reproduction_page

    text = reproduction_page(_store(results, scale_named("paper")))
    if out is None:
        typer.echo(text, nl=False)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StudyError(f"--out {out}: cannot write there: {error}") from None


@app.command()
def theorem(
    out: Annotated[
        Path | None, typer.Option(help="File for the numbers; the repository's if not given.")
    ] = None,
) -> None:
    """Compute anew what is said of the convergence theorem (a minute or two)."""
    from experiments.theorem import STORED, look

    path = out or STORED
    content = json.dumps(look(), sort_keys=True) + "\n"
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise StudyError(f"--out {path}: cannot write there: {error}") from None
    typer.echo(path)


@app.command()
def report(
    scale: ScaleOption = "paper",
    results: ResultsOption = None,
    out: Annotated[Path, typer.Option(help="Folder for the figures and the page.")] = Path(
        "figures"
    ),
) -> None:
    """Draw every figure, and write one page that shows them all and the claims' tables."""
    from experiments.claims import claims_markdown
    from experiments.figures import draw_figures
    from experiments.report import write_page

    store = _store(results, scale_named(scale))
    draw_figures(store, out)
    (out / "claims.md").write_text(claims_markdown(store), encoding="utf-8")
    write_page(store, out, out / "index.html")
    typer.echo(out / "index.html")


def _use_device(device: str) -> None:
    """Settle on a device before any work."""
    if device not in ("auto", "cpu", "gpu"):
        raise StudyError(f"--device {device}: must be auto, cpu or gpu.")
    import jax

    if device == "cpu":
        jax.config.update("jax_platforms", "cpu")
    if device == "gpu" and jax.default_backend() != "gpu":
        raise StudyError("--device gpu: JAX sees no GPU here. Install its CUDA build, or use cpu.")


def main() -> None:
    """Run a command; bad input ends in one line and status 2."""
    try:
        app(prog_name="python -m experiments")
    except StudyError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
