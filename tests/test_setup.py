"""What is said twice about the package says the same."""

import re
from pathlib import Path

import pytest

import coremcmc

ROOT = Path(__file__).parents[1]


def locked(name):
    return set((ROOT / name).read_text().splitlines())


def test_a_developer_has_the_versions_that_a_user_has():
    assert locked("requirements.lock") < locked("requirements-dev.lock")


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_every_requirement_is_locked_to_a_version(name):
    line = re.compile(r"[a-z0-9][a-z0-9._-]*==\d\S*( ; .+)?")
    assert not [found for found in locked(name) if not line.fullmatch(found)]


def test_a_user_gets_no_tool_of_the_developers():
    names = {line.split("==")[0] for line in locked("requirements.lock")}
    assert not names & {"arviz", "matplotlib", "mypy", "pymc", "pystan", "pytest", "sphinx"}


def test_the_citation_is_of_this_version():
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == coremcmc.__version__
    assert citation["preferred-citation"]["title"].endswith("via Hot DoG")


def test_type_checkers_find_the_types():
    assert (Path(coremcmc.__file__).parent / "py.typed").is_file()
