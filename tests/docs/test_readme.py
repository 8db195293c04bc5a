"""The README's code runs, and its commands exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_code_comes_early():
    assert "```python" in README.splitlines()[:30]


@pytest.mark.parametrize("block", BLOCKS, ids=["first", "own model"])
def test_code_runs(block, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace = {}
    exec(block, namespace)
    fit = namespace["fit"]
    assert fit.iteration >= 2_000
    assert fit.certificate.verdict == "good"


@pytest.mark.parametrize("command", ["make demo", "make test"])
def test_commands_exist(command):
    assert command in README
    target = command.split()[1]
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert "make test" in (ROOT / ".ci" / "run").read_text()
