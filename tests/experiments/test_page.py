"""docs/reproduction.md holds what the stored results give, number by number."""

import re
from pathlib import Path

import numpy as np
import pytest

from experiments.claims import claim_tables
from experiments.medians import load_results
from experiments.page import TEMPLATE, number, reproduction_page
from experiments.scales import SCALES
from experiments.store import Store

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reproduction.md").read_text()
_NUMBER = re.compile(r"-?\d[\d,.]*(?:·10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]*")

LITERALS = {
    "the paper's sizes and settings": {"1", "7", "2", "100", "500", "1,000", "10⁻³", "10¹", "10"},
    "start, threshold and first iteration of the test": {"0", "0.5", "30", "3"},
    "the cap of the hot start, and the smaller scales": {"10,000", "20", "40", "120", "5,000", "3"},
    "counts of what the sentence lists": {"6", "4", "18", "17", "72"},
    "the flights: the authors' rows and cancellations, ours": {"98,673", "0.058", "57", "50", "33"},
    "of docs/benchmarks.md": {"3.1·10⁻⁵"},
    "quantiles, by name": {"75", "25", "99"},
    "64-bit": {"64"},
    "the toy of the theorem: d, N, M and the theorem's power": {"3", "20", "4", "1", "2"},
    "what is replayed: iterations and tolerance": {"200", "10⁻⁸", "20"},
}


@pytest.fixture(scope="module")
def store():
    return Store(ROOT / "experiments" / "results" / "paper", SCALES["paper"])


@pytest.fixture(scope="module")
def results(store):
    return load_results(store)


def test_every_number_of_the_page_follows_from_the_results(store):
    """If not: ``python -m experiments page --out docs/reproduction.md``, and read it again."""
    assert reproduction_page(store) == PAGE


def test_the_text_brings_no_numbers_of_its_own():
    """Every number of the template that is not computed is one of the few named above."""
    text = re.sub(r"\{\{.*?\}\}|\{%.*?%\}", " ", TEMPLATE.read_text(), flags=re.DOTALL)
    text = re.sub(r"```.*?```|`[^`]*`|\[\d[a-d]?\]|^\| [1-6] \|", " ", text, flags=re.DOTALL | re.M)
    found = {n.rstrip(".,") for n in _NUMBER.findall(text)}
    assert found <= set().union(*LITERALS.values()), found - set().union(*LITERALS.values())
    benchmarks = (ROOT / "docs" / "benchmarks.md").read_text()
    assert "| bikes | ours | 1000 | 3.1e-05 " in benchmarks


def test_the_readme_quotes_the_page(results):
    """Its sentence on the study, number by number."""
    tables = claim_tables(results)
    readme = " ".join((ROOT / "README.md").read_text().split())
    adam = tables["6a"]["Hot DoG / ADAM, hot start, of medians"]
    assert f"is {number(adam.min())} to {number(adam.max())} times that of the best-tuned" in readme
    spread = tables["5"]["highest / lowest over r"].sort_values().iloc[:-1]
    factors = f"by factors of {number(spread.min())} to {number(spread.max())} in {len(spread)};"
    assert factors in readme
    short = tables["6c"][(tables["6c"]["start"] == "near") & (tables["6c"]["method"] != "Prodigy")]
    near = short["default / Hot DoG"]
    assert f"end at {number(near.min())} to {number(near.max())} times its error" in readme
    job = results.jobs["logistic", 100]
    worse = job.final("hot_dog", 1e-3, True) > job.final("adam", 1e-3, False)
    assert f"run away in {worse.sum()} of {len(worse)} trials" in readme


def test_no_job_is_shorter_than_the_papers(results):
    assert results.missing() == []
    for job in (*results.jobs.values(), *results.variants.values()):
        assert job.num_iterations == 200_000
        assert job.runs["trial"].nunique() == 10
    assert "25,000" not in PAGE


def test_ours_are_33_cancelled_flights(shared_data):
    with np.load(shared_data / "flights.npz") as file:
        assert file["cancelled"].sum() == 33


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234567, "1,234,567"),
        (212.4, "212"),
        (22894.1, "22,894"),
        (12.345, "12.3"),
        (0.9985, "1.00"),
        (1.0, "1"),
        (0.2, "0.20"),
        (0.0444, "0.044"),
        (3.42e9, "3.4·10⁹"),
        (0.00012, "1.2·10⁻⁴"),
        (9.96e-4, "1·10⁻³"),
        (float("inf"), "∞"),
    ],
)
def test_numbers_are_short(value, text):
    assert number(value) == text
