"""What a fit and a coreset show in a notebook: compact, themed by it, harmless."""

import dataclasses

import numpy as np
import pytest

from tests.report.pages import Page
from tests.report.report_fits import NASTY, QUOTED, empty_fit, make_coreset, make_fit


def shown(thing):
    page = Page(thing._repr_html_())
    assert page.count("script") == page.count("style") == page.count("img") == 0
    assert not page.ids()
    assert not [given for _, given in page.tags if "class" in given]
    assert not page.links
    assert "background" not in page.source
    assert "color:" not in page.source  # text has the notebook's colour
    return page


def test_a_fit_shows_its_verdict_and_posterior():
    fit = make_fit()
    page = shown(fit)
    assert "Good" in page.text
    assert "20 of 1,000 rows, 200 iterations (finished), 12.3 s" in page.text
    header, rows = page.table("R-hat")
    assert header == ["", "mean", "sd", "5 %", "95 %", "ESS", "R-hat"]
    assert [row[0] for row in rows] == ["beta[0]", "beta[1]", "beta[2]", "sigma"]
    sigma = fit.sampled["sigma"]
    found = [float(cell) for cell in rows[3][1:5]]
    expected = [sigma.mean(), sigma.std(ddof=1), *np.quantile(sigma, [0.05, 0.95])]
    np.testing.assert_allclose(found, expected, atol=0.051 * sigma.std())
    assert page.count("details") == 1
    assert "TestModel(scale=2.0)" in page.text
    assert len(page.source) < 10_000


def test_a_poor_fit_says_what_to_do():
    fit = make_fit()
    judged = dataclasses.replace(fit.certificate, verdict="poor", reasons=[f"{NASTY} is bad."])
    page = shown(dataclasses.replace(fit, certificate=judged))
    assert "Poor" in page.text
    assert f"{NASTY} is bad. Do not draw conclusions" in page.text
    assert "Warnings (1)" in page.text


def test_a_fit_that_was_not_judged_and_one_without_draws():
    page = shown(make_fit(judged=False, sampled=False))
    assert "Not judged" in page.text
    assert "while the weights moved" in page.text
    page = shown(empty_fit())
    assert "No draws yet." in page.text


def test_names_are_escaped_and_the_table_is_limited():
    page = shown(make_fit({NASTY: (), QUOTED: (), "theta": (40,)}))
    _, rows = page.table("R-hat")
    assert [row[0] for row in rows] == [NASTY, QUOTED, *(f"theta[{i}]" for i in range(8))]
    assert "and 32 more parameters" in page.text


def test_a_coreset_shows_its_weights_and_heaviest_rows():
    columns = {f"{NASTY}{i}": np.arange(20) for i in range(12)}
    coreset = make_coreset(columns=columns)
    page = shown(coreset)
    header, rows = page.table("weight")
    assert header[:4] == ["row", "weight", "share", f"{NASTY}0"]
    assert len(header) == 3 + 8
    assert "and 4 more columns" in page.text
    assert len(rows) == 5
    assert int(rows[0][0]) == coreset.indices[np.argmax(coreset.weights)]
    effective = coreset.weights.sum() ** 2 / np.square(coreset.weights).sum()
    assert f"{effective:,.0f}" in page.text


@pytest.mark.parametrize("weights", [np.zeros(20), np.full(20, 5.0)])
def test_a_coreset_of_equal_or_no_weights(weights):
    page = shown(make_coreset(weights=weights))
    assert f"zero weights{int((weights == 0).sum())}" in page.text


def test_ipython_uses_it():
    format_display_data = pytest.importorskip("IPython.core.formatters").HTMLFormatter()
    assert "Good" in format_display_data(make_fit())
