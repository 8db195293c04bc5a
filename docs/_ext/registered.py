"""A directive that documents every entry of a registry, so that no page lists them by hand.

::

    .. registered:: coremcmc.kernels.KERNELS
       :except: hit_and_run

Each entry is described where its package exports it, after the name that ``fit`` knows it by.
"""

import importlib
import inspect

from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Registered(SphinxDirective):
    """Document the classes or functions of a dict of names."""

    required_arguments = 1
    option_spec = {"except": directives.unchanged}  # noqa: RUF012 (as docutils has it)

    def run(self):
        """Write the entries as autodoc's own directives."""
        package, registry = self.arguments[0].rsplit(".", 1)
        lines: list[str] = []
        for name, entry in getattr(importlib.import_module(package), registry).items():
            if name in self.options.get("except", "").split():
                continue
            kind = "class" if inspect.isclass(entry) else "function"
            lines += [f"``{name!r}``", "", f".. auto{kind}:: {package}.{entry.__name__}"]
            lines += ["   :no-members:", ""] if kind == "class" else [""]
        return self.parse_text_to_nodes("\n".join(lines))


def setup(app: Sphinx) -> dict:
    """Add the directive."""
    app.add_directive("registered", Registered)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
