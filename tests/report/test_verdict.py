"""The verdict in words, the key numbers and the warnings."""

import dataclasses

import numpy as np
import pytest

from tests.report.pages import page_of
from tests.report.report_fits import make_config, make_fit


def test_key_numbers_and_facts_are_there(fit, page):
    weights = fit.coreset.weights
    effective = weights.sum() ** 2 / np.square(weights).sum()
    for expected in (
        "Good",
        "Means and spreads agree with the full posterior's",
        "Use the draws as they are.",
        "0.0040",  # residual variance
        "Pareto k = 0.31",
        "0.083 sd",  # 0.1 sds of the coreset are 0.1/1.2 corrected sds
        "0.83 to 0.83",
        f"effective {effective:,.0f}",
        "12.3 s",
        "TestModel(scale=2.0)",
        "1,000 rows (N): x float64[1000, 3]",
        "passed at iteration 60",
        "all iterations done",
        "2,000",  # evaluations
        "4 chains × 250, at fixed weights",
    ):
        assert expected in page.text, expected
    assert "seed=7," in page.text
    told = make_fit(stop_reason="nothing changes any more: mean moved by 0.01 sds")
    assert "nothing changes any more: mean moved by 0.01 sds" in page_of(told).text


@pytest.mark.parametrize(
    ("verdict", "word", "to_do"),
    [("usable", "Usable", "Good enough to explore"), ("poor", "Poor", "Do not draw conclusions")],
)
def test_a_verdict_that_is_not_good_says_what_to_do(fit, verdict, word, to_do):
    reasons = ["sds are off by up to a factor of 1.4.", "Raise coreset_size, or use others."]
    judged = dataclasses.replace(fit.certificate, verdict=verdict, reasons=reasons)
    page = page_of(dataclasses.replace(fit, certificate=judged))
    assert f"{word}\n" in page.text
    assert to_do in page.text
    assert page.text.count("Sds are off by up to a factor of 1.4. Raise coreset_size") == 2
    assert "1 warning" in page.text


def test_uneven_importance_weights_give_bounds_only(fit):
    judged = dataclasses.replace(
        fit.certificate, verdict="poor", residual_variance=9.0, pareto_k=1.3, reasons=["bad."]
    )
    page = page_of(dataclasses.replace(fit, certificate=judged))
    assert "≤ 1.5 sd" in page.text  # √(9 / 4)
    assert "Pareto k is 1.30, above 0.7" in page.text
    assert "too uneven to be relied on" in page.text


def test_a_fit_without_certificate_is_not_judged():
    page = page_of(make_fit(judged=False, sampled=False))
    assert "Not judged" in page.text
    assert "fit.certify(model, data) makes one" in page.text
    assert "while the weights moved" in page.text
    header, _ = page.table("R-hat")
    assert len(header) == 7
    assert len(page.tables) == 2


def test_warnings_name_what_is_wrong_and_a_remedy(fit):
    draws = fit.sampled["sigma"] + np.arange(4)[:, None]  # chains that disagree
    changed = dataclasses.replace(
        fit,
        sampled={**fit.sampled, "sigma": draws},
        stopped="interrupted",
        hot_start={"passed_at": 60, "is_forced": 1, "threshold": 0.5},
        sample_stats={"diverging": np.ones((4, 3), bool)},
    )
    text = page_of(changed).text
    assert "The run was interrupted" in text
    assert "reached its cap" in text
    assert "R-hat is above 1.01 for" in text
    assert "sigma has" in text
    assert "fit.sample(4_000)" in text
    assert "12 draws diverged" in text
    assert "None: the run ended as it should" in page_of(fit).text
    unsettled = dataclasses.replace(fit, config=make_config(stops_early=True))
    assert "had not settled after 200 iterations" in page_of(unsettled).text
    for stopped in ("failed", "running"):
        assert stopped in page_of(dataclasses.replace(fit, stopped=stopped)).text
