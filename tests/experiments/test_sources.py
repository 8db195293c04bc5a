"""What the identity of results depends on: statements that decide numbers, and nothing else."""

import ast
import importlib
import itertools

import pytest

import coremcmc
from experiments import sources
from experiments.sources import deciding_modules, program_digest
from experiments.tasks import TASKS, VARIANTS

COUNT = itertools.count()
SOURCE = '''
"""A module."""

import math
from coremcmc.special import anything

__all__ = ["area"]

PI = 3.0  # roughly


def area(r):
    """Of a circle."""
    return PI * r**2
'''


@pytest.fixture
def digest(tmp_path, monkeypatch):
    """The digest of a module with the given text."""
    monkeypatch.syspath_prepend(tmp_path)

    def digest_of(text):
        name = f"decides_{next(COUNT)}"  # digests are kept by name
        (tmp_path / f"{name}.py").write_text(text)
        importlib.invalidate_caches()
        return sources._module_digest(name)

    return digest_of


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  # roughly", ""),
        ('"""Of a circle."""', '"""Of a disc, in square metres."""'),
        ("import math\n", "import math\nimport json\n"),
        ("from coremcmc.special import", "from coremcmc.models.special import"),
        ('["area"]', '["PI", "area"]'),
        ("return PI * r**2", "return PI * r ** 2"),
    ],
)
def test_what_decides_nothing_changes_nothing(digest, old, new):
    assert old in SOURCE
    assert digest(SOURCE.replace(old, new)) == digest(SOURCE)


@pytest.mark.parametrize(
    ("old", "new"), [("3.0", "3.1"), ("r**2", "r**3"), ("(r)", "(r, s=1)"), ("area", "surface")]
)
def test_what_may_decide_numbers_changes_the_digest(digest, old, new):
    assert digest(SOURCE.replace(old, new)) != digest(SOURCE)


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_the_modules_are_those_that_a_job_computes_with(task):
    """Found from the objects, wherever they lie; seen from outside by what they define."""
    found = deciding_modules(task)
    defined = {
        node.name
        for name in found
        for node in ast.walk(sources._tree(name))
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
    assert {type(task.model).__name__, "CoresetMCMC", "hot_dog", "prodigy", "dadapt_sgd"} <= defined
    assert {"hot_start_statistic", "gated", "constrained", "HitAndRun", "Target"} <= defined
    assert {"plain_totals", "kl_gradient", "distinct_indices", "Stratified"} <= defined
    assert {"build_program", "one_of", "tables_of", "near_least_squares"} <= defined
    assert not {"fit", "Fit", "Run", "from_pymc", "from_formula", "HTML", "read_table"} & defined
    assert len(found) == len(set(found)) < 60


def test_tasks_of_one_model_share_a_program_and_others_do_not():
    assert program_digest(TASKS["gaussian"]) == program_digest(VARIANTS["gaussian_far"])
    assert program_digest(TASKS["poisson"]) != program_digest(TASKS["bradley_terry"])
    assert coremcmc.BradleyTerry.__module__ in deciding_modules(TASKS["bradley_terry"])
    assert coremcmc.BradleyTerry.__module__ not in deciding_modules(TASKS["poisson"])
