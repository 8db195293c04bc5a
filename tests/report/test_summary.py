"""One screen of text: the same numbers as the report's."""

import dataclasses

import numpy as np

from tests.report.report_fits import empty_fit, make_config, make_fit


def test_the_table_agrees_with_numpy(fit):
    lines = fit.summary().splitlines()
    header = lines.index(next(line for line in lines if line.startswith("parameter")))
    assert lines[header].split() == ["parameter", "mean", "sd", "5%", "95%", "ESS", "R-hat"]
    rows = [line.split() for line in lines[header + 1 : header + 5]]
    assert [row[0] for row in rows] == ["beta[0]", "beta[1]", "beta[2]", "sigma"]
    draws = fit.sampled["beta"][..., 2]
    expected = [draws.mean(), draws.std(ddof=1), *np.quantile(draws, [0.05, 0.95])]
    np.testing.assert_allclose([float(x) for x in rows[2][1:5]], expected, rtol=6e-3)


def test_many_parameters_are_cut_and_counted():
    text = make_fit({"theta": (30,)}, num_draws=10).summary()
    assert "theta[23]" in text
    assert "theta[24]" not in text
    assert "… and 6 more" in text


def test_the_hot_start_is_told(fit):
    assert "hot start    passed at iteration 60\n" in fit.summary()
    forced = {"passed_at": 60, "is_forced": 1, "threshold": 0.5}
    text = dataclasses.replace(fit, hot_start=forced).summary()
    assert "passed at iteration 60 (forced by its cap)" in text
    assert "warning: the chains had not settled" in text
    assert "hot start    off" in make_fit(config=make_config(hot_start=None)).summary()
    text = empty_fit().summary()
    assert "not passed yet" in text
    assert "(no draws)" in text
