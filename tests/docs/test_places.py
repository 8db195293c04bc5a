"""What the documents say of places in the source is true of the tree."""

import importlib
import re
from pathlib import Path

import coremcmc

ROOT = Path(__file__).parents[2]
SOURCE = Path(coremcmc.__file__).parent


def _table(path: Path, heading: str) -> str:
    """The first table after a heading."""
    after = (ROOT / path).read_text().split(heading, 1)[1]
    return re.search(r"(^\|.*\n)+", after, re.M).group(0)


def test_the_table_of_rooms_has_every_room_and_no_other():
    rows = _table(Path("docs/design.md"), "## The rooms").splitlines()[2:]
    named = {place for row in rows for place in re.findall(r"`([^`]+)`", row.split("|")[1])}
    rooms = {f"{path.parent.name}/" for path in SOURCE.glob("*/__init__.py")}
    files = {path.name for path in SOURCE.glob("*.py") if path.name != "__init__.py"}
    assert named == rooms | files


def test_the_table_of_rooms_is_in_the_order_that_the_linter_holds():
    text = (ROOT / "pyproject.toml").read_text()
    layers = re.search(r"^layers = \[(.*?)^\]", text, re.M | re.S).group(1).splitlines()
    level = {name: i for i, row in enumerate(layers) for name in re.findall(r"\w+", row)}
    rows = _table(Path("docs/design.md"), "## The rooms").splitlines()[2:]
    named = [place for row in rows for place in re.findall(r"`(\w+)", row.split("|")[1])]
    levels = [level[name] for name in named]
    assert levels == sorted(levels)


def test_places_named_in_contributing_exist():
    rows = _table(Path("CONTRIBUTING.md"), "## Where things live").splitlines()[2:]
    places = [place for row in rows for place in re.findall(r"`([^`]+)`", row.split("|")[2])]
    assert places
    assert not [place for place in places if not (SOURCE / place).exists()]


def test_the_map_from_the_paper_to_the_code_leads_somewhere():
    """Every ``{py:obj}`` of the algorithm's page can be imported."""
    names = re.findall(r"\{py:obj\}`~?([\w.]+)`", (ROOT / "docs/algorithm.md").read_text())
    assert len(names) > 40
    for name in names:
        assert _found(name) is not None, name


def _found(name: str) -> object:
    """Import as much of a dotted name as is a module, and look the rest up in it."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    return None
