"""Settings of Sphinx; `website/build.py` runs it."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import keras_rl2
from website.docstrings import as_rst

project = "keras_rl2"
author = "the authors of keras_rl2"
version = release = keras_rl2.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]

html_theme = "furo"
html_title = f"keras_rl2 {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
pygments_style = "friendly"
pygments_dark_style = "monokai"
highlight_language = "text"

myst_heading_anchors = 4
autodoc_class_signature = "mixed"
autodoc_default_options = {
    "members": True,
    "member-order": "bysource",
}
autodoc_typehints_format = "short"
maximum_signature_line_length = 72
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"


def in_their_form(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Gives Sphinx a docstring in the form that it reads."""
    lines[:] = as_rst("\n".join(lines), name.rpartition(".")[2]).split("\n")


def setup(app: Any) -> None:
    """Joins what is ours to Sphinx."""
    app.connect("autodoc-process-docstring", in_their_form)
