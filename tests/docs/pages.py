"""The pages of the site, and the code in them.

A comment above a block of code says what a test does with it::

    <!-- test: skip (needs a GPU) -->
    <!-- test: 200_000 becomes 20_000 -->
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md")) + sorted(DOCS.glob("guides/*.md"))

_BLOCK = re.compile(
    r"(?:^<!-- test: (?P<note>[^\n]*) -->\n)?^```(?P<language>[^\n]*)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_SMALLER = re.compile(r"(\S+) becomes (\S+)")


@dataclass(frozen=True)
class Block:
    """Code in a page."""

    language: str
    code: str
    note: str
    line: int

    @property
    def is_skipped(self) -> bool:
        return self.note.startswith("skip")

    @property
    def at_test_size(self) -> str:
        code = self.code
        for written, tested in _SMALLER.findall(self.note):
            assert written in code, f"line {self.line}: {written!r} is not in the block"
            code = code.replace(written, tested)
        return code


def blocks_of(page: Path) -> list[Block]:
    """All fenced blocks of a page, in order."""
    text = page.read_text()
    found = []
    for match in _BLOCK.finditer(text):
        line = text[: match.start("code")].count("\n")
        found.append(Block(match["language"], match["code"], match["note"] or "", line))
    return found


def shell_commands(block: Block) -> list[list[str]]:
    """The commands of a block as lists of words: continued lines joined, comments dropped."""
    lines = block.code.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def run_blocks(page: Path, namespace: dict, upto: str = "") -> dict:
    """Run the Python blocks of a page one after the other, as a reader would type them.

    ``upto`` ends the run after the first block that contains it.
    """
    for block in blocks_of(page):
        if block.language == "python" and not block.is_skipped:
            source = "\n" * block.line + block.at_test_size  # so that errors name the page's line
            exec(compile(source, str(page), "exec"), namespace)
        if upto and upto in block.code:
            break
    return namespace
