"""Small repairs between the docstrings of this package and Sphinx."""

import re

from sphinx.application import Sphinx
from sphinx.domains.python import PyObject


def returns_as_sentence(app, what, name, obj, options, lines: list[str]) -> None:
    """Where a Returns section is a sentence, keep Napoleon from taking it for a type."""
    header = next((i for i, line in enumerate(lines) if line == "Returns"), None)
    if header is None or not lines[header + 1].startswith("---"):
        return
    first = header + 2
    end = next((i - 1 for i in range(first, len(lines)) if lines[i].startswith("---")), len(lines))
    body = lines[first:end]
    has_type = len(body) > 1 and body[1].startswith(" ")
    if not has_type and " " in body[0]:
        lines[first:end] = [":", *(f"    {line}" if line else "" for line in body)]


def short_types(app, what, name, obj, options, signature, returned):
    """Write JAX's arrays by the name that the code gives them."""

    def shorten(text):
        return text and re.sub(r"~?jaxlib\._jax\.Array", "Array", text)

    return shorten(signature), shorten(returned)


def setup(app: Sphinx) -> dict:
    """Listen before Napoleon does, and call attributes attributes."""
    app.connect("autodoc-process-docstring", returns_as_sentence, priority=400)
    app.connect("autodoc-process-signature", short_types)
    for field in PyObject.doc_field_types:
        if field.name == "variable":
            field.label = "Attributes"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
