"""The page: complete, self-contained, and never broken by what it shows."""

import dataclasses
import re
import zipfile

import jinja2
import numpy as np
import pytest

import coremcmc
from coremcmc.report import render, write_report
from coremcmc.report.page import SECTIONS, Section
from tests.report.pages import Page, page_of
from tests.report.report_fits import NASTY, QUOTED, empty_fit, make_config, make_coreset, make_fit

SECTION_IDS = ["verdict", "run", "posterior", "coreset", "training", "cost", "warnings"]
SECTION_IDS += ["reproduction"]


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


def test_names_cannot_break_out():
    names = {NASTY: (2,), QUOTED: (), '"><img src=x onerror=alert(1)>': ()}
    coreset = make_coreset(
        columns={NASTY: np.arange(20), "]]>{{ 7*7 }}": np.array(["</table>"] * 20)}
    )
    config = make_config()
    config["model"] = f"Model({NASTY!r})"
    fit = make_fit(names, coreset=coreset, config=config)
    judged = dataclasses.replace(fit.certificate, verdict="poor", reasons=[f"{NASTY} is bad."])
    page = page_of(
        dataclasses.replace(fit, certificate=judged),
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
