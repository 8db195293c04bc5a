"""Figures: their numbers against medians by hand, and that every file is written."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from experiments import drawing
from experiments.errors import StudyError
from experiments.figure_data import gate_table, ratio_table, start_table, tuned_table
from experiments.figures import draw_figures, pictures
from experiments.medians import load_results, quantiles
from experiments.report import write_page
from experiments.scales import record_iterations
from experiments.store import Store
from tests.experiments.fake_results import BEST_RATE, FAKE, error, write_job, write_study

SMALL, LARGE = FAKE.coreset_sizes
LAST = FAKE.num_iterations
NAMES = [f"fig{n}" for n in range(1, 8)] + [f"fig{n}-M{SMALL}" for n in (4, 5, 6)]
FAILURES = (
    *(("adam", 10.0, False, trial) for trial in (0, 1)),  # the median of three fails
    ("adam", 1.0, False, 2),  # the worst of three: the median stays
    ("hot_dog", 1e-3, True, 2),
)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A study without logistic-40, some of whose runs failed, and its figures."""
    folder = tmp_path_factory.mktemp("study")
    store = write_study(
        folder / "results",
        skip={("logistic", LARGE)},
        failures=FAILURES,
        dataset_origin="<script>alert('rows')</script>",
        num_rows=12345,
    )
    write_job(store, "linear", SMALL, num_iterations=64)
    return store, folder, draw_figures(store, folder / "figures")


def numbers(study, name):
    return pd.read_csv(study[1] / "figures" / f"{name}.csv")


def medians(task, size, method, parameter, hot_start, iteration=LAST):
    """By hand: the middle of three trials, none of which failed."""
    return error(task, size, method, parameter, hot_start, 1, iteration)


def the(table, **values):
    for column, value in values.items():
        table = table[table[column] == value]
    return table


def test_every_file_is_there(study):
    _, folder, paths = study
    expected = {f"{name}.{kind}" for name in NAMES for kind in ("png", "pdf", "csv")}
    assert {path.name for path in paths} == expected
    for path in paths:
        assert path.parent == folder / "figures"
        assert path.stat().st_size > 100, path


def test_figure_1_is_a_ratio_of_medians(study):
    table = numbers(study, "fig1")
    assert len(table) == 11 * 6
    assert not table["hot_start"].any()
    for row in table.itertuples():
        if row.parameter == 10.0 and not (row.task == "linear" and row.coreset_size == SMALL):
            assert row.num_failed == 2
            assert row.ratio == np.inf
            continue
        at = 64 if (row.task, row.coreset_size) == ("linear", SMALL) else LAST
        above = medians(row.task, row.coreset_size, "adam", row.parameter, False, at)
        below = medians(row.task, row.coreset_size, "hot_dog", 1e-3, True, at)
        assert row.ratio == pytest.approx(above / below, rel=1e-5)
        assert row.num_iterations == at


def test_figure_2_has_medians_and_quartiles(study):
    table = the(numbers(study, "fig2"), task="poisson", coreset_size=LARGE)
    row = the(table, parameter=0.1).iloc[0]
    trials = [error("poisson", LARGE, "adam", 0.1, False, t, LAST) for t in range(3)]
    assert row["z2"] == pytest.approx(trials[1], rel=1e-5)
    assert row["z2_q25"] == pytest.approx((trials[0] + trials[1]) / 2, rel=1e-5)
    assert row["z2_q75"] == pytest.approx((trials[1] + trials[2]) / 2, rel=1e-5)
    assert the(table, parameter=10.0).iloc[0]["z2"] == np.inf
    failed = the(table, parameter=1.0).iloc[0]
    assert (failed["num_failed"], failed["z2_q75"]) == (1, np.inf)
    assert failed["z2"] == pytest.approx(medians("poisson", LARGE, "adam", 1.0, False), rel=1e-5)


def test_figure_3_shows_linear_regression_at_the_largest_size(study):
    table = numbers(study, "fig3")
    assert set(table["task"]) == {"linear"}
    assert set(table["coreset_size"]) == {LARGE}
    assert not table["hot_start"].any()
    for panel, count in {"dog": 5, "dowg": 5, "dadapt_sgd": 1, "prodigy": 1}.items():
        lines = the(table, panel=panel)
        assert set(lines["method"]) == {panel, "adam"}
        assert lines[lines["method"] == panel]["parameter"].nunique() == count
        assert set(the(lines, method="adam")["parameter"]) == {BEST_RATE["linear"]}
    line = the(table, panel="dowg", method="dowg", parameter=0.1)
    assert line["iteration"].tolist() == record_iterations(LAST)
    by_hand = [medians("linear", LARGE, "dowg", 0.1, False, t) for t in line["iteration"]]
    np.testing.assert_allclose(line["z2"], by_hand, rtol=1e-5)
    np.testing.assert_allclose(line["evaluations"], 3 * LARGE * line["iteration"])


def test_figure_4_counts_a_failed_run_as_infinite_from_where_it_failed(study):
    table = the(numbers(study, "fig4"), task="gaussian")
    assert set(table["hot_start"]) == {True, False}
    line = the(table, parameter=1e-3, hot_start=True)
    assert np.isinf(line["z2_q75"]).tolist() == [False] * (len(line) - 3) + [True] * 3
    assert np.isfinite(line["z2"]).all()
    assert set(numbers(study, f"fig4-M{SMALL}")["coreset_size"]) == {SMALL}


def test_a_failed_run_that_shows_no_infinity_counts_as_infinite_throughout(tmp_path):
    store = Store(tmp_path, FAKE)
    write_job(store, "linear", LARGE)
    job = next(iter(load_results(store).jobs.values())).job
    tables = {name: store.read(job, name) for name in ("traces", "runs", "gate")}
    runs = tables["runs"].to_pandas()
    runs.loc[(runs["method"] == "dog") & (runs["trial"] > 0), "failure"] = 2
    tables["runs"] = tables["runs"].from_pandas(runs, schema=tables["runs"].schema)
    store.write(job, tables, {})
    found = load_results(store).jobs["linear", LARGE]
    assert np.isinf(found.curve("dog", 0.1, False)["z2"]).all()
    assert np.isinf(found.final("dog", 0.1, False)).tolist() == [False, True, True]
    assert np.isfinite(found.curve("dowg", 0.1, False)["z2"]).all()
    assert found.num_iterations == LAST  # job.json does not say


def test_figure_5_shows_the_held_phase(study):
    table = the(numbers(study, "fig5"), task="sparse")
    assert table.groupby("trial")["iteration"].max().tolist() == [8, 12, 16]
    assert table.groupby("trial")["passed_at"].first().tolist() == [8, 12, 16]
    # What a test at every iteration gives, from the ninth on.
    np.testing.assert_allclose(the(table, iteration=12)["statistic"], 8 / 144, rtol=1e-6)
    assert the(table, iteration=8)["statistic"].isna().all()


def test_figure_6_takes_the_adam_that_ends_lowest(study):
    table = numbers(study, "fig6")
    hot_dog = the(table, method="hot_dog")
    assert hot_dog["hot_start"].all()
    assert hot_dog["parameter"].nunique() == 5
    adam = the(table, method="adam").groupby("task")["parameter"].unique()
    # At 10 the median run failed, so Bradley-Terry's next best rate is 1.
    expected = {**BEST_RATE, "bradley_terry": 1.0}
    assert {task: rates.tolist() for task, rates in adam.items()} == {
        task: [rate] for task, rate in expected.items() if task != "logistic"
    }


def test_figure_7_compares_four_methods_with_and_without_hot_start(study):
    table = numbers(study, "fig7")
    assert set(table["method"]) == {"dog", "dowg", "adam", "prodigy"}
    row = the(table, task="sparse", coreset_size=SMALL, method="prodigy", parameter=1e-6)
    below = medians("sparse", SMALL, "hot_dog", 1e-3, True)
    for hot_start in (True, False):
        above = medians("sparse", SMALL, "prodigy", 1e-6, hot_start)
        found = the(row, hot_start=hot_start)["ratio"].item()
        assert found == pytest.approx(above / below, rel=1e-5)


def test_two_starts_are_drawn_where_there_are_two(tmp_path):
    """The largest M of each task that has both, here Gaussian location's."""
    store = write_study(tmp_path / "results")
    for size in (SMALL, LARGE):
        write_job(store, "gaussian_far", size)
    write_job(store, "sparse_far", SMALL)
    table = start_table(load_results(store))
    found = table.groupby("panel")["coreset_size"].unique().map(list).to_dict()
    assert found == {"gaussian": [LARGE], "sparse": [SMALL]}
    assert set(table["start"]) == {"near", "far"}
    line = the(table, panel="sparse", start="far", method="dog")
    by_hand = [medians("sparse", SMALL, "dog", 1e-3, False, t) for t in line["iteration"]]
    np.testing.assert_allclose(line["z2"], by_hand, rtol=1e-5)
    names = [picture.name for picture in pictures(load_results(store))]
    assert names == [*NAMES, "starts", "theorem"]


@pytest.mark.parametrize("name", ["fig1", "fig3", "fig4", "fig5", "fig6", "fig7"])
def test_a_figure_is_as_wide_as_the_page_and_its_type_is_legible(study, name):
    (picture,) = (p for p in pictures(load_results(study[0])) if p.name == name)
    figure = picture.draw(picture.table())
    figure.canvas.draw()
    assert figure.get_size_inches()[0] == drawing.WIDTH == 6.75
    texts = [t for t in figure.findobj(Text) if t.get_text().strip() and t.get_visible()]
    assert len(texts) > 20
    assert min(t.get_fontsize() for t in texts) >= 7
    assert picture.title not in {t.get_text() for t in texts}
    if name in ("fig3", "fig4", "fig6", "fig7"):  # one range of errors for all panels
        filled = [axis for axis in figure.axes if axis.lines]
        assert len({axis.get_ylim() for axis in filled}) == 1


def test_captions_tell_iterations_and_what_is_missing(study):
    notes = {picture.name: picture.note for picture in pictures(load_results(study[0]))}
    assert list(notes) == NAMES
    spaced = {name: note.replace("\u00a0", " ") for name, note in notes.items()}
    assert spaced["fig1"] == (
        "Median over 3 trials, 128 iterations; 64 for Linear regression M = 20; "
        "no results of Logistic regression M = 40."
    )
    assert spaced["fig3"] == "Medians over 3 trials, 128 iterations."
    assert spaced[f"fig5-M{SMALL}"] == "3 trials."


def test_one_job_is_enough_even_if_all_of_it_failed(tmp_path):
    store = Store(tmp_path / "results", replace(FAKE, coreset_sizes=(SMALL,)))
    keys = [
        (method, parameter, hot, trial)
        for method, parameter in [("adam", 10.0**k) for k in range(-3, 3)] + [("hot_dog", 1e-3)]
        for hot in (True, False)
        for trial in range(3)
    ]
    write_job(store, "sparse", SMALL, failures=keys)
    results = load_results(store)
    assert ratio_table(results, ["adam"])["ratio"].isna().all()
    assert tuned_table(results, LARGE).empty
    assert gate_table(results, LARGE).empty
    told = []
    assert len(draw_figures(store, tmp_path / "figures", told.append)) == 21
    assert told == NAMES[:7]


def test_without_results_there_is_nothing_to_draw(tmp_path):
    with pytest.raises(StudyError, match=r"holds no results.*experiments run"):
        draw_figures(Store(tmp_path / "results", FAKE), tmp_path / "figures")
    assert not (tmp_path / "figures").exists()


@pytest.mark.parametrize("name", ["runs.parquet", "job.json"])
def test_a_corrupt_job_is_told_and_not_drawn(tmp_path, name):
    store = Store(tmp_path / "results", FAKE)
    write_job(store, "linear", LARGE)
    (tmp_path / "results" / f"linear-{LARGE}" / name).write_bytes(b"{}")
    with pytest.raises(StudyError, match=r"is corrupt.*experiments run"):
        draw_figures(store, tmp_path / "figures")


def test_a_folder_that_cannot_be_made_is_told(study, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StudyError, match=r"--out .*cannot write there"):
        draw_figures(study[0], tmp_path / "file")


def test_the_page_holds_every_figure_and_escapes(study):
    store, folder, _ = study
    page = write_page(store, folder / "figures", folder / "new" / "page.html").read_text("utf-8")
    assert [n for n in NAMES if f'<figure id="{n}">' in page] == NAMES
    assert page.count("data:image/png;base64,") == len(NAMES)
    assert "<script" not in page
    assert "&lt;script&gt;alert(&#x27;rows&#x27;)" in page
    assert "12,345" in page
    assert "no results" in page
    assert not re.findall(r"""(?:src|href)=(?!["'](?:data:|#))""", page)
    assert "http" not in page


def test_a_page_without_figures_is_refused(study, tmp_path):
    with pytest.raises(StudyError, match=r"has no fig1\.png.*experiments figures"):
        write_page(study[0], tmp_path, tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("count", [1, 2, 3, 10, 11])
def test_quantiles_are_numpys_where_all_is_finite(count):
    values = np.random.default_rng(count).exponential(size=(4, count))
    np.testing.assert_allclose(quantiles(values), np.quantile(values, (0.5, 0.25, 0.75), axis=-1))


def test_quantiles_with_infinities():
    inf = np.inf
    assert quantiles([1, 2, inf]).tolist() == [2, 1.5, inf]
    assert quantiles([inf, 2, 1, 0]).tolist() == [1.5, 0.75, inf]
    assert quantiles([inf, inf, inf]).tolist() == [inf, inf, inf]
    assert np.isnan(quantiles([1, np.nan])).all()
    assert np.isnan(quantiles([])).all()
