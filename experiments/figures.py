"""The paper's figures from a folder of results: each a PNG, a PDF and the numbers as CSV.

Figures 1 to 7 are ``fig1`` to ``fig7``; those of the appendix, at the smaller coreset sizes, have
the size in their name: ``fig4-M100``. ``starts`` is no figure of the paper.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

import coremcmc
from experiments import drawing, figure_data, theorem
from experiments.errors import StudyError
from experiments.figure_data import FEWEST
from experiments.medians import JobResults, Results, load_results
from experiments.methods import METHODS
from experiments.store import Job, Store
from experiments.tasks import TASKS

__all__ = ["Picture", "draw_figures", "pictures"]

_RECOMMENDED = METHODS["hot_dog"].reference_value
_ERROR = "average squared z-score"
_ADAM = "ADAM with the best γ, no hot start"


@dataclass(frozen=True)
class Picture:
    """One figure: what it is called, what it says, its numbers, and how to draw it.

    Attributes
    ----------
    name
        Of its files.
    title, caption, note
        Not in the picture; ``note`` tells trials, iterations and what is missing.
    table
        Makes the numbers that it shows.
    draw
        Takes that table.
    """

    name: str
    title: str
    caption: str
    note: str
    table: Callable[[], pd.DataFrame]
    draw: Callable[[pd.DataFrame], drawing.Figure]


def pictures(results: Results) -> list[Picture]:
    """All the figures: those of the main text, the appendix's, and one of ours."""
    *others, largest = results.sizes
    main = [_fig1(results), _fig2(results), _fig3(results)]
    main += [make(results, largest, "") for make in (_fig4, _fig5, _fig6)]
    main += [_fig7(results)]
    return (
        main
        + [make(results, size, f"-M{size}") for make in (_fig4, _fig5, _fig6) for size in others]
        + ([_starts(results), _theorem()] if results.variants else [])
    )


def draw_figures(
    store: Store, out: Path, progress: Callable[[str], None] | None = None
) -> list[Path]:
    """Draw everything that the results allow.

    Parameters
    ----------
    store
        The results.
    out
        Folder for the files; made if absent.
    progress
        Told the name of each figure before it is drawn.

    Returns
    -------
    The files written.
    """
    results = load_results(store)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StudyError(f"--out {out}: cannot write there: {error}") from None
    paths = []
    for picture in pictures(results):
        if progress:
            progress(picture.name)
        table = picture.table()
        csv = out / f"{picture.name}.csv"
        table.to_csv(csv, index=False, float_format="%.7g")
        caption = f"{picture.caption} {picture.note}"
        saved = drawing.save(picture.draw(table), out, picture.name, picture.title, caption)
        paths += [*saved, csv]
    return paths


def _fig1(results: Results) -> Picture:
    title = "ADAM at each learning rate against Hot DoG"
    note = _note(results, results.jobs.values(), "Median", results.sizes)
    return Picture(
        "fig1",
        title,
        f"The {_ERROR} of ADAM without hot start, divided by that of Hot DoG with r = 10⁻³ and hot "
        "start, for each learning rate γ; a colour is a task, a line style a coreset size M. Both "
        "are medians over trials at the last iteration. Above the black line Hot DoG is the more "
        "accurate. (The paper's caption does not name its axes; a line over the learning rates "
        "for each task and M is the reading that it supports.)",
        note,
        lambda: figure_data.ratio_table(results, ["adam"], [False]),
        lambda table: drawing.grid_panels(
            [("", "adam", table)],
            "ratio",
            results.sizes,
            "error of ADAM / error of Hot DoG",
            "equal errors",
        ),
    )


def _fig2(results: Results) -> Picture:
    title = "The error of ADAM at each learning rate"
    note = _note(results, results.jobs.values(), "Median", results.sizes)
    return Picture(
        "fig2",
        title,
        f"The {_ERROR} of ADAM without hot start at the last iteration, median over trials, "
        "against its learning rate γ; a colour is a task, a line style a coreset size M. Look for "
        "how deep each valley is, and whether the valleys share their bottom.",
        note,
        lambda: figure_data.adam_table(results),
        lambda table: drawing.grid_panels([("", "adam", table)], "z2", results.sizes, _ERROR),
    )


def _fig3(results: Results) -> Picture:
    size = results.sizes[-1]
    title = f"Tuning-free methods used directly: linear regression, M = {size:,}, no hot start"
    jobs = [job for key, job in results.jobs.items() if key == ("linear", size)]
    note = _note(results, jobs, "Medians", (size,), ("linear",))
    names = ("dog", "dowg", "dadapt_sgd", "prodigy")
    families = [(name, False, drawing.BLUE, "method in the panel's title") for name in names]
    families.append(("adam", False, drawing.GREEN, _ADAM))
    return Picture(
        "fig3",
        title,
        f"The {_ERROR} so far against the number of log potentials evaluated, medians over trials. "
        "Blue: DoG and DoWG for each initial distance r, D-Adaptation SGD and Prodigy with their "
        "default d₀ = 10⁻⁶. Green, the same line in every panel: ADAM with the learning rate whose "
        "median error at the end is lowest. Nothing has a hot start.",
        note,
        lambda: figure_data.untuned_table(results),
        lambda table: drawing.curve_panels(
            table, [(name, METHODS[name].title) for name in names], families
        ),
    )


def _fig4(results: Results, size: int, suffix: str) -> Picture:
    title = f"Hot DoG with and without hot start, M = {size:,}"
    note = _note(results, _jobs(results, size), "Medians", (size,))
    families = [
        ("hot_dog", True, drawing.ORANGE, "with hot start"),
        ("hot_dog", False, drawing.BLUE, "without hot start"),
    ]
    return Picture(
        f"fig4{suffix}",
        title,
        f"The {_ERROR} so far of Hot DoG against the number of log potentials evaluated, medians "
        "over trials; each line is one initial distance r. Orange: the weights are held until the "
        "hot-start test passes. Blue: they move from the first iteration on. The error is that of "
        "the mean over the latter half of all draws so far, so it lags behind the weights.",
        note,
        lambda: figure_data.hot_start_table(results, size),
        lambda table: drawing.curve_panels(table, _panels(results, size), families),
    )


def _fig5(results: Results, size: int, suffix: str) -> Picture:
    title = f"Gradient norms and the hot-start statistic while the weights are held, M = {size:,}"
    note = _note(results, _jobs(results, size), "", (size,))
    threshold = coremcmc.HotStart().threshold
    return Picture(
        f"fig5{suffix}",
        title,
        "Norms of the gradient estimate (blue, left axis) and the statistic of the hot-start test "
        "(green, right axis) from the first iteration until the weights are released, which a "
        f"triangle marks. The statistic is shown for every iteration from {FEWEST} on; the study "
        "tests it every 30, from max(30, 3D) on, and passes when it is below "
        f"c = {threshold:g} (orange, right axis). The trial whose held phase is the middle "
        "one is drawn boldly, the others faintly. Statistics below 0.001 are drawn there; the "
        "lowest 0.2 % of the norms may lie below the panel; of a long phase some 400 iterations "
        "are shown.",
        note,
        lambda: figure_data.gate_table(results, size),
        lambda table: drawing.gate_panels(
            table, [(name, task.title) for name, task in TASKS.items()], threshold
        ),
    )


def _fig6(results: Results, size: int, suffix: str) -> Picture:
    title = f"Hot DoG for each initial distance r, and tuned ADAM, M = {size:,}"
    note = _note(results, _jobs(results, size), "Medians", (size,))
    families = [
        ("hot_dog", True, drawing.ORANGE, "Hot DoG with hot start"),
        ("adam", False, drawing.GREEN, _ADAM),
    ]
    return Picture(
        f"fig6{suffix}",
        title,
        f"The {_ERROR} so far against the number of log potentials evaluated, medians over trials. "
        "Orange: Hot DoG with hot start, a line for each initial distance r. Green: ADAM without "
        "hot start, with the learning rate whose median error at the end is lowest for this task "
        "and coreset size; it is named in the panel.",
        note,
        lambda: figure_data.tuned_table(results, size),
        lambda table: drawing.curve_panels(table, _panels(results, size), families),
    )


def _fig7(results: Results) -> Picture:
    title = "Other methods against Hot DoG, without (above) and with (below) hot start"
    note = _note(results, results.jobs.values(), "Median", results.sizes)
    names = ("dog", "dowg", "adam", "prodigy")

    def draw(table: pd.DataFrame) -> drawing.Figure:
        panels = [
            (
                METHODS[name].title + (", hot start" if hot_start else ""),
                name,
                table[(table["method"] == name) & (table["hot_start"] == hot_start)],
            )
            for hot_start in (False, True)
            for name in names
        ]
        label = "error / error of Hot DoG"
        return drawing.grid_panels(panels, "ratio", results.sizes, label, "equal errors")

    return Picture(
        "fig7",
        title,
        f"The {_ERROR} of the method in the panel's title, divided by that of Hot DoG with "
        "r = 10⁻³ and hot start, against the method's initial parameter; a colour is a task, a "
        "line style a coreset size M. Both are medians over trials at the last iteration. Above "
        "the black line Hot DoG is the more accurate.",
        note,
        lambda: figure_data.ratio_table(results, names),
        draw,
    )


def _starts(results: Results) -> Picture:
    title = "Two starts of the chains: the authors', and θ₀ ~ N(0, I)"
    chosen = figure_data.start_jobs(results)
    note = _note(results, [job for _, job, _ in chosen], "Medians", ())
    families = [
        ("hot_dog", True, drawing.ORANGE, "Hot DoG, hot start"),
        ("hot_dog", False, drawing.BLUE, "Hot DoG, no hot start"),
        ("dog", False, drawing.PINK, "DoG, no hot start"),
    ]
    panels = [
        (key, f"{job.job.task.title}, M = {job.job.coreset_size:,}") for key, job, _ in chosen
    ]
    return Picture(
        "starts",
        title,
        f"The {_ERROR} so far against the number of log potentials evaluated, medians over trials, "
        "r = 10⁻³. Solid lines: the chains start near the mass, as in the authors' code. Dashed "
        "lines: from θ₀ ~ N(0, I). With hot start the two lie on "
        "each other, so that one orange line is seen. (Not in the paper.)",
        note,
        lambda: figure_data.start_table(results),
        lambda table: drawing.start_panels(table, panels, families),
    )


def _theorem() -> Picture:
    found = theorem.stored()
    title = "Convergence to an exact coreset"
    return Picture(
        "theorem",
        title,
        "The mean squared distance of the weights from the exact ones on Gaussian location with "
        "d = 3, N = 20 and M = 4, for Algorithm 2 (orange) and the recursion of Appendix C.1 "
        "(blue). Grey: the theorem's rate, c/√t through the mean of Algorithm 2 at its first "
        "iteration past 1,000, and the only bound that the proof gives over these iterations, MB². "
        "(Not in the paper.)",
        f"Means over {found['num_runs']} runs.",
        figure_data.theorem_table,
        lambda table: drawing.theorem_panel(table, found["bound"]["trivial"]),
    )


def _jobs(results: Results, size: int) -> list[JobResults]:
    return [job for (_, found), job in results.jobs.items() if found == size]


def _panels(results: Results, size: int) -> list[tuple[str, str]]:
    """Key and title of a panel per task, with the iterations done where they differ."""
    counts = {job.num_iterations for job in _jobs(results, size)}
    titles = []
    for name, task in TASKS.items():
        job = results.jobs.get((name, size))
        more = f" ({job.num_iterations:,} iterations)" if job and len(counts) > 1 else ""
        titles.append((name, task.title + more))
    return titles


def _note(
    results: Results,
    jobs: Iterable[JobResults],
    what: str,
    sizes: Iterable[int],
    tasks: Iterable[str] = tuple(TASKS),
) -> str:
    """Tell trials, iterations and what is missing."""
    jobs = list(jobs)
    trials = sorted({job.runs["trial"].nunique() for job in jobs})
    by_count: dict[int, list[Job]] = {}
    for job in jobs:
        by_count.setdefault(job.num_iterations, []).append(job.job)
    parts = []
    if jobs:
        count = f"{trials[0]}" if len(trials) == 1 else f"{trials[0]} to {trials[-1]}"
        parts.append(f"{what} over {count} trials" if what else f"{count} trials")
    if jobs and what:
        common = max(by_count, key=lambda n: len(by_count[n]))
        parts[0] += f", {common:,} iterations"
        parts += [f"{n:,} for {_named(found)}" for n, found in by_count.items() if n != common]
    missing = [
        job for job in results.missing() if job.coreset_size in sizes and job.task.name in tasks
    ]
    if missing:
        parts.append(f"no results of {_named(missing)}")
    return "; ".join(parts) + "."


def _named(jobs: Iterable[Job]) -> str:
    """List jobs by task, as in "Linear regression M = 100, 500", with spaces that do not break."""
    sizes: dict[str, list[str]] = {}
    for job in jobs:
        sizes.setdefault(job.task.title, []).append(f"{job.coreset_size:,}")
    return " and ".join(
        f"{title} M\u00a0=\u00a0{', '.join(found)}" for title, found in sizes.items()
    )
