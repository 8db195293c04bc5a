"""Imports point one way, modules stay small, the surface stays small."""

import ast
import re
from pathlib import Path

import pytest

import coremcmc

ROOT = Path(coremcmc.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# From the bottom up: a module may import from its own layer's predecessors only.
LAYERS = [
    {"base", "identity", "special", "version", "compile_cache"},
    {"models", "data", "selection", "target", "hot_start", "gradient", "averaging", "derivatives",
     "flat", "naming"},
    {"formulas"},
    {"diagnostics", "io", "control_variates", "laplace", "least_squares", "other_modes",
     "stopping", "near_posterior", "control_passes",
     "estimated_sums"},
    {"kernels", "optimizers"},
    {"coreset_mcmc", "settings"},
    {"loop", "start_weights"},
    {"guide"},
    {"sampling", "arviz_bridge", "certificate"},
    {"result", "certify_fit", "summary", "plotting", "progress", "more_draws", "loo_rows",
     "coreset_table", "report", "html_repr"},
    {"start", "same_problem"},
    {"run", "growing"},
    {"fit"},
    {"surface", "__init__"},
    {"console", "run_folder", "model_file", "plain_model", "problem", "estimate"},
    {"commands"},
    {"cli"},
]  # fmt: skip
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("coremcmc"):
            yield [*node.module.split("."), "__init__"][1]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "coremcmc":
                    yield [*alias.name.split("."), "__init__"][1]


def part_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_one_way(path):
    here = part_of(path)
    for there in imported(path):
        assert LEVEL[there] <= LEVEL[here], f"{here} imports {there}"


def test_theta_and_w_meet_in_one_place_only():
    kernels = {i for p in (ROOT / "kernels").glob("*.py") for i in imported(p)}
    optimizers = {i for p in (ROOT / "optimizers").glob("*.py") for i in imported(p)}
    assert "optimizers" not in kernels
    assert not optimizers & {"kernels", "models", "target", "data"}
    both = {part_of(p) for p in FILES if {"kernels", "optimizers"} <= set(imported(p))}
    assert both == {"coreset_mcmc", "settings"}


def test_modules_are_short():
    long = {p.name: n for p in FILES if (n := len(p.read_text().splitlines())) > 400}
    assert not long


def test_the_surface_is_small_and_complete():
    assert len(coremcmc.__all__) <= 30
    order = {n: (n.islower(), not n.isupper(), n) for n in coremcmc.__all__}  # as ruff sorts
    assert sorted(coremcmc.__all__, key=order.get) == coremcmc.__all__
    for name in coremcmc.__all__:
        assert getattr(coremcmc, name).__doc__, name


def test_heavy_and_optional_packages_are_imported_lazily():
    heavy = "arviz blackjax formulaic jinja2 matplotlib numpyro pandas pyarrow pymc pytensor scipy"
    top = re.compile(rf"^(import|from) ({'|'.join(heavy.split())})", re.M)
    assert not [p.name for p in FILES if top.search(p.read_text())]
