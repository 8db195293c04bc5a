"""The traces, whatever they hold."""

import dataclasses
import re

import numpy as np
import pytest

from tests.report.pages import numbers_in, page_of
from tests.report.report_fits import make_fit


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.0, 1e300, -1e-300])
def test_traces_full_of_one_value(value):
    fit = make_fit()
    traces = {
        name: np.full(x.shape, value) if x.dtype.kind == "f" else x
        for name, x in fit.traces.items()
    }
    page = page_of(dataclasses.replace(fit, traces=traces))
    assert "nan" not in "".join(re.findall(r'(?: d|points|x|y|cx|cy|width)="([^"]*)"', page.source))
    assert ("hold values that are not numbers" in page.text) == np.isnan(value)


def test_traces_and_draws_that_are_partly_not_numbers():
    fit = make_fit()
    rng = np.random.default_rng(1)

    def spoil(x):
        x = np.array(x, dtype=float)
        x[rng.random(x.shape) < 0.3] = np.nan
        x[rng.random(x.shape) < 0.1] = np.inf
        return x

    traces = {k: spoil(x) if x.dtype.kind == "f" else x for k, x in fit.traces.items()}
    sampled = {**fit.sampled, "beta": spoil(fit.sampled["beta"])}
    spoilt = dataclasses.replace(
        fit, traces=traces, sampled=sampled, sampled_positions=spoil(fit.sampled_positions)
    )
    page = page_of(spoilt)
    assert "Some draws are not numbers" in page.text
    assert "gradient_norm" in page.text
    _, rows = page.table("R-hat")
    assert rows[0][1] == "–"
    sigma = fit.sampled["sigma"]  # left whole
    assert numbers_in(rows[3][1]) == pytest.approx(sigma.mean(), abs=0.051 * sigma.std())
    everything = np.full((250, 4, 4), np.nan)
    nothing = dataclasses.replace(
        fit, sampled={k: np.full(x.shape, np.nan) for k, x in fit.sampled.items()},
        sampled_positions=everything, certificate=None,
    )  # fmt: skip
    assert page_of(nothing).text.count("no finite draws") == 4
