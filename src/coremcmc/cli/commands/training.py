"""What ``fit``, ``resume`` and ``demo`` have in common: train, write the results, show them."""

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from coremcmc.cli.console import (
    INTERRUPTED,
    Output,
    facts_table,
    posterior_table,
    verdict_text,
    warnings_shown,
)

__all__ = ["complete", "describe_fit", "resume_command", "show_fit", "title_of"]

_MOST_PARAMETERS = 40


def resume_command(folder: Any) -> str:
    """The command that goes on with a run."""
    return f"coremcmc resume {folder}"


def complete(folder: Any, request: Any, problem: Any, output: Output) -> None:
    """Train from the checkpoint on, or from the beginning; write the results, and show them.

    ``folder`` is a :class:`coremcmc.cli.run_folder.RunFolder` that holds config.json and is locked.
    """
    output.note(
        f"fitting; the run is saved in {folder} every "
        f"{(request.options or {}).get('checkpoint_every', 30):g} s, Ctrl-C stops it there"
    )
    with warnings_shown(output), _terminated_gently():
        fit = _train(folder, request, problem, output)
        if fit.stopped == "interrupted":
            output.fail(
                f"interrupted at iteration {fit.iteration:,}; the checkpoint is saved. Go on "
                f"with: {resume_command(folder)}",
                INTERRUPTED,
            )
        folder.write_results(fit, problem.table, title=title_of(request))
    show_fit(folder, fit, output)


def _train(folder: Any, request: Any, problem: Any, output: Output) -> Any:
    from coremcmc.fitting.fit import fit
    from coremcmc.fitting.growing import grow
    from coremcmc.fitting.result import Fit

    options = {**(request.options or {}), "progress": output.progress}

    def fit_of_size(size: int, path: Path) -> Fit:
        saved = Fit.load(path) if path.exists() else None
        if saved is not None and saved.stopped in ("finished", "settled"):
            return saved
        return fit(
            problem.model, problem.data, size, checkpoint=path, resume=saved is not None, **options
        )

    if request.coreset_size != "auto":
        return fit_of_size(request.coreset_size, folder.checkpoint)
    if folder.checkpoint.exists():  # the last one, moved there when all sizes were done
        return Fit.load(folder.checkpoint)

    def next_size(size: int) -> Fit:
        output.note(f"a coreset of {size:,} rows")
        return fit_of_size(size, folder.checkpoint_of_size(size))

    found = grow(next_size, problem.num_rows)
    if found.stopped != "interrupted":
        folder.checkpoint_of_size(len(found.coreset)).replace(folder.checkpoint)
        folder.remove_other_checkpoints()
    return found


@contextlib.contextmanager
def _terminated_gently() -> Iterator[None]:
    """Let SIGTERM, which batch systems send, do what Ctrl-C does."""
    try:
        previous = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def title_of(request: Any) -> str:
    """The report's title."""
    what = request.formula if request.model is None else Path(request.model).name
    return f"{what} ({Path(request.data).name})"


def show_fit(folder: Any, fit: Any, output: Output, status: str | None = None) -> None:
    """Show the verdict, the posterior, and where the files are."""
    from coremcmc.report.parameters import parameters_of

    for text in fit.warnings:
        output.warn(text)
    if output.as_json:
        output.result(describe_fit(folder, fit, status))
        return
    if output.quiet:
        return
    parameters, total = parameters_of(fit, _MOST_PARAMETERS)
    files = dict(folder.files())
    output.show(
        "",
        verdict_text(fit.certificate, _why_no_verdict(folder, fit)),
        "",
        posterior_table(parameters, total) if parameters else "(no draws yet)",
        "",
        facts_table(_facts(fit)),
        "",
        facts_table(files, title="files"),
    )
    if "report" in files:
        output.show(f"\nread the report: {files['report']}")


def _why_no_verdict(folder: Any, fit: Any) -> str:
    if fit.stopped in ("finished", "settled"):
        return "the preset of the paper makes no certificate"
    return f"the run is not finished. Go on with: {resume_command(folder)}"


def _facts(fit: Any) -> dict[str, str]:
    from coremcmc.report.formatting import duration

    settings = fit.config["settings"]
    weights = fit.coreset.weights
    effective = weights.sum() ** 2 / (weights**2).sum() if (weights > 0).any() else 0.0
    return {
        "coreset": f"{len(fit.coreset):,} of {fit.coreset.num_rows:,} rows; effective number of "
        f"rows {effective:,.0f}",
        "run": f"{fit.iteration:,} iterations ({fit.stopped}), {settings['num_chains']} "
        f"chains, {duration(fit.seconds)}, seed {fit.config['seed']}",
    }


def describe_fit(folder: Any, fit: Any, status: str | None = None) -> dict[str, Any]:
    """The fit as plain values."""
    from coremcmc.report.parameters import parameters_of

    parameters, _ = parameters_of(fit, 1 << 30)
    verdict = fit.certificate
    return {
        "run": str(folder),
        "status": status or fit.stopped,
        "verdict": None if verdict is None else verdict.verdict,
        "reasons": [] if verdict is None else verdict.reasons,
        "num_rows": fit.coreset.num_rows,
        "coreset_size": len(fit.coreset),
        "iterations": fit.iteration,
        "stopped": fit.stopped,
        "seconds": fit.seconds,
        "seed": fit.config["seed"],
        "posterior": {
            p.name: {
                "mean": p.mean,
                "sd": p.sd,
                "q5": p.low,
                "q95": p.high,
                "ess": p.ess,
                "r_hat": p.rhat,
            }
            for p in parameters
        },
        "files": folder.files(),
    }
