"""Intervals of parameters of every size."""

import dataclasses

from coremcmc.report.intervals import by_size
from coremcmc.report.parameters import parameters_of
from tests.report.report_fits import make_fit


def test_parameters_of_like_size_share_an_axis():
    fit = make_fit({"small": (2,), "large": (2,)})
    scaled = {name: x * (1_000.0 if name == "large" else 0.01) for name, x in fit.sampled.items()}
    parameters, _ = parameters_of(dataclasses.replace(fit, sampled=scaled), 10)
    groups = [[p.name for p in group] for group in by_size(parameters)]
    assert groups == [["large[0]", "large[1]"], ["small[0]", "small[1]"]]
