"""Numbers and names as a person reads them.

Tables keep the plain hyphen, so that a number copied from one is a number elsewhere; figures have
the minus sign.
"""

import math
import unicodedata
from typing import Any

import numpy as np

__all__ = [
    "MISSING",
    "cell",
    "count",
    "decimals_for",
    "duration",
    "fixed",
    "log_tick_labels",
    "number",
    "percent",
    "sentence",
    "shorten",
    "tick_labels",
]

MISSING = "–"
_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_MOST_DECIMALS = 9


def number(value: Any, digits: int = 3) -> str:
    """Write a number to so many significant digits: 0.0123, 1,235, 1.2e-07."""
    value = float(value)
    if not math.isfinite(value):
        return _not_finite(value)
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)))
    if exponent < -4 or exponent >= 9:
        return f"{value:.{digits - 1}e}"
    return f"{value:,.{max(0, digits - 1 - exponent)}f}"


def count(value: Any) -> str:
    """Write a whole number with thousands separated."""
    value = float(value)
    return f"{value:,.0f}" if math.isfinite(value) else _not_finite(value)


def decimals_for(spread: Any) -> int | None:
    """Return how many decimals show two digits of a spread; None where fixed notation is no use."""
    spread = float(spread)
    if not math.isfinite(spread) or spread <= 0:
        return None
    decimals = 1 - math.floor(math.log10(spread))
    return max(0, decimals) if decimals <= _MOST_DECIMALS else None


def fixed(value: Any, decimals: int | None) -> str:
    """Write a number to so many decimals, or to four significant digits where that is None."""
    value = float(value)
    if not math.isfinite(value):
        return _not_finite(value)
    if decimals is None or abs(value) >= 1e12:
        return number(value, 4)
    text = f"{value:,.{decimals}f}"
    return text.removeprefix("-") if not text.strip("-0.,") else text


def percent(share: Any) -> str:
    """Write a share as per cent: 0.5 %, 12 %."""
    share = 100 * float(share)
    return f"{number(share, 2)} %" if math.isfinite(share) else MISSING


def duration(seconds: Any) -> str:
    """Write a time: 0.8 s, 12.3 s, 4 min 31 s, 2 h 5 min."""
    seconds = float(seconds)
    if not math.isfinite(seconds):
        return MISSING
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    if seconds < 3599.5:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours:,} h {minutes} min"


def sentence(text: str) -> str:
    """Begin with a capital, end with a full stop."""
    text = text.strip()
    if not text:
        return text
    text = text[0].upper() + text[1:]
    return text if text[-1] in ".!?…" else f"{text}."


def cell(value: Any, longest: int = 40) -> str:
    """Write a value of the user's data: floats to four digits, text cut where it is long."""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        value = float(value)
        if not math.isfinite(value):
            return _not_finite(value)
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e9 else f"{value:.4g}"
    return shorten(str(value), longest)


def shorten(text: str, width: int) -> str:
    """Cut the middle out of a text that is wider than so many letters."""
    if sum(map(_width, text)) <= width:
        return text
    head = tail = ""
    while True:
        is_head = sum(map(_width, head)) <= sum(map(_width, tail))
        letter = text[len(head)] if is_head else text[-1 - len(tail)]
        if sum(map(_width, head + tail + letter)) > width - 1:
            return f"{head}…{tail}"
        head, tail = (head + letter, tail) if is_head else (head, letter + tail)


def tick_labels(values: list[float]) -> list[str]:
    """Write the ticks of a linear axis alike, with no more decimals than they need."""
    largest = max((abs(value) for value in values), default=0.0)
    if largest and not 1e-4 <= largest < 1e7:
        return [_power(value) for value in values]
    for decimals in range(_MOST_DECIMALS):
        if all(abs(round(v, decimals) - v) <= 1e-9 * max(largest, 1e-12) for v in values):
            break
    return [f"{value:,.{decimals}f}".replace("-", "−") for value in values]


def _power(value: float) -> str:
    """Write 2·10⁷, or 10⁷."""
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)) + 1e-12)
    factor = f"{value / 10.0**exponent:.3g}".replace("-", "−")
    power = f"10{str(exponent).translate(_SUPERSCRIPTS)}"
    return {"1": power, "−1": f"−{power}"}.get(factor, f"{factor}·{power}")


def log_tick_labels(values: list[float]) -> list[str]:
    """Write the ticks of a logarithmic axis alike: 0.01, 1, 100, or 10⁻³, 1, 10³."""
    if values and min(values) >= 1e-3 and max(values) < 1e5:
        return [f"{value:,.10g}" for value in values]
    return ["1" if value == 1 else _power(value) for value in values]


def _width(letter: str) -> int:
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return MISSING
    return "∞" if value > 0 else "-∞"
