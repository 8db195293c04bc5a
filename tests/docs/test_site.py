"""The site builds without a warning, needs no network, and documents every public name."""

import importlib
import inspect
import re
import subprocess
import sys

import pytest
from sphinx.util.inventory import InventoryFile

import coremcmc
from tests.docs.pages import DOCS, ROOT

MODULES = ("optimizers", "kernels", "diagnostics", "report")
PAPER = ROOT.parent / "shared" / "paper"
MAP = (DOCS / "algorithm.md").read_text()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", "-b", "html"]
    built = subprocess.run(
        [*command, "-d", str(folder / "doctrees"), str(DOCS), str(folder / "html")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder / "html"


@pytest.fixture(scope="module")
def documented(site):
    """Names that the reference describes."""
    with (site / "objects.inv").open("rb") as file:
        inventory = InventoryFile.load(file, "", lambda base, path: f"{base}{path}")
    return {name for kind, names in inventory.items() if kind.startswith("py:") for name in names}


@pytest.mark.slow
def test_every_public_name_is_documented(documented):
    modules = {name for name in coremcmc.__all__ if inspect.ismodule(getattr(coremcmc, name))}
    assert modules <= set(MODULES)  # whose names are asked for below
    names = set(coremcmc.__all__) - modules - {"__version__"}
    assert {f"coremcmc.{name}" for name in names} <= documented
    for module in MODULES:
        names = importlib.import_module(f"coremcmc.{module}").__all__
        wanted = {f"coremcmc.{module}.{name}" for name in names} - {"coremcmc.optimizers.hot_dog"}
        assert wanted <= documented


@pytest.mark.slow
def test_pages_ask_for_nothing_from_the_network(site):
    fetched = re.compile(r'<(?:script|link|img|iframe)[^>]+(?:src|href)="(?:https?:)?//', re.I)
    pages = list(site.rglob("*.html"))
    assert len(pages) > 25
    assert [page.name for page in pages if fetched.search(page.read_text())] == []
    assert "<math" in (site / "algorithm.html").read_text()


@pytest.mark.slow
def test_pages_show_no_path_of_this_machine(site):
    pages = (page for page in site.rglob("*.html"))
    assert [page.name for page in pages if str(ROOT.parent) in page.read_text()] == []


# -- the map from the paper to the code ------------------------------------------------------------

NAMED = sorted(set(re.findall(r"\{py:\w+\}`(coremcmc[\w.]+)`", MAP)))


def _resolve(name):
    """What a dotted name means: the longest part of it that is a module, then attributes."""
    module, attributes = name, []
    while True:
        try:
            found = importlib.import_module(module)
            break
        except ModuleNotFoundError:
            module, _, attribute = module.rpartition(".")
            attributes.insert(0, attribute)
    if name in (f"coremcmc.{public}" for public in coremcmc.__all__):
        return getattr(coremcmc, name.rpartition(".")[2])
    for attribute in attributes:
        found = getattr(found, attribute)
    return found


@pytest.mark.parametrize("name", NAMED)
def test_named_function_exists(name):
    assert _resolve(name) is not None


def test_arguments_and_fields_named_in_the_map_exist():
    """Rows such as "`max_weight_sum` of `coremcmc.fit`"."""
    pairs = re.findall(r"((?:`\w+`(?:, )?)+) of \{py:obj\}`(coremcmc[\w.]+)`", MAP)
    assert len(pairs) > 12
    for names, owner in pairs:
        found = _resolve(owner)
        known = set(inspect.signature(found).parameters) | set(dir(found))
        assert set(re.findall(r"`(\w+)`", names)) <= known, (names, owner)


# What the paper labels, and words of the map's row for it.
LABELS = {
    "eq:coresetposterior": "the coreset posterior",
    "eq:coresetopt": "the optimisation problem",
    "eq:grad": "the gradient of the KL divergence",
    "eq:gradest": "the gradient estimate",
    "eq:learningrates": "the learning rates of DoG and DoWG",
    "eq:avg_sq_z": "the average squared z-score",
    "alg:coresetmcmc": "Algorithm 1",
    "alg:NVDoG": "Algorithm 2",
    "alg:burnintermination": "Algorithm 3",
}
PROOF = {
    "eq:m_update", "eq:v_update", "eq:gradient", "eq:simple_notation", "eq:one_step_update",
    "eq:element_update", "eq:explicit_update_1", "eq:explicit_update", "eq:first_big_o", "eq:split",
    "eq:condition_1", "eq:second_final_bound", "eq:condition_2", "eq:first_lemma", "eq:expanded_R",
    "eq:first_term", "eq:R_ub", "eq:simple_R_ub", "eq:second_term", "eq:intermediate",
}  # fmt: skip


@pytest.mark.parametrize("words", LABELS.values())
def test_equation_has_a_row_with_a_function(words):
    rows = [row for row in MAP.splitlines() if row.startswith("|") and words in row]
    assert rows
    assert "{py:obj}" in rows[0]


def test_no_equation_of_the_paper_is_left_out():
    if not PAPER.is_dir():
        pytest.skip(f"the paper's source is not at {PAPER}")
    text = "".join(path.read_text() for path in PAPER.glob("*.txt"))
    labels = set(re.findall(r"\\label\{((?:eq|alg):[^}]+)\}", text))
    assert labels - PROOF == set(LABELS)
