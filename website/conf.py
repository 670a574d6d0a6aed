"""Settings of Sphinx: `python -m sphinx -W -q -c website . site`."""

import inspect
import re
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.addnodes import pending_xref

import keras_rl2 as rl
from keras_rl2.presets.algorithms import ALGORITHMS

PUBLIC = {name: getattr(rl, name) for name in rl.__all__}
SECTIONS = {n: m.__all__ for n, m in PUBLIC.items() if inspect.ismodule(m)}
# The shortest path of each public name.
PATHS = {name: f"keras_rl2.{name}" for name in rl.__all__}
for section, names in SECTIONS.items():
    PATHS = {name: f"keras_rl2.{section}.{name}" for name in names} | PATHS

extensions = ["myst_nb", "sphinx_copybutton"]
for name in ("autosummary", "napoleon", "viewcode"):
    extensions.append(f"sphinx.ext.{name}")
project = "keras_rl2"
root_doc = "docs/index"
include_patterns = ["docs/**", "[BC]*.md", "examples/**", "reference/*.rst"]
templates_path = [str(Path(__file__).with_name("templates"))]
html_theme, html_static_path = "furo", ["static"]
html_title = f"keras_rl2 {rl.__version__}"
html_css_files, html_js_files = ["site.css"], ["site.js"]
html_additional_pages = {"index": "home.html"}
html_copy_source = html_show_sphinx = html_show_copyright = False
html_math_renderer = "mathml"
pygments_dark_style = "github-dark"
highlight_language = "text"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors, nb_execution_mode = 4, "off"
napoleon_custom_sections = ["Reference"]
napoleon_use_ivar = True
maximum_signature_line_length = 72
python_use_unqualified_type_names = True
toc_object_entries = False  # Half the time: the menu is on every page.
autosummary_context = {
    "sections": SECTIONS,
    "top": [name for name in rl.__all__ if name not in SECTIONS],
    "pages": {n: each.page or n.lower() for n, each in ALGORITHMS.items()},
}
autodoc_default_options = {
    "members": True,
    "show-inheritance": True,
    "member-order": "bysource",
    # Keras calls these, readers do not.
    "exclude-members": "build, compile_from_config, from_config, get_config, "
    "get_compile_config, load_own_variables, make_train_function, "
    "save_own_variables",
}


def read_markdown(app, what, name, obj, options, lines):
    """Makes reStructuredText of the Markdown in a docstring."""
    text = "" if what == "data" else "\n".join(lines)
    text = re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", text)
    text = re.sub(r"\[([^]`]+)\]\(\s*(http[^)\s]+)\)", r"`\1 <\2>`__", text)
    text = re.sub(r"\bdocs/(\w+)\.md\b", r":doc:`/docs/\1`", text)
    # A list begins after an empty line, an indented block after colons.
    text = re.sub(r"(?m)^((?:    )*[^-+\s].*)\n(?= *- )", r"\1\n\n", text)
    prose, *sections = re.split(r"(?m)^(?=[A-Z]\w+:$)", text, maxsplit=1)
    prose = re.sub(r"\n\n(?=    )", "\n\n::\n\n", prose)
    lines[:] = "".join([prose, *sections]).split("\n")


def show_program(app, docname, source):
    """Makes a page of an example: its name and the program."""
    path = app.env.doc2path(docname)
    if path.suffix == ".py":
        head = f"---\norphan: true\n---\n# {path.name}\n\n"
        source[0] = f"{head}```python\n{source[0]}```\n"


def link_names(app, doctree):
    """Links code in paragraphs that is a public name, e.g. `rl.PPO`."""
    name = r"(?:(?:rl|keras_rl2)\.(?:\w+\.)*(?=\w+$)|(?=[A-Z]))(\w+)"
    for node in list(doctree.findall(nodes.literal)):
        found = re.fullmatch(name, node.astext())
        if found and isinstance(node.parent, nodes.paragraph):
            link = pending_xref("", refdomain="py", reftype="obj")
            link["refdoc"], link["reftarget"] = app.env.docname, found[1]
            node.replace_self(link)
            link += node


def find_name(app, env, node, content):
    """Resolves a public name, whatever module of ours stands before it."""
    module, _, name = node.get("reftarget", "").rpartition(".")
    known = node.get("refdomain") == "py" and not module.startswith("keras.")
    if known and name in PATHS:
        where = env, node["refdoc"], app.builder, "obj", PATHS[name]
        return env.domains["py"].resolve_xref(*where, node, content)


def show_math(self, node):
    """Sets an equation without a script: browsers read MathML."""
    block = isinstance(node, nodes.math_block)
    tag = self.starttag(node, "div" if block else "span", "", CLASS="math")
    math = tex2mathml(node.astext(), as_block=block)
    self.body += [tag, math, "</div>" if block else "</span>"]
    raise nodes.SkipNode


def setup(app):
    """Adds these functions to Sphinx."""
    app.connect("autodoc-process-docstring", read_markdown, priority=400)
    app.connect("source-read", show_program)
    app.connect("doctree-read", link_names)
    app.connect("missing-reference", find_name)
    app.add_source_suffix(".py", "myst-nb")
    app.add_html_math_renderer("mathml", (show_math, None), (show_math, None))
