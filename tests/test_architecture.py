"""Imports point one way, modules stay small, the surface stays small."""

import re
from pathlib import Path

import coremcmc

ROOT = Path(coremcmc.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))


def test_rooms_import_as_pyproject_says():
    """The contracts of ``[tool.importlinter]``: layers, independence, what is imported where."""
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"]
    found = subprocess.run(command, cwd=ROOT.parents[1], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


def test_modules_are_short():
    long = {p.name: n for p in FILES if (n := len(p.read_text().splitlines())) > 400}
    assert not long


def test_rooms_hold_their_names_and_no_logic():
    """An ``__init__`` imports, lists, and at most registers; it defines no function or class."""
    for path in ROOT.rglob("__init__.py"):
        assert not re.search(r"^(def|class) ", path.read_text(), re.M), path


def test_the_surface_is_small_and_complete():
    assert len(coremcmc.__all__) <= 35
    for name in coremcmc.__all__:
        if not name.startswith("__"):
            assert getattr(coremcmc, name).__doc__, name


def test_heavy_and_optional_packages_are_imported_lazily():
    heavy = "arviz blackjax formulaic jinja2 matplotlib numpyro pandas pyarrow pymc pytensor scipy"
    top = re.compile(rf"^(import|from) ({'|'.join(heavy.split())})\b", re.M)
    assert not [p.name for p in FILES if top.search(p.read_text())]
