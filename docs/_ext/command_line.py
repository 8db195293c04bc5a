"""The ``commands`` directive: every command of the program, from the program itself."""

import inspect
import re
from typing import Any

import typer
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from coremcmc.cli.app import app as program


class Commands(SphinxDirective):
    """Write a section for each command: its help, and a table of its arguments and options."""

    def run(self) -> list[nodes.Node]:
        """Parse what was written, as Markdown."""
        group: Any = typer.main.get_command(program)
        lines = [line for name, found in group.commands.items() for line in _section(name, found)]
        container = nodes.container()
        self.state.nested_parse(StringList(lines, "commands"), self.content_offset, container, True)
        return container.children


def _section(name: str, command: Any) -> list[str]:
    prose, examples = _split_help(command.help or "")
    lines = [f"## coremcmc {name}", "", *prose, ""]
    if examples:
        lines += ["```sh", *examples, "```", ""]
    lines += ["| | |", "|---|---|"]
    for parameter in command.params:
        if parameter.name != "help":
            lines.append(f"| {_spelled(parameter)} | {_says(parameter)} |")
    return [*lines, ""]


def _split_help(text: str) -> tuple[list[str], list[str]]:
    prose, _, examples = inspect.cleandoc(text).partition("\b\n")
    rows = [row.removeprefix("  ") for row in examples.splitlines()[1:]]
    return prose.splitlines(), [row for row in rows if row.strip()]


def _spelled(parameter: Any) -> str:
    metavar = parameter.metavar or ""
    if parameter.param_type_name == "argument":
        return f"`{metavar}`"
    names = ", ".join(f"`{name}`" for name in parameter.opts)
    return names + (f" `{metavar}`".replace("|", r"\|") if metavar else "")


def _says(parameter: Any) -> str:
    text = re.sub(r"\s+", " ", getattr(parameter, "help", "") or "").replace("|", r"\|")
    default = parameter.default
    if default is None or default is False or callable(default):
        return text
    return f"{text} Default: `{default}`."


def setup(app: Sphinx) -> dict:
    """Add the directive."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
