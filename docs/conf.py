"""Settings of the documentation site: ``python -m sphinx -W --keep-going -n -b html docs site``.

Nothing is fetched while it is built, and the pages ask for nothing when they are read.
"""

import sys
from pathlib import Path

from coremcmc.version import __version__

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "coremcmc"
author = "The coremcmc authors"
copyright = author
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "command_line",
    "mathml",
    "docstrings",
    "registered",
]
exclude_patterns = ["_build", "_ext"]

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
myst_dmath_double_inline = True
html_math_renderer = "mathml"

napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_attr_annotations = False
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
add_module_names = False
maximum_signature_line_length = 88

nitpick_ignore_regex = [
    ("py:class", r"(?!coremcmc\b).*"),  # types of other packages: no network to look them up
    ("py:class", r"coremcmc\.models\.(formula_model|numpyro|pymc)\w*\..*"),  # adapters' insides
]

html_theme = "furo"
html_title = "coremcmc"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
copybutton_exclude = ".linenos, .gp, .go"
pygments_style = "friendly"
pygments_dark_style = "monokai"
