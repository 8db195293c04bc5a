"""How the figures look. Takes the tables of figure_data; leaves matplotlib's global state alone."""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, NullLocator

from experiments.methods import METHODS
from experiments.tasks import TASKS

__all__ = ["curve_panels", "gate_panels", "grid_panels", "save"]

# Okabe and Ito's colours, which the colour-blind can tell apart.
BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"
_TASK_COLOURS = dict(
    zip(TASKS, (BLUE, "#E69F00", GREEN, "#CC79A7", "#56B4E9", ORANGE), strict=True)
)
_SIZE_STYLES = (("-", "o"), ("--", "s"), (":", "D"), ("-.", "v"))
_DASHES: tuple[Any, ...] = ("-", (0, (6, 1.5)), (0, (3, 1.5)), (0, (4, 1, 1, 1)), (0, (1, 1)))
_DASHES += ((0, (4, 1, 1, 1, 1, 1)),)
_SYMBOLS = {"γ": r"\gamma", "d0": "d_0", "r": "r"}
_LOWEST_STATISTIC = 1e-3
_LEGEND_ROW, _NOTE_ROW = 0.25, 0.16  # heights in inches


def _figure(rows: int, columns: int, size: tuple[float, float], **shared: Any) -> tuple:
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(w_pad=0.06, h_pad=0.06)
    return figure, figure.subplots(rows, columns, squeeze=False, **shared)


def _power(value: float) -> str:
    return rf"10^{{{round(np.log10(value))}}}"


def _log(axis: Any, which: str, ticks: int = 7) -> None:
    """Make an axis logarithmic: at least two decades, powers of ten alone are labelled."""
    getattr(axis, f"set_{which}scale")("log")
    low, high = getattr(axis, f"get_{which}lim")()
    if low <= 0 or high / low < 100:
        middle = np.sqrt(low * high) if low > 0 else 1.0  # nothing is drawn
        getattr(axis, f"set_{which}lim")(middle / 10, middle * 10)
    line = getattr(axis, f"{which}axis")
    line.set_major_locator(LogLocator(numticks=ticks))
    line.set_minor_locator(NullLocator())
    line.set_minor_formatter(NullFormatter())
    axis.tick_params(labelsize=9)
    axis.grid(True, color="0.9", lw=0.6)
    axis.set_axisbelow(True)


def _empty(axis: Any, text: str = "no results") -> None:
    axis.text(0.5, 0.5, text, transform=axis.transAxes, ha="center", va="center", color="0.4")
    for side in ("top", "right", "bottom", "left"):
        axis.spines[side].set_color("0.8")
    axis.tick_params(left=False, bottom=False, labelleft=False, labelbottom=False)


def _around(figure: Any, title: str, note: str, legends: Sequence[list[Line2D]] = ()) -> None:
    """Put the title above, and the legends, one row each, and the note below."""
    width, height = figure.get_size_inches()
    lines = textwrap.wrap(note, int(15 * width))
    floor = _NOTE_ROW * len(lines) + 0.06
    figure.text(
        0.5, 0.05 / height, "\n".join(lines), ha="center", va="bottom", fontsize=8, color="0.3"
    )
    for number, handles in enumerate(reversed(legends)):
        figure.legend(
            handles=handles, loc="lower center", ncols=len(handles), fontsize=9, frameon=False,
            bbox_to_anchor=(0.5, (floor + _LEGEND_ROW * number) / height),
            borderaxespad=0.0, borderpad=0.1, columnspacing=1.6,
        )  # fmt: skip
    below = (floor + _LEGEND_ROW * len(legends) + 0.05) / height
    figure.get_layout_engine().set(rect=(0.0, below, 1.0, 1.0 - below))
    figure.suptitle(title, fontsize=12)
    figure.align_ylabels()


def grid_panels(
    panels: Sequence[tuple[str, str, pd.DataFrame]],
    column: str,
    sizes: Sequence[int],
    label: str,
    title: str,
    note: str,
    unity: str | None = None,
) -> Figure:
    """Draw final errors against a parameter, a line per task and M.

    ``panels`` are (title, method, table). An infinite value is a triangle at the upper edge, zero
    one at the lower. ``unity`` is the label of a black line at one.
    """
    rows = 1 if len(panels) == 1 else 2
    columns = len(panels) // rows
    shape = (10.4, 6.2) if rows == 1 else (13.5, 7.6)
    figure, axes = _figure(rows, columns, shape, sharey=True)
    for axis, (heading, method, table) in zip(axes.flat, panels, strict=True):
        if unity:
            axis.axhline(1.0, color="black", lw=1.2, zorder=1)
        for (task, size), line in table.groupby(["task", "coreset_size"], sort=False):
            dash, marker = _SIZE_STYLES[(len(sizes) - 1 - sizes.index(size)) % 4]
            shift = 10 ** (0.06 * (list(TASKS).index(task) - 2.5))  # of what lies at the edge
            colour = _TASK_COLOURS[task]
            _line(axis, line["parameter"], line[column], colour, dash, marker, shift)
        if table.empty:
            _empty(axis)
            continue
        axis.set_xscale("log")
        axis.set_xlabel(_parameter_name(method), fontsize=10)
        axis.set_title(heading, fontsize=10)
        _log(axis, "x", 12 if rows == 1 else 9)
    for axis in axes[:, 0]:
        axis.set_ylabel(label, fontsize=10)
        _log(axis, "y", 10)
    colours = [
        Line2D([], [], color=_TASK_COLOURS[name], lw=3, label=task.title)
        for name, task in TASKS.items()
    ]
    styles = []
    for size in sizes:
        dash, marker = _SIZE_STYLES[(len(sizes) - 1 - sizes.index(size)) % 4]
        styles.append(
            Line2D([], [], color="0.3", ls=dash, marker=marker, ms=5, label=f"M = {size:,}")
        )
    if unity:
        styles.append(Line2D([], [], color="black", lw=1.2, label=unity))
    if any(np.isinf(table[column]).any() for _, _, table in panels if len(table)):
        styles.append(Line2D([], [], color="0.3", ls="", marker=6, ms=7, label="infinite"))
    _around(figure, title, note, [colours, styles])
    return figure


def _parameter_name(method: str) -> str:
    symbol = _SYMBOLS[METHODS[method].symbol]
    words = {"r": "initial distance", "d_0": "initial lower bound", r"\gamma": "learning rate"}
    return rf"{words[symbol]} ${symbol}$"


def _line(axis: Any, x: Any, y: Any, colour: str, dash: Any, marker: str, shift: float) -> None:
    x, y = np.asarray(x, float), np.asarray(y, float)
    shown = np.isfinite(y) & (y > 0)
    style = {"color": colour, "ls": dash, "lw": 1.4, "marker": marker, "ms": 4.5}
    axis.plot(x, np.where(shown, y, np.nan), **style, alpha=0.9)
    for at, height, arrow in ((np.isposinf(y), 1.0, 6), (y == 0, 0.0, 7)):
        if at.any():  # an unclipped line without points would upset the layout
            axis.plot(
                shift * x[at], np.full(at.sum(), height), transform=axis.get_xaxis_transform(),
                ls="", marker=arrow, ms=7, color=colour, clip_on=False, zorder=5,
            )  # fmt: skip


def curve_panels(
    table: pd.DataFrame,
    panels: Sequence[tuple[str, str]],
    families: Sequence[tuple[str, bool, str, str]],
    title: str,
    note: str,
) -> Figure:
    """Draw median traces, a panel per (key, title), colours by family, shades by parameter.

    ``families`` are (method, hot_start, colour, label); ADAM, whose one line is the best of its
    grid, names its learning rate in the panel.
    """
    columns = 3 if len(panels) > 4 else 2
    rows = -(-len(panels) // columns)
    figure, axes = _figure(rows, columns, (4.1 * columns, 3.1 * rows + 0.8))
    shades: dict[tuple[str, float], Any] = {}
    for number, (axis, (key, heading)) in enumerate(zip(axes.flat, panels, strict=True)):
        axis.set_title(heading, fontsize=10)
        lines = table[table["panel"] == key]
        if lines.empty:
            _empty(axis)
            continue
        for method, hot_start, colour, _ in families:
            chosen = lines[(lines["method"] == method) & (lines["hot_start"] == hot_start)]
            values = sorted(table.loc[table["method"] == method, "parameter"].unique())
            for parameter, line in chosen.groupby("parameter"):
                order = 0 if method == "adam" else values.index(parameter)
                y = np.where(np.isfinite(line["z2"]) & (line["z2"] > 0), line["z2"], np.nan)
                look = {"color": _shade(colour, order), "ls": _DASHES[order % len(_DASHES)]}
                axis.plot(line["evaluations"], y, lw=1.6, **look)
                if method == "adam":
                    text = rf"ADAM: $\gamma = {_power(parameter)}$"
                    axis.text(0.03, 0.04, text, transform=axis.transAxes, fontsize=8, color=colour)
                else:
                    shades[METHODS[method].symbol, parameter] = order
        _log(axis, "x"), _log(axis, "y")
        axis.set_xlabel("log-potential evaluations", fontsize=10)
        if number % columns == 0:
            axis.set_ylabel("average squared z-score", fontsize=10)
    colours = [Line2D([], [], color=colour, lw=3, label=name) for *_, colour, name in families]
    styles = [
        Line2D([], [], color=_shade("#222222", order), ls=_DASHES[order % len(_DASHES)], lw=1.6,
               label=rf"${_SYMBOLS[symbol]} = {_power(value)}$")
        for (symbol, value), order in sorted(shades.items())
    ]  # fmt: skip
    _around(figure, title, note, [_once(colours), *([styles] if styles else [])])
    return figure


def _once(handles: list[Line2D]) -> list[Line2D]:
    return list({handle.get_label(): handle for handle in handles}.values())


def _shade(colour: str, order: int) -> tuple[float, ...]:
    """Mix a colour with white, the more the later in the grid."""
    white = min(0.13 * order, 0.6)
    return tuple((1 - white) * part + white for part in to_rgb(colour))


def gate_panels(
    table: pd.DataFrame,
    panels: Sequence[tuple[str, str]],
    threshold: float,
    title: str,
    note: str,
) -> Figure:
    """Draw gradient norms and hot-start statistics while the weights are held."""
    figure, axes = _figure(2, 3, (13.5, 7.2))
    for number, (axis, (key, heading)) in enumerate(zip(axes.flat, panels, strict=True)):
        axis.set_title(heading, fontsize=10)
        lines = table[table["task"] == key]
        if lines.empty:
            _empty(axis)
            continue
        twin = axis.twinx()
        for trial, line in lines.groupby("trial", sort=True):
            bold = trial == lines["trial"].min()
            look = {"lw": 1.3, "zorder": 3} if bold else {"lw": 0.6, "alpha": 0.25, "zorder": 2}
            look["rasterized"] = not bold
            for where, name, colour in (
                (axis, "gradient_norm", BLUE),
                (twin, "statistic", GREEN),
            ):
                y = line[name].to_numpy(float)
                floor = _LOWEST_STATISTIC if name == "statistic" else 0.0
                y = np.where(np.isfinite(y), np.maximum(y, floor), np.nan)
                where.plot(line["iteration"], np.where(y > 0, y, np.nan), color=colour, **look)
            if line["passed_at"].iloc[0] > 0:
                axis.plot(
                    line["passed_at"].iloc[0], 0.0, transform=axis.get_xaxis_transform(),
                    marker=10, ms=7, color="0.25", clip_on=False, zorder=6,
                )  # fmt: skip
        twin.axhline(threshold, color=ORANGE, lw=1.4)
        _log(axis, "y"), _log(twin, "y")
        twin.grid(False)
        axis.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axis.set_xlim(left=0)
        axis.tick_params(axis="y", labelcolor=BLUE)
        twin.tick_params(axis="y", labelcolor=GREEN)
        if number % 3 == 0:
            axis.set_ylabel("gradient norm", color=BLUE, fontsize=10)
        if number % 3 == 2:
            twin.set_ylabel("hot-start statistic", color=GREEN, fontsize=10)
        if number >= 3:
            axis.set_xlabel("iteration", fontsize=10)
    handles = [
        Line2D([], [], color=BLUE, lw=2, label="gradient norm (left axis)"),
        Line2D([], [], color=GREEN, lw=2, label="hot-start statistic (right axis)"),
        Line2D([], [], color=ORANGE, lw=2, label=f"threshold c = {threshold:g}"),
        Line2D([], [], color="0.25", ls="", marker=10, ms=7, label="weights released, each trial"),
    ]
    _around(figure, title, note, [handles])
    return figure


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG and PDF, without the time of day in them."""
    png, pdf = folder / f"{name}.png", folder / f"{name}.pdf"
    figure.savefig(png, dpi=150, metadata={"Software": None})
    figure.set_layout_engine("none")  # laid out by now
    figure.savefig(pdf, dpi=150, metadata={"CreationDate": None, "Creator": None})
    return [png, pdf]
