"""Axes, lines and their ticks."""

import re

import numpy as np
import pytest

from coremcmc.report.svg import Axis, Chart, thinned


def test_ticks_are_round_and_inside():
    for low, high in [(0.0, 1.0), (-3.2, 7.9), (1e-9, 3e-9), (12_345.0, 12_346.0), (-5e8, 2e9)]:
        axis = Axis(low, high, 0.0, 100.0)
        places = [place for place, _ in axis.ticks(5)]
        assert 2 <= len(places) <= 5, (low, high)
        assert all(-1e-6 <= place <= 100 + 1e-6 for place in places)
        assert len({label for _, label in axis.ticks(5)}) == len(places)
    log = Axis(1e-7, 1e3, 0.0, 100.0, True)
    assert [label for _, label in log.ticks(6)] == ["10⁻⁷", "10⁻⁵", "10⁻³", "10⁻¹", "10¹", "10³"]
    assert log.place(1e-2) == pytest.approx(50.0)
    assert np.isnan(log.place([-1.0, 0.0])).all()


def test_thinning_keeps_extremes_and_gaps():
    x = np.arange(10_000.0)
    y = np.sin(x / 50)
    y[1234], y[4000:4200] = 9.0, np.nan
    kept_x, kept_y = thinned(x, y, 100)
    assert len(kept_x) <= 200
    assert (np.diff(kept_x) > 0).all()
    assert np.nanmax(kept_y) == 9.0
    assert np.isnan(kept_y).any()


def test_lines_have_gaps_where_values_are_missing():
    chart = Chart("gaps", (0.0, 4.0), (0.0, 1.0))
    chart.line([0, 1, 2, 3, 4], [0.1, 0.2, np.nan, 0.4, 0.5], "c1")
    assert re.search(r'd="([^"]*)"', chart.svg()).group(1).count("M") == 2
