"""The report: complete, self-contained, right in its numbers, and never broken by what it shows."""

import dataclasses
import json
import math
import re
import warnings
import zipfile

import jinja2
import numpy as np
import pandas as pd
import pytest

import coremcmc
from coremcmc.report import render, write_report
from coremcmc.report.formatting import duration, fixed, number, shorten, tick_labels
from coremcmc.report.intervals import by_size
from coremcmc.report.marginals import density
from coremcmc.report.page import SECTIONS, Section
from coremcmc.report.parameters import (
    beside_the_full_posterior,
    on_their_scale,
    parameters_of,
)
from coremcmc.report.svg import Axis, Chart, thinned
from tests.report.pages import Page
from tests.report.report_fits import (
    NASTY,
    QUOTED,
    empty_fit,
    make_certificate,
    make_config,
    make_coreset,
    make_fit,
)

SECTION_IDS = ["verdict", "run", "posterior", "coreset", "training", "cost", "warnings"]
SECTION_IDS += ["reproduction"]
LIMIT = 3_000_000


def page_of(fit, **options):
    text = render(fit, **options)
    assert len(text.encode()) < LIMIT
    return Page(text)


def numbers_in(cell):
    return float(cell.replace(",", ""))


@pytest.fixture(scope="module")
def fit():
    return make_fit()


@pytest.fixture(scope="module")
def page(fit):
    return page_of(fit)


# -- structure ------------------------------------------------------------------------------------


def test_sections_come_in_order_and_ids_are_unique(page):
    ids = page.ids()
    assert len(ids) == len(set(ids))
    assert [name for name in ids if name in SECTION_IDS] == SECTION_IDS
    assert {link for link in page.links if link.startswith("#")} <= {f"#{name}" for name in ids}


def test_nothing_is_fetched_and_nothing_runs(page):
    assert all(link.startswith("#") or link == "data:," for link in page.links)
    assert page.count("script") == page.count("img") == page.count("iframe") == 0
    assert page.count("link") == 1  # the empty icon
    assert "http://" not in page.source
    assert "https://" not in page.source
    assert "@import" not in page.source
    assert "url(" not in page.source
    assert not [name for _, given in page.tags for name in given if name.startswith("on")]
    policy = [given for tag, given in page.tags if given.get("http-equiv")]
    assert "default-src 'none'" in policy[0]["content"]


def test_every_figure_has_a_title_a_caption_and_words_for_those_who_do_not_see_it(page):
    figures = page.count("figure")
    assert figures == page.count("figcaption") == 1 + 3 + 2 + 9
    charts = [given for tag, given in page.tags if tag == "svg" and given.get("class") == "chart"]
    assert len(charts) == 4 + 3 + 2 + 9  # a marginal each, and one a figure
    assert all(chart["role"] == "img" and len(chart["aria-label"]) > 10 for chart in charts)


def test_tables_have_headers(page):
    assert len(page.tables) == 3
    assert page.count("th", scope="col") == 11 + 7 + 7
    assert page.count("th", scope="row") == 4 + 4 + 12


def test_colours_follow_the_reader_and_paper_is_white(page):
    assert "@media screen and (prefers-color-scheme: dark)" in page.source
    assert "@media print" in page.source
    drawn = "".join(re.findall(r'<svg class="chart".*?</svg></svg>|<svg class="chart".*?</svg>', page.source))  # fmt: skip  # noqa: E501
    assert len(drawn) > 1_000
    assert "#" not in re.sub(r'aria-label="[^"]*"', "", drawn)  # no colour is fixed in a drawing


def test_a_section_is_a_function_and_its_line_in_the_list(fit, page):
    def content(of):
        return {
            "note": "Written <small>.",
            "numbers": [("Rows", str(len(of.fit.coreset)), "of the coreset")],
            "facts": [("Parameters", str(of.num_parameters))],
        }

    lines = list(SECTIONS)
    lines.insert(1, Section("verse", "A verse", content))
    shown = page_of(fit, sections=lines)
    assert shown.ids().index("run") < shown.ids().index("verse") < shown.ids().index("posterior")
    assert shown.links.index("#verse") == shown.links.index("#run") + 1
    for expected in ("A verse", "Written <small>.", "Rows20of the coreset", "Parameters4"):
        assert expected in shown.text
        assert expected not in page.text
    shorter = page_of(fit, sections=SECTIONS[:1])
    assert [name for name in shorter.ids() if name in SECTION_IDS] == ["verdict", "run"]
    misspelt = Section("verse", "A verse", lambda of: {"notes": "lost"})
    with pytest.raises(jinja2.UndefinedError, match="notes"):
        render(fit, sections=[misspelt])


# -- numbers --------------------------------------------------------------------------------------


def test_the_posterior_table_agrees_with_numpy_and_arviz(fit, page):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import arviz

        summary = {
            name: (float(np.ravel(arviz.ess(draws))[0]), float(np.ravel(arviz.rhat(draws))[0]))
            for name, draws in (("beta[1]", fit.sampled["beta"][..., 1]),)
        }
    header, rows = page.table("R-hat")
    assert header[:7] == ["parameter", "mean", "sd", "5\xa0%", "95\xa0%", "ESS", "R-hat"]
    assert [row[0] for row in rows] == ["beta[0]", "beta[1]", "beta[2]", "sigma"]
    draws = fit.sampled["beta"][..., 1]
    found = [numbers_in(cell) for cell in rows[1][1:]]
    sd = draws.std(ddof=1)
    expected = [draws.mean(), sd, *np.quantile(draws, [0.05, 0.95])]
    np.testing.assert_allclose(found[:4], expected, atol=0.051 * sd)
    assert found[4] == round(summary["beta[1]"][0])
    assert found[5] == pytest.approx(summary["beta[1]"][1], abs=6e-4)
    beside = [draws.mean() + 0.1 * sd, 1.2 * sd, draws.mean() - 0.2 * sd, 0.9 * sd]
    np.testing.assert_allclose(found[6:], beside, atol=0.051 * sd)


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


def test_the_configuration_can_be_copied_as_json(fit, page):
    block = re.findall(r"<pre[^>]*>(.*?)</pre>", page.source, re.S)[1]
    text = Page(f"<pre>{block}</pre>").text
    found = json.loads(text)
    assert found.pop("stopped") == "finished"
    assert found.pop("iteration") == 200
    assert found == fit.config


def test_the_heaviest_rows_come_first_with_their_data(fit, page):
    header, rows = page.table("share")
    assert header == ["row", "weight", "share", "y", "x[0]", "x[1]", "x[2]"]
    order = np.argsort(-fit.coreset.weights)[:12]
    assert [int(row[0]) for row in rows] == list(fit.coreset.indices[order])
    np.testing.assert_allclose(
        [numbers_in(row[1]) for row in rows], fit.coreset.weights[order], rtol=1e-3
    )
    first = fit.coreset.rows["x"][order[0]]
    np.testing.assert_allclose([float(x) for x in rows[0][4:]], first, rtol=1e-3)


def test_the_heaviest_rows_show_the_users_own_columns(fit):
    size = len(fit.coreset)
    whole = pd.DataFrame({"city": [f"town {i}" for i in range(1_000)], "temp": np.arange(1_000.0)})
    table = fit.coreset.to_pandas(whole)
    header, rows = page_of(fit, coreset_table=table).table("share")
    assert header == ["row", "weight", "share", "city", "temp"]
    heaviest = fit.coreset.indices[np.argmax(fit.coreset.weights)]
    assert rows[0][0] == str(heaviest)
    assert rows[0][3:] == [f"town {heaviest}", str(heaviest)]
    own = whole.iloc[fit.coreset.indices].assign(weight=1.5)  # a column of the user's, by that name
    header, rows = page_of(fit, coreset_table=own).table("share")
    assert header == ["row", "weight", "share", "city", "temp", "weight"]
    with pytest.raises(ValueError, match=f"coreset_table must have a row for each.*{size}"):
        render(fit, coreset_table=whole)
    with pytest.raises(ValueError, match="coreset_table must be a pandas DataFrame"):
        render(fit, coreset_table={"city": []})


def test_corrected_values_are_moved_to_the_named_scale():
    """A multiple of a coordinate has mean and sd, a combination the mean, a bent one neither."""
    rng = np.random.default_rng(0)
    mixing = np.array([[1.0, 0.3, 0.0], [0.0, 1.0, -0.4], [0.0, 0.0, 1.0]])
    coordinates = rng.standard_normal((2_000, 3)) @ mixing + 1.0
    named = np.column_stack(
        [
            coordinates[:, 1],
            5.0 - 2.0 * coordinates[:, 0],
            coordinates @ [1.0, 2.0, 3.0] + 4.0,
            np.exp(coordinates[:, 2]),
            np.full(2_000, 3.0),
        ]
    )
    certificate = make_certificate(coordinates[:, None], ["a", "b", "c"])
    mean, sd = certificate.corrected_mean, certificate.corrected_sd
    found_mean, found_sd = on_their_scale(named, coordinates, mean, sd)
    np.testing.assert_allclose(found_mean[:3], [mean[1], 5 - 2 * mean[0], mean @ [1, 2, 3] + 4])
    np.testing.assert_allclose(found_sd[:2], [sd[1], 2 * sd[0]])
    assert np.isnan(found_sd[2:]).all()
    assert np.isnan(found_mean[3:]).all()
    mean, sd = certificate.laplace_mean, certificate.laplace_sd
    found_mean, found_sd = on_their_scale(named, coordinates, mean, sd)
    np.testing.assert_allclose(found_mean[1], 5 - 2 * mean[0])
    np.testing.assert_allclose(found_sd[1], 2 * sd[0])
    for missing in (on_their_scale(named, coordinates, None, None), on_their_scale(named, coordinates, mean[:2], sd[:2])):  # fmt: skip  # noqa: E501
        assert np.isnan(missing).all()


def test_a_fit_without_laplace_is_corrected_all_the_same(fit):
    parameters, _ = parameters_of(fit, 10)
    judged = dataclasses.replace(fit.verdict, laplace_mean=None, laplace_sd=None)
    found = beside_the_full_posterior(dataclasses.replace(fit, verdict=judged), parameters)
    assert np.isnan([(p.laplace_mean, p.laplace_sd) for p in found]).all()
    np.testing.assert_allclose([p.corrected_mean for p in found], judged.corrected_mean)
    np.testing.assert_allclose([p.corrected_sd for p in found], judged.corrected_sd)


def test_the_certificates_weights_correct_any_parameter():
    """σ of log σ, too: N(m, s²) times exp(cx) is N(m + cs², s²), whose moments are known."""
    rng = np.random.default_rng(0)
    m, s, c = -0.5, 0.3, 0.8
    log_sigma = m + s * rng.standard_normal((5_000, 4, 1))
    flat = log_sigma.ravel()[np.linspace(0, log_sigma.size - 1, 5_000).astype(int)]
    importance = np.exp(c * flat) / np.exp(c * flat).sum()
    names = ["log_sigma"]
    judged = make_certificate(log_sigma, names, importance=importance, laplace_mean=None, laplace_sd=None)  # fmt: skip  # noqa: E501
    fit = dataclasses.replace(
        make_fit({"log_sigma": ()}),
        sampled={"sigma": np.exp(log_sigma[..., 0]).T},
        sampled_positions=log_sigma,
        verdict=judged,
    )
    (found,) = beside_the_full_posterior(fit, parameters_of(fit, 1)[0])
    mean = math.exp(m + c * s**2 + s**2 / 2)
    sd = mean * math.sqrt(math.exp(s**2) - 1)
    assert found.corrected_mean == pytest.approx(mean, abs=5 * sd / math.sqrt(5_000))
    assert found.corrected_sd == pytest.approx(sd, rel=0.1)
    assert abs(found.mean - mean) > 10 * sd / math.sqrt(5_000)  # so that a correction is seen
    _, rows = page_of(fit).table("R-hat")
    assert numbers_in(rows[0][-2]) == pytest.approx(found.corrected_mean, abs=0.051 * sd)


def test_weights_are_of_the_draws_that_were_judged(fit):
    """Draws that were made later are corrected by the certificate's numbers, not by its weights."""
    importance = np.geomspace(1.0, 100.0, 100) / np.geomspace(1.0, 100.0, 100).sum()
    judged = dataclasses.replace(fit.verdict, importance=importance)

    def corrected(some):
        parameters, _ = parameters_of(some, 10)
        return [p.corrected_mean for p in beside_the_full_posterior(some, parameters)]

    assert not np.isclose(corrected(dataclasses.replace(fit, verdict=judged)), judged.corrected_mean).any()  # fmt: skip  # noqa: E501
    later = corrected(make_fit(num_draws=240, verdict=judged))
    np.testing.assert_allclose(later, judged.corrected_mean)


# -- verdicts and warnings ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdict", "word", "to_do"),
    [("usable", "Usable", "Good enough to explore"), ("poor", "Poor", "Do not draw conclusions")],
)
def test_a_verdict_that_is_not_good_says_what_to_do(fit, verdict, word, to_do):
    reasons = ["sds are off by up to a factor of 1.4.", "Raise coreset_size, or use others."]
    judged = dataclasses.replace(fit.verdict, verdict=verdict, reasons=reasons)
    page = page_of(dataclasses.replace(fit, verdict=judged))
    assert f"{word}\n" in page.text
    assert to_do in page.text
    assert page.text.count("Sds are off by up to a factor of 1.4. Raise coreset_size") == 2
    assert "1 warning" in page.text


def test_uneven_importance_weights_give_bounds_only(fit):
    judged = dataclasses.replace(
        fit.verdict, verdict="poor", residual_variance=9.0, pareto_k=1.3, reasons=["bad."]
    )
    page = page_of(dataclasses.replace(fit, verdict=judged))
    assert "≤ 1.5 sd" in page.text  # √(9 / 4)
    assert "Pareto k is 1.30, above 0.7" in page.text
    assert "too uneven to be relied on" in page.text


def test_a_fit_without_certificate_is_not_judged():
    page = page_of(make_fit(judged=False, sampled=False))
    assert "Not judged" in page.text
    assert "fit.certificate(model, data) makes one" in page.text
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


# -- what must not break it -----------------------------------------------------------------------


def test_a_run_without_records():
    page = page_of(empty_fit())
    assert "There are no draws" in page.text
    assert "no traces to draw" in page.text
    assert "Not judged" in page.text
    assert "not passed yet" in page.text
    assert [name for name in page.ids() if name in SECTION_IDS] == SECTION_IDS


@pytest.mark.parametrize("records", [1, 2, 3])
def test_a_run_with_few_records(records):
    full = make_fit(judged=False, sampled=False)
    cut = dataclasses.replace(
        full,
        positions=full.positions[:records],
        draws={name: x[:, :records] for name, x in full.draws.items()},
        traces={name: x[:records] for name, x in full.traces.items()},
    )
    page = page_of(cut)
    _, rows = page.table("R-hat")
    assert len(rows) == 4
    assert rows[0][5] == "–"  # too few for an effective sample size


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
        sampled_positions=everything, verdict=None,
    )  # fmt: skip
    assert page_of(nothing).text.count("no finite draws") == 4


def test_names_cannot_break_out():
    names = {NASTY: (2,), QUOTED: (), '"><img src=x onerror=alert(1)>': ()}
    coreset = make_coreset(
        columns={NASTY: np.arange(20), "]]>{{ 7*7 }}": np.array(["</table>"] * 20)}
    )
    config = make_config()
    config["model"] = f"Model({NASTY!r})"
    fit = make_fit(names, coreset=coreset, config=config)
    judged = dataclasses.replace(fit.verdict, verdict="poor", reasons=[f"{NASTY} is bad."])
    page = page_of(
        dataclasses.replace(fit, verdict=judged),
        title=f"Report </title>{NASTY}",
        extra={NASTY: f"</dd>{QUOTED}"},
    )
    assert page.count("script") == page.count("img") == 0
    assert [name for name in page.ids() if name in SECTION_IDS] == SECTION_IDS
    _, rows = page.table("R-hat")
    assert [row[0] for row in rows] == [f"{NASTY}[0]", f"{NASTY}[1]", QUOTED, list(names)[2]]
    header, rows = page.table("share")
    assert header[3:] == [NASTY, "]]>{{ 7*7 }}"]
    assert rows[0][4] == "</table>"
    assert NASTY in page.text


def test_names_that_are_lone_surrogates_are_written_too(tmp_path):
    fit = make_fit({"a\ud800": (), "b": ()})
    assert write_report(fit, tmp_path / "r.html").stat().st_size > 10_000


def test_many_parameters_stay_within_bounds():
    fit = make_fit({"theta": (1_000,)}, num_draws=25)
    page = page_of(fit)
    _, rows = page.table("R-hat")
    assert len(rows) == 400
    assert "Shown are the 400 of 1,000 parameters" in page.text
    assert "the 24 of 1,000 parameters that lie furthest from zero" in page.text
    multiples = re.search(r'<div class="multiples">(.*?)</div>', page.source, re.S)
    assert multiples.group(1).count('<svg class="chart"') == 24
    drawn = re.findall(r'aria-label="(theta\[\d+\]): mean', multiples.group(1))
    flat = fit.sampled["theta"].reshape(-1, 1_000)
    furthest = np.argsort(-np.abs(flat.mean(axis=0)) / flat.std(axis=0, ddof=1))[:24]
    assert drawn == [f"theta[{i}]" for i in sorted(furthest)]


def test_constant_and_discrete_parameters():
    fit = make_fit({"gamma": (2,), "beta": ()})
    gamma = np.ones((4, 250, 2))
    gamma[:, ::3, 1] = 0.0
    page = page_of(dataclasses.replace(fit, sampled={**fit.sampled, "gamma": gamma}))
    assert "always 1" in page.text
    header, rows = page.table("R-hat")
    assert rows[0][header.index("R-hat")] == "–"


@pytest.mark.parametrize(
    "weights", [np.zeros(20), np.full(20, 50.0), [1e6] + [0.0] * 19, np.geomspace(1e-12, 1e4, 20)]
)
def test_weights_of_every_kind(weights):
    page = page_of(make_fit(coreset=make_coreset(weights=weights)))
    zeros = int((np.asarray(weights) == 0).sum())
    assert f"Zero weights{zeros}" in page.text.replace("\n", "")
    assert page.count("figure") == 15 if zeros < 20 else 13


def test_rows_that_are_no_table():
    """A model whose rows are one array, a tensor or many columns."""
    many = {"image": np.zeros((20, 8, 8)), "label": np.arange(20)}
    header, _ = page_of(make_fit(coreset=make_coreset(columns=many))).table("share")
    assert header[3:6] == ["label", "image[0,0]", "image[0,1]"]
    assert len(header) == 33
    alone = {"data": np.arange(20.0)}
    header, _ = page_of(make_fit(coreset=make_coreset(columns=alone))).table("share")
    assert header[3:] == ["data"]


def test_a_report_of_a_real_fit_that_was_saved(tmp_path):
    data = coremcmc.logistic_data(num_rows=2_000, num_features=2)
    fit = coremcmc.fit(
        coremcmc.LogisticRegression(), data, 40, preset="paper", num_iterations=300, progress=False
    )
    path = fit.report(tmp_path / "report.html", title="Mine", extra={"File": "a.csv"})
    assert path == tmp_path / "report.html"
    page = Page(path.read_text(encoding="utf-8"))
    assert "Mine" in page.text
    assert "a.csv" in page.text
    assert "LogisticRegression(intercept=True)" in page.text
    loaded = coremcmc.Fit.load(fit.save(tmp_path / "fit.npz"))
    assert render(loaded, title="Mine", extra={"File": "a.csv"}) == page.source


# -- files ----------------------------------------------------------------------------------------


def test_the_file_is_replaced_whole(tmp_path, fit, monkeypatch):
    path = write_report(fit, str(tmp_path / "r.html"))
    before = path.read_text(encoding="utf-8")

    def fail(*_):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", fail)
        with pytest.raises(OSError, match="disk full"):
            write_report(fit, path, title="other")
    assert path.read_text(encoding="utf-8") == before
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]
    with pytest.raises(ValueError, match="does not exist"):
        write_report(fit, tmp_path / "no" / "r.html")


def test_the_wheel_carries_the_templates(tmp_path):
    """The templates are data, which a build could leave out."""
    build = pytest.importorskip("hatchling.builders.wheel")
    from pathlib import Path

    root = Path(__file__).parents[2]
    wheel = next(build.WheelBuilder(str(root)).build(directory=str(tmp_path)))
    names = zipfile.ZipFile(wheel).namelist()
    assert "coremcmc/report/templates/report.html" in names
    assert "coremcmc/report/templates/report.css" in names


# -- the pieces -----------------------------------------------------------------------------------


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


def test_a_density_integrates_to_one_and_finds_the_normal():
    draws = np.random.default_rng(0).standard_normal(20_000)
    grid, height = density(draws)
    assert np.trapezoid(height, grid) == pytest.approx(1.0, abs=0.02)
    normal = np.exp(-0.5 * grid**2) / math.sqrt(2 * math.pi)
    assert np.abs(height - normal).max() < 0.02


def test_parameters_of_like_size_share_an_axis():
    fit = make_fit({"small": (2,), "large": (2,)})
    scaled = {name: x * (1_000.0 if name == "large" else 0.01) for name, x in fit.sampled.items()}
    parameters, _ = parameters_of(dataclasses.replace(fit, sampled=scaled), 10)
    groups = [[p.name for p in group] for group in by_size(parameters)]
    assert groups == [["large[0]", "large[1]"], ["small[0]", "small[1]"]]


def test_numbers_are_written_for_people():
    assert [number(x) for x in (0, 0.01234, 1234.5, 1.2e-7, float("nan"))] == [
        "0", "0.0123", "1,234", "1.20e-07", "–",
    ]  # fmt: skip
    assert fixed(-0.0001, 2) == "0.00"
    assert fixed(1234.5678, 1) == "1,234.6"
    assert [duration(s) for s in (0.84, 99.96, 271, 7_500)] == [
        "0.8 s", "1 min 40 s", "4 min 31 s", "2 h 5 min",
    ]  # fmt: skip
    assert tick_labels([-0.1, 0.0, 0.1]) == ["−0.1", "0.0", "0.1"]
    assert tick_labels([0.0, 2e7]) == ["0", "2·10⁷"]
    assert shorten("abcdefghij", 5) == "ab…ij"
    assert shorten("日本語", 6) == "日本語"
    assert shorten("日本語日本", 6) == "日…本"
