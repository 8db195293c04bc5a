"""Small charts as SVG text: an axis, a chart that is drawn into, a figure that the page sets.

Colours come from the page's style sheet through class names, so that one drawing serves light,
dark and paper. No element has an id, so that many charts live on one page.
"""

import math
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from coremcmc.report.formatting import log_tick_labels, tick_labels

__all__ = ["Axis", "Chart", "Figure", "finite_range", "thinned"]

Number = float | int


@dataclass(frozen=True)
class Axis:
    """Maps values to pixels.

    Attributes
    ----------
    low, high
        The values at the two ends.
    start, end
        The pixels at the two ends.
    is_log
        Whether equal ratios take equal room.
    """

    low: Number
    high: Number
    start: Number
    end: Number
    is_log: bool = False

    def place(self, values: Any) -> Any:
        """Return pixels, in the shape of the values; NaN for what cannot be placed."""
        values = np.asarray(values, dtype=float)
        low, high = self.low, self.high
        if self.is_log:
            values = np.log10(np.where(values > 0, values, np.nan))
            low, high = math.log10(low), math.log10(high)
        return self.start + (values - low) * ((self.end - self.start) / (high - low))

    def ticks(self, most: int = 5) -> list[tuple[float, str]]:
        """Return (pixel, label) of at most so many ticks at round values."""
        if self.is_log:
            values = _log_ticks(self.low, self.high, most)
            labels = log_tick_labels(values)
        else:
            values = _linear_ticks(self.low, self.high, most)
            labels = tick_labels(values)
        return [(float(p), t) for p, t in zip(self.place(values), labels, strict=True)]


def _linear_ticks(low: Number, high: Number, most: int) -> list[float]:
    step = 10.0 ** math.floor(math.log10((high - low) / most))
    for factor in (1, 2, 5, 10, 20, 50):
        first, last = math.ceil(low / (factor * step) - 1e-9), high / (factor * step) + 1e-9
        if math.floor(last) - first + 1 <= most:
            break
    return [float(i * factor * step) for i in range(first, math.floor(last) + 1)]


def _log_ticks(low: Number, high: Number, most: int) -> list[float]:
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    decades = last - first + 1
    if decades >= 2:
        stride = math.ceil(decades / most)
        return [10.0**k for k in range(first, last + 1) if (k - first) % stride == 0]
    within = [factor * 10.0**k for k in range(first - 1, last + 1) for factor in (1, 2, 5)]
    found = [value for value in within if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
    return found if len(found) >= 2 else _linear_ticks(low, high, most)


class Chart:
    """A chart under construction; what is drawn first lies below.

    Parameters
    ----------
    label
        What the chart shows, in words, for those who do not see it.
    x, y
        The ranges of the axes.
    size
        Width and height in pixels, at which text has the size of the page's small print.
    margins
        Left, right, top and bottom.
    """

    def __init__(
        self,
        label: str,
        x: tuple[Number, Number],
        y: tuple[Number, Number],
        *,
        size: tuple[int, int] = (340, 190),
        margins: tuple[int, int, int, int] = (50, 10, 24, 34),
        x_log: bool = False,
        y_log: bool = False,
    ):
        self.label, self.size = label, size
        left, right, top, bottom = margins
        self.x = Axis(*_widened(x, x_log), left, size[0] - right, x_log)
        self.y = Axis(*_widened(y, y_log), size[1] - bottom, top, y_log)
        self._below: list[str] = []
        self._inside: list[str] = []
        self._above: list[str] = []

    # -- marks, cut off at the frame ----------------------------------------------------------

    def line(self, x: Any, y: Any, kind: str) -> None:
        """Join points; a gap where one is not finite."""
        path = _path(self.x.place(x), self.y.place(y))
        if path:
            self._inside.append(f'<path class="line {kind}" d="{path}"/>')

    def area(self, x: Any, low: Any, high: Any, kind: str) -> None:
        """Fill between two lines of finite points."""
        across, below, above = self.x.place(x), self.y.place(low), self.y.place(high)
        points = [*zip(across, above, strict=True), *zip(across[::-1], below[::-1], strict=True)]
        outline = " ".join(f"{_short(a)},{_short(b)}" for a, b in points)
        self._inside.append(f'<polygon class="{kind}" points="{outline}"/>')

    def bar(self, x: tuple[Number, Number], y: tuple[Number, Number], kind: str) -> None:
        """Fill a rectangle given in values."""
        (x0, x1), (y0, y1) = sorted(self.x.place(x)), sorted(self.y.place(y))
        self._inside.append(
            f'<rect class="{kind}" x="{_short(x0)}" y="{_short(y0)}" '
            f'width="{_short(x1 - x0)}" height="{_short(y1 - y0)}"/>'
        )

    def dots(self, x: Any, y: Any, kind: str, radius: Number = 2.5) -> None:
        """Mark points."""
        for a, b in zip(self.x.place(x), self.y.place(y), strict=True):
            if math.isfinite(a) and math.isfinite(b):
                self._inside.append(
                    f'<circle class="{kind}" cx="{_short(a)}" cy="{_short(b)}" r="{radius}"/>'
                )

    def vertical(self, x: Number, kind: str) -> None:
        """Draw a line from top to bottom."""
        self.line([x, x], [self.y.low, self.y.high], kind)

    def horizontal(self, y: Number, kind: str) -> None:
        """Draw a line from side to side."""
        self.line([self.x.low, self.x.high], [y, y], kind)

    # -- text, anywhere -----------------------------------------------------------------------

    def text(
        self,
        pixel: tuple[Number, Number],
        text: str,
        kind: str = "",
        anchor: str = "start",
        full: str | None = None,
    ) -> None:
        """Write at a pixel; ``full`` is shown where the pointer rests."""
        hover = f"<title>{escape(full)}</title>" if full and full != text else ""
        self._above.append(
            f'<text class="{kind}" x="{_short(pixel[0])}" y="{_short(pixel[1])}" '
            f'text-anchor="{anchor}">{escape(text)}{hover}</text>'
        )

    def frame(
        self, x_title: str = "", y_title: str = "", x_ticks: int = 5, y_ticks: int = 5
    ) -> None:
        """Draw the axes: light lines at the ticks of y, labels, titles."""
        (x0, x1), (y0, y1) = (self.x.start, self.x.end), (self.y.start, self.y.end)
        if y_ticks:
            for place, text in self.y.ticks(y_ticks):
                self._below.append(_rule(x0, place, x1, place, "grid"))
                self.text((x0 - 6, place + 3.5), text, "tick", "end")
        if x_ticks:
            self._below.append(_rule(x0, y0, x1, y0, "axis"))
            previous = -math.inf
            for place, text in self.x.ticks(x_ticks):
                half = 3.4 * len(text)
                centre = min(max(place, half), self.size[0] - half)
                if centre - half < previous + 4:
                    continue
                previous = centre + half
                self._below.append(_rule(place, y0, place, y0 + 4, "axis"))
                self.text((centre, y0 + 15), text, "tick", "middle")
        if x_title:
            self.text(((x0 + x1) / 2, y0 + 30), x_title, "title", "middle")
        if y_title:
            self.text((0, y1 - 12), y_title, "title")

    def svg(self) -> str:
        """Return the drawing. What lies outside of the frame is cut off by an inner drawing."""
        width, height = self.size
        x0, x1, y0, y1 = self.x.start, self.x.end, self.y.end, self.y.start
        box = f"{x0 - 1} {y0 - 1} {x1 - x0 + 2} {y1 - y0 + 2}"
        place = 'x="{}" y="{}" width="{}" height="{}"'.format(*box.split())
        return (
            f'<svg class="chart" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img" aria-label="{escape(self.label)}">'
            f"{''.join(self._below)}"
            f'<svg {place} viewBox="{box}">{"".join(self._inside)}</svg>'
            f"{''.join(self._above)}</svg>"
        )


@dataclass(frozen=True)
class Figure:
    """A drawing with a title and a caption that says how to read it.

    Attributes
    ----------
    title
        What is shown.
    drawings
        One drawing, or several small ones, as SVG.
    caption
        How to read it, and what would be bad.
    key
        Kinds of marks and what they mean: (class of the mark, words).
    """

    title: str
    drawings: tuple[str, ...]
    caption: str
    key: tuple[tuple[str, str], ...] = ()


def finite_range(values: Any, *, positive: bool = False) -> tuple[Number, Number] | None:
    """Return the smallest and largest finite (and positive) value; None where there is none."""
    values = np.asarray(values, dtype=float).ravel()
    values = values[np.isfinite(values) & (values > 0 if positive else True)]
    return (float(values.min()), float(values.max())) if values.size else None


def thinned(x: Any, y: Any, columns: int = 240) -> tuple[np.ndarray, np.ndarray]:
    """Keep the lowest and the highest point of each column of pixels, in their order.

    What is left looks as the whole does, at any number of points. A column in which nothing is
    finite keeps one such point, so that the gap remains.
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if len(x) <= 2 * columns:
        return x, y
    kept = []
    for part in np.array_split(np.arange(len(x)), columns):
        known = part[np.isfinite(y[part])]
        if known.size:
            kept += sorted({int(known[np.argmin(y[known])]), int(known[np.argmax(y[known])])})
        else:
            kept.append(int(part[0]))
    return x[kept], y[kept]


def _widened(limits: tuple[Number, Number], is_log: bool) -> tuple[Number, Number]:
    """Give a range of no width some."""
    low, high = float(limits[0]), float(limits[1])
    if is_log:
        return (low, high) if high > low * 1.001 else (low / 2, high * 2)
    if high - low > 1e-9 * max(abs(low), abs(high)):
        return low, high
    room = 0.5 * abs(low) or 0.5
    return low - room, high + room


def _path(x: np.ndarray, y: np.ndarray) -> str:
    parts, pen_down = [], False
    for a, b in zip(x, y, strict=True):
        if math.isfinite(a) and math.isfinite(b):
            parts.append(f"{'L' if pen_down else 'M'}{_short(a)} {_short(b)}")
            pen_down = True
        else:
            pen_down = False
    return "".join(parts)


def _rule(x0: Number, y0: Number, x1: Number, y1: Number, kind: str) -> str:
    a, b, c, d = map(_short, (x0, y0, x1, y1))
    return f'<line class="{kind}" x1="{a}" y1="{b}" x2="{c}" y2="{d}"/>'


def _short(pixel: Number) -> str:
    """Write a pixel to a tenth; what is far outside stays near, for browsers count in 32 bits."""
    return f"{min(max(float(pixel), -9e3), 9e3):.1f}".removesuffix(".0")
