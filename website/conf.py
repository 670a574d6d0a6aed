"""Settings of Sphinx; `website/build.py` runs it."""

import sys
from inspect import isfunction
from pathlib import Path
from typing import Any

from sphinx.util import inspect

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
pygments_style = "default"
pygments_dark_style = "github-dark"
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


def of_its_constructor(
    app: Any,
    what: str,
    name: str,
    obj: Any,
    options: Any,
    signature: str | None,
    returned: str | None,
) -> tuple[str, str | None] | None:
    """Gives Sphinx the arguments of a class, which Keras' `__new__` hides."""
    if what != "class" or not isfunction(obj.__init__):
        return None
    found = getattr(obj, "__signature__", None) or inspect.signature(
        obj.__init__, bound_method=True
    )
    shown = inspect.stringify_signature(
        found, show_return_annotation=False, unqualified_typehints=True
    )
    # A default that a dataclass makes anew has no form that can be read.
    return shown.replace("<factory>", "..."), None


def setup(app: Any) -> None:
    """Joins what is ours to Sphinx."""
    app.connect("autodoc-process-signature", of_its_constructor)
    app.connect("autodoc-process-docstring", in_their_form)
