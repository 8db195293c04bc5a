"""Formulas as MathML, which browsers show without a script and without a network."""

import html
import re
from xml.etree import ElementTree

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

_ACCENTS = "ˉˆ˜¯"
_NAMESPACE = "http://www.w3.org/1998/Math/MathML"


def _to_mathml(tex: str, node: nodes.Element, *, as_block: bool) -> str:
    try:
        mathml = tex2mathml(tex, as_block=as_block)
    except MathError as error:
        logging.getLogger(__name__).warning("formula %r: %s", tex, error, location=node)
        return ""
    ElementTree.register_namespace("", _NAMESPACE)
    mathml = re.sub(r"&(?!amp;|lt;|gt;)\w+;", lambda found: html.unescape(found[0]), mathml)
    root = ElementTree.fromstring(mathml)
    for element in root.iter():
        _put_accent_over_base(element)
    return ElementTree.tostring(root, encoding="unicode")


def _put_accent_over_base(element: ElementTree.Element) -> None:
    """Undo what docutils makes of an accent with an index: the index belongs beside the base."""
    if element.tag != f"{{{_NAMESPACE}}}munderover":
        return
    base, index, over = element
    if over.text not in _ACCENTS:
        return
    element.clear()
    element.tag = f"{{{_NAMESPACE}}}msub"
    accented = ElementTree.SubElement(element, f"{{{_NAMESPACE}}}mover", accent="true")
    accented.extend([base, over])
    element.append(index)


def _visit_inline(translator, node) -> None:
    translator.body.append(_to_mathml(node.astext(), node, as_block=False))
    raise nodes.SkipNode


def _visit_block(translator, node) -> None:
    tex = node.astext().strip()
    if r"\\" in tex or "&" in tex:
        tex = rf"\begin{{aligned}} {tex} \end{{aligned}}"
    translator.body.append(translator.starttag(node, "div", CLASS="math"))
    translator.body.append(_to_mathml(tex, node, as_block=True))
    translator.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict:
    """Add the renderer under the name ``mathml``."""
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
