"""How the figures look. Takes the tables of figure_data; leaves matplotlib's global state alone.

Every figure is as wide as the paper's two columns, with type of 7 points and more: it is printed as
it is. Titles and notes are left to the caption.
"""

import math
import re
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

__all__ = [
    "WIDTH",
    "curve_panels",
    "gate_panels",
    "grid_panels",
    "save",
    "start_panels",
    "theorem_panel",
]

WIDTH = 6.75  # inches, of both columns
_SMALL, _NORMAL = 7.0, 7.5  # points

# Okabe and Ito's colours, which the colour-blind can tell apart.
BLUE, ORANGE, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
_TASK_COLOURS = dict(zip(TASKS, (BLUE, "#E69F00", GREEN, PINK, "#56B4E9", ORANGE), strict=True))
_SIZE_STYLES = (("-", "o"), ("--", "s"), (":", "D"), ("-.", "v"))
_DASHES: tuple[Any, ...] = ("-", (0, (6, 1.5)), (0, (3, 1.5)), (0, (4, 1, 1, 1)), (0, (1, 1)))
_DASHES += ((0, (4, 1, 1, 1, 1, 1)),)
_SYMBOLS = {"γ": r"\gamma", "d0": "d_0", "r": "r"}
_LOWEST_STATISTIC = 1e-3
_FEW = 100  # points of a line that are also marked
_LEGEND_ROW = 0.17  # height in inches


def _figure(rows: int, columns: int, height: float, **shared: Any) -> tuple:
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(w_pad=0.03, h_pad=0.03)
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
    axis.tick_params(labelsize=_SMALL, length=2.5, pad=2)
    axis.grid(True, color="0.9", lw=0.5)
    axis.set_axisbelow(True)


def _empty(axis: Any, text: str = "no results") -> None:
    axis.text(0.5, 0.5, text, transform=axis.transAxes, ha="center", va="center", color="0.4",
              fontsize=_SMALL)  # fmt: skip
    for side in ("top", "right", "bottom", "left"):
        axis.spines[side].set_color("0.8")
    axis.tick_params(left=False, bottom=False, labelleft=False, labelbottom=False)


def _around(figure: Any, legends: Sequence[list[Line2D]]) -> None:
    """Put the legends below, each in as many rows as it needs."""
    height = figure.get_size_inches()[1]
    floor = 0.04
    for handles in reversed(legends):
        labels = [re.sub(r"[${}^_]|\\\\[a-z]+", "", str(handle.get_label())) for handle in handles]
        widest = max(map(len, labels))
        columns = min(len(handles), int((WIDTH - 0.2) / (0.052 * widest + 0.45)))
        figure.legend(
            handles=handles, loc="lower center", ncols=columns, fontsize=_SMALL, frameon=False,
            bbox_to_anchor=(0.5, floor / height), handlelength=2.2, handletextpad=0.5,
            borderaxespad=0.0, borderpad=0.1, columnspacing=1.2, labelspacing=0.3,
        )  # fmt: skip
        floor += _LEGEND_ROW * math.ceil(len(handles) / columns) + 0.02
    below = (floor + 0.03) / height
    figure.get_layout_engine().set(rect=(0.0, below, 1.0, 1.0 - below))
    figure.align_ylabels()


def grid_panels(
    panels: Sequence[tuple[str, str, pd.DataFrame]],
    column: str,
    sizes: Sequence[int],
    label: str,
    unity: str | None = None,
) -> Figure:
    """Draw final errors against a parameter, a line per task and M.

    ``panels`` are (title, method, table). An infinite value is a triangle at the upper edge, zero
    one at the lower. ``unity`` is the label of a black line at one.
    """
    rows = 1 if len(panels) == 1 else 2
    columns = len(panels) // rows
    figure, axes = _figure(rows, columns, 4.2 if rows == 1 else 4.8, sharey=True)
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
        axis.set_xlabel(_parameter_name(method), fontsize=_NORMAL)
        axis.set_title(heading, fontsize=_NORMAL)
        _log(axis, "x", 12 if rows == 1 else 5)
    for axis in axes[:, 0]:
        axis.set_ylabel(label, fontsize=_NORMAL)
        _log(axis, "y", 10)
    colours = [
        Line2D([], [], color=_TASK_COLOURS[name], lw=2.5, label=task.title)
        for name, task in TASKS.items()
    ]
    styles = []
    for size in sizes:
        dash, marker = _SIZE_STYLES[(len(sizes) - 1 - sizes.index(size)) % 4]
        styles.append(
            Line2D([], [], color="0.3", ls=dash, marker=marker, ms=3.5, label=f"M = {size:,}")
        )
    if unity:
        styles.append(Line2D([], [], color="black", lw=1.2, label=unity))
    if any(np.isinf(table[column]).any() for _, _, table in panels if len(table)):
        styles.append(Line2D([], [], color="0.3", ls="", marker=6, ms=5, label="infinite"))
    _around(figure, [colours, styles])
    return figure


def _parameter_name(method: str) -> str:
    symbol = _SYMBOLS[METHODS[method].symbol]
    words = {"r": "initial distance", "d_0": "initial lower bound", r"\gamma": "learning rate"}
    return rf"{words[symbol]} ${symbol}$"


def _line(axis: Any, x: Any, y: Any, colour: str, dash: Any, marker: str, shift: float) -> None:
    x, y = np.asarray(x, float), np.asarray(y, float)
    shown = np.isfinite(y) & (y > 0)
    style = {"color": colour, "ls": dash, "lw": 1.0, "marker": marker, "ms": 3.0}
    axis.plot(x, np.where(shown, y, np.nan), **style, alpha=0.9)
    for at, height, arrow in ((np.isposinf(y), 1.0, 6), (y == 0, 0.0, 7)):
        if at.any():  # an unclipped line without points would upset the layout
            axis.plot(
                shift * x[at], np.full(at.sum(), height), transform=axis.get_xaxis_transform(),
                ls="", marker=arrow, ms=5, color=colour, clip_on=False, zorder=5,
            )  # fmt: skip


def curve_panels(
    table: pd.DataFrame,
    panels: Sequence[tuple[str, str]],
    families: Sequence[tuple[str, bool, str, str]],
) -> Figure:
    """Draw median traces, a panel per (key, title), colours by family, shades by parameter.

    ``families`` are (method, hot_start, colour, label); ADAM, whose one line is the best of its
    grid, names its learning rate in the panel. All panels have the same errors, up the side.
    """
    columns = 3 if len(panels) > 4 else 2
    rows = -(-len(panels) // columns)
    figure, axes = _figure(rows, columns, 1.95 * rows + 0.6, sharey=True)
    shades: dict[tuple[str, float], Any] = {}
    for number, (axis, (key, heading)) in enumerate(zip(axes.flat, panels, strict=True)):
        axis.set_title(heading, fontsize=_NORMAL)
        lines = table[table["panel"] == key]
        if lines.empty:
            _empty(axis)
            continue
        for method, hot_start, colour, _ in families:
            chosen = lines[(lines["method"] == method) & (lines["hot_start"] == hot_start)]
            values = sorted(table.loc[table["method"] == method, "parameter"].unique())
            for parameter, line in chosen.groupby("parameter"):
                order = 0 if method == "adam" else values.index(parameter)
                look = {"color": _shade(colour, order), "ls": _DASHES[order % len(_DASHES)]}
                axis.plot(line["evaluations"], _positive(line["z2"]), lw=1.1, **look)
                if method == "adam":
                    text = rf"ADAM: $\gamma = {_power(parameter)}$"
                    place = {"transform": axis.transAxes, "fontsize": _SMALL, "color": colour}
                    axis.text(0.03, 0.04, text, **place)
                else:
                    shades[METHODS[method].symbol, parameter] = order
        _log(axis, "x", 6)
        _x_label(axis, number, rows, columns)
    _shared_errors(axes)
    colours = [Line2D([], [], color=colour, lw=2.5, label=name) for *_, colour, name in families]
    styles = [
        Line2D([], [], color=_shade("#222222", order), ls=_DASHES[order % len(_DASHES)], lw=1.1,
               label=rf"${_SYMBOLS[symbol]} = {_power(value)}$")
        for (symbol, value), order in sorted(shades.items())
    ]  # fmt: skip
    _around(figure, [_once(colours), *([styles] if styles else [])])
    return figure


def _positive(errors: pd.Series) -> np.ndarray:
    return np.where(np.isfinite(errors) & (errors > 0), errors, np.nan)


def _x_label(axis: Any, number: int, rows: int, columns: int) -> None:
    if number >= (rows - 1) * columns:
        axis.set_xlabel("log-potential evaluations", fontsize=_NORMAL)


def _shared_errors(axes: np.ndarray) -> None:
    """Name the errors at the left of every row; one range for all."""
    for axis in axes[:, 0]:
        axis.set_ylabel("average squared z-score", fontsize=_NORMAL)
    _log(axes.flat[0], "y", 10)
    for axis in list(axes.flat)[1:]:
        axis.tick_params(labelsize=_SMALL, length=2.5, pad=2)
        axis.grid(True, color="0.9", lw=0.5)


def start_panels(
    table: pd.DataFrame,
    panels: Sequence[tuple[str, str]],
    families: Sequence[tuple[str, bool, str, str]],
) -> Figure:
    """Draw median traces from two starts, a panel per (key, title), a colour per family."""
    figure, axes = _figure(1, len(panels), 2.75, sharey=True)
    dashes = {"near": "-", "far": (0, (4, 1.5))}
    for number, (axis, (key, heading)) in enumerate(zip(axes.flat, panels, strict=True)):
        axis.set_title(heading, fontsize=_NORMAL)
        for method, hot_start, colour, _ in families:
            chosen = table[(table["panel"] == key) & (table["method"] == method)]
            chosen = chosen[chosen["hot_start"] == hot_start]
            for start, line in chosen.groupby("start"):
                look = {"color": colour, "ls": dashes[str(start)], "lw": 1.2}
                axis.plot(line["evaluations"], _positive(line["z2"]), **look)
        _log(axis, "x", 7)
        _x_label(axis, number, 1, len(panels))
    _shared_errors(axes)
    colours = [Line2D([], [], color=colour, lw=2.5, label=name) for *_, colour, name in families]
    words = {"near": "authors' start", "far": "θ₀ ~ N(0, I)"}
    styles = [
        Line2D([], [], color="0.2", ls=dash, lw=1.2, label=words[start])
        for start, dash in dashes.items()
    ]
    _around(figure, [colours, styles])
    return figure


def _once(handles: list[Line2D]) -> list[Line2D]:
    return list({handle.get_label(): handle for handle in handles}.values())


def _shade(colour: str, order: int) -> tuple[float, ...]:
    """Mix a colour with white, the more the later in the grid."""
    white = min(0.13 * order, 0.6)
    return tuple((1 - white) * part + white for part in to_rgb(colour))


def theorem_panel(table: pd.DataFrame, bound: float) -> Figure:
    """Draw squared distances from the exact weights, and what the theorem says of them."""
    figure, axes = _figure(1, 1, 2.9)
    axis, time = axes[0, 0], table["iteration"]
    for name, colour in (("algorithm_2", ORANGE), ("appendix_c", BLUE)):
        axis.plot(time, table[name], color=colour, lw=1.3)
    late = table[time >= 1_000]
    rate = late["algorithm_2"].iloc[0] * (late["iteration"].iloc[0] / late["iteration"]) ** 0.5
    axis.plot(late["iteration"], rate, color="0.5", lw=1.0, ls="--")
    axis.axhline(bound, color="0.5", lw=1.0, ls=":")
    _log(axis, "x"), _log(axis, "y", 9)
    axis.set_xlabel("iteration", fontsize=_NORMAL)
    axis.set_ylabel("mean of ‖w − w*‖²", fontsize=_NORMAL)
    handles = [
        Line2D([], [], color=ORANGE, lw=2, label="Algorithm 2"),
        Line2D([], [], color=BLUE, lw=2, label="Appendix C.1"),
        Line2D([], [], color="0.5", lw=1, ls="--", label="c/√t"),
        Line2D([], [], color="0.5", lw=1, ls=":", label="MB², the proof's bound"),
    ]
    _around(figure, [handles])
    return figure


def gate_panels(table: pd.DataFrame, panels: Sequence[tuple[str, str]], threshold: float) -> Figure:
    """Draw gradient norms and hot-start statistics while the weights are held."""
    figure, axes = _figure(2, 3, 4.5)
    for number, (axis, (key, heading)) in enumerate(zip(axes.flat, panels, strict=True)):
        axis.set_title(heading, fontsize=_NORMAL)
        lines = table[table["task"] == key]
        if lines.empty:
            _empty(axis)
            continue
        twin = axis.twinx()
        ends = lines.groupby("trial")["iteration"].max().sort_values(kind="stable")
        for trial, line in lines.groupby("trial", sort=True):
            bold = trial == ends.index[len(ends) // 2]
            look = {"lw": 1.0, "zorder": 3} if bold else {"lw": 0.5, "alpha": 0.3, "zorder": 2}
            look["rasterized"] = not bold
            norm = line["gradient_norm"].to_numpy(float)
            axis.plot(line["iteration"], np.where(norm > 0, norm, np.nan), color=BLUE, **look)
            statistic = line["statistic"].to_numpy(float)
            shown = np.where(
                np.isfinite(statistic), np.maximum(statistic, _LOWEST_STATISTIC), np.nan
            )
            if bold and np.isfinite(shown).sum() < _FEW:
                look |= {"marker": "o", "ms": 1.6}
            twin.plot(line["iteration"], shown, color=GREEN, **look)
            if line["passed_at"].iloc[0] > 0:
                axis.plot(
                    line["passed_at"].iloc[0], 0.0, transform=axis.get_xaxis_transform(),
                    marker=10, ms=4.5, color="0.25", clip_on=False, zorder=6,
                )  # fmt: skip
        twin.axhline(threshold, color=ORANGE, lw=1.2)
        norms = lines["gradient_norm"].astype(float)
        norms = norms[np.isfinite(norms) & (norms > 0)]
        if len(norms):
            axis.set_ylim(norms.quantile(0.002) / 2, 2 * norms.max())
        _log(axis, "y", 6), _log(twin, "y", 5)
        twin.grid(False)
        axis.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        axis.set_xlim(left=0)
        axis.tick_params(axis="y", labelcolor=BLUE)
        twin.tick_params(axis="y", labelcolor=GREEN)
        if number % 3 == 0:
            axis.set_ylabel("gradient norm", color=BLUE, fontsize=_NORMAL)
        if number % 3 == 2:
            twin.set_ylabel("hot-start statistic", color=GREEN, fontsize=_NORMAL)
        if number >= 3:
            axis.set_xlabel("iteration", fontsize=_NORMAL)
    handles = [
        Line2D([], [], color=BLUE, lw=2, label="gradient norm (left)"),
        Line2D([], [], color=GREEN, lw=2, label="statistic (right)"),
        Line2D([], [], color=ORANGE, lw=2, label=f"threshold c = {threshold:g}"),
        Line2D([], [], color="0.25", ls="", marker=10, ms=5, label="weights released"),
    ]
    _around(figure, [handles])
    return figure


def save(figure: Figure, folder: Path, name: str, title: str = "", caption: str = "") -> list[Path]:
    """Write a figure as PNG and PDF, title and caption inside, the time of day not."""
    png, pdf = folder / f"{name}.png", folder / f"{name}.pdf"
    about = {"Title": title, "Description": caption, "Software": None}
    figure.savefig(png, dpi=240, metadata=about)
    figure.set_layout_engine("none")  # laid out by now
    about = {"Title": title, "Subject": caption, "CreationDate": None, "Creator": None}
    figure.savefig(pdf, dpi=300, metadata=about)
    return [png, pdf]
