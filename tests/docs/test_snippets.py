"""Every Python snippet of the site runs, and every command in it exists."""

import re

import jax
import pytest
import typer

from coremcmc.cli.app import app
from tests.docs.pages import DOCS, PAGES, ROOT, Block, blocks_of, run_blocks, shell_commands

ELSEWHERE = DOCS / "guides" / "elsewhere.md"  # test_elsewhere.py runs it
WITH_PYTHON = [
    page
    for page in PAGES
    if page != ELSEWHERE
    and any(b.language == "python" and not b.is_skipped for b in blocks_of(page))
]
SHELL = {"sh", "console", "bash", ""}


def _name(page):
    return str(page.relative_to(DOCS))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS")
@pytest.mark.parametrize("page", WITH_PYTHON, ids=_name)
def test_python_runs(page, reader):
    with jax.enable_x64(False):  # as a reader's Python begins
        namespace = run_blocks(page, {"__name__": "__main__"})
    if "fit" in namespace:
        assert namespace["fit"].iteration > 0
        if namespace["fit"].certificate is not None:
            assert namespace["fit"].certificate.verdict == "good"


def test_every_skipped_block_says_why():
    skipped = [b for page in PAGES for b in blocks_of(page) if b.is_skipped]
    assert skipped
    assert all(re.fullmatch(r"skip \(.+\)", block.note) for block in skipped)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_commands_exist(page):
    for block in blocks_of(page):
        if block.language in SHELL:
            for words in shell_commands(block):
                _check_command(words, page, block)


def _check_command(words: list[str], page, block: Block) -> None:
    while "=" in words[0]:  # variables of the environment
        words = words[1:]
    program, *arguments = words
    where = f"{page.name}:{block.line}: {' '.join(words)}"
    if program == "coremcmc":
        group = typer.main.get_command(app)
        command = group.commands.get(arguments[0])
        assert command is not None, where
        command.make_context(arguments[0], arguments[1:])  # raises where an option is unknown
    elif program == "make":
        makefile = (ROOT / "Makefile").read_text()
        assert re.search(rf"^{arguments[0]}:", makefile, re.MULTILINE), where
    elif program.endswith("python") and arguments[0] == "-m":
        module = arguments[1].split(".")[0]
        assert module in ("experiments", "pytest", "sphinx"), where
    elif program.endswith("python"):
        assert (ROOT / arguments[0]).is_file(), where
    elif program == "pip":
        extras = re.findall(r"\[(\w+)\]", " ".join(arguments))
        declared = (ROOT / "pyproject.toml").read_text()
        assert all(re.search(rf"^{extra} = \[", declared, re.MULTILINE) for extra in extras), where
    else:
        raise AssertionError(f"a command of a program unknown to this test: {where}")
