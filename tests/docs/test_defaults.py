"""Defaults that are named in a docstring, in ``--help`` or on a page are those of the presets."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import coremcmc
from coremcmc.algorithm.loop import Records
from coremcmc.algorithm.stopping import Stopping
from coremcmc.cli.app import app
from coremcmc.fitting.settings import PRESETS

ROOT = Path(__file__).parents[2]
DEFAULT, PAPER = PRESETS["default"], PRESETS["paper"]


def paragraph(text, name):
    """What a numpydoc text says of a parameter, on one line."""
    found = re.search(rf"^ *{name}\n((?: {{8,}}.*\n)+)", text, re.M)
    return " ".join(found.group(1).split())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("num_iterations", [f"{Stopping().first_check:,}", f"{Stopping().longest:,}"]),
        ("subsample_size", [f": {DEFAULT.subsample_size}, and M in the paper's"]),
        ("kernel", [f'``"{DEFAULT.kernel}"``', "the model's own"]),
        (
            "selection",
            [f'``"{DEFAULT.selection}"`` (half', f'``"{PAPER.selection}"`` (the paper\'s)'],
        ),
        (
            "initial_weights",
            [f'``"{DEFAULT.initial_weights}"`` (fitted near the mode; the default)',
             f'``"{PAPER.initial_weights}"`` (N/M each; the paper\'s)'],
        ),
    ],
)  # fmt: skip
def test_the_docstring_of_fit_names_the_defaults(name, words):
    text = paragraph(coremcmc.fit.__doc__, name)
    for word in words:
        assert word in text


def test_the_docstring_of_a_fit_names_every_trace_and_every_end():
    traces = set(Records._fields) - {"positions"}
    assert set(re.findall(r"``(\w+)``", paragraph(coremcmc.Fit.__doc__, "traces"))) == traces
    source = (ROOT / "src/coremcmc/fitting/run.py").read_text()
    ends = set(re.findall(r'(?:self\.stopped\b.*?= .*?|if [^\n]*? else )"(\w+)"', source))
    assert ends <= set(re.findall(r'``"(\w+)"``', paragraph(coremcmc.Fit.__doc__, "stopped")))
    assert {"running", "failed", "interrupted", "settled"} <= ends


def test_the_commands_help_names_the_defaults():
    shown = CliRunner().invoke(app, ["fit", "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    text = " ".join(re.sub(r"[│╭╮╰╯─]", " ", shown.output).split())
    assert shown.exit_code == 0
    assert f"once trained; {DEFAULT.num_draws:,} by default" in text


def test_the_table_of_presets_is_that_of_the_code():
    page = (ROOT / "docs/reference/fit.md").read_text().split("What the presets set:")[1]
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \|$", page, re.M)
    assert len(rows) >= 10
    in_words = {("kernel", None): "the model's own", ("subsample_size", None): "M"}
    for name, *cells in rows:
        for cell, preset in zip(cells, (DEFAULT, PAPER), strict=True):
            value = getattr(preset, name)
            is_number = isinstance(value, int) and not isinstance(value, bool)
            text = f"{value:,}" if is_number else str(value)
            expected = in_words.get((name, value), text)
            assert cell.replace("`", "").replace('"', "") == expected, (name, cell)
