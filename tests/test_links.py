"""Links of the texts lead somewhere: to files that are there, and headings."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEXTS = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/*.md"),
    ]
)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
# Pictures for one theme: directives of the site, or HTML.
_PICTURE = re.compile(r"```\{image\} (\S+)|src(?:set)?=\"([^\"]+)\"")
_HEADING = re.compile(r"(?m)^#{1,6} +(.+?) *#*$")


def without_code(text):
    """Returns a text of Markdown without its blocks and pieces of code."""
    blocks = re.sub(r"(?ms)^ *```.*?^ *```", "", text)
    return re.sub(r"`[^`\n]*`", "", blocks)


def links(text):
    """Returns the links of a text that do not leave the project."""
    found = _LINK.findall(without_code(text))
    found += [one or other for one, other in _PICTURE.findall(text)]
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def anchors(text):
    """Returns the anchors that a link may name after its #, as on GitHub."""
    blocks = re.sub(r"(?ms)^ *```.*?^ *```", "", text)
    names = []
    for heading in _HEADING.findall(blocks):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        seen = sum(
            re.fullmatch(rf"{re.escape(name)}(-\d+)?", n) is not None
            for n in names
        )
        names.append(f"{name}-{seen}" if seen else name)
    return set(names)


def target_of(link, path):
    """Returns the file that a link of another file names, and the anchor."""
    file, _, anchor = link.partition("#")
    return (path.parent / file).resolve() if file else path, anchor


def leads_somewhere(link, path):
    target, anchor = target_of(link, path)
    if not target.is_relative_to(ROOT) or not target.exists():
        return False
    return not anchor or anchor in anchors(target.read_text("utf-8"))


def broken(path):
    """Returns those links of a file that lead nowhere."""
    found = links(path.read_text("utf-8"))
    return [link for link in found if not leads_somewhere(link, path)]


def test_links_lead_somewhere():
    assert {path.name: broken(path) for path in TEXTS if broken(path)} == {}


def test_every_page_and_picture_is_linked():
    linked = {
        target_of(link, path)[0]
        for path in TEXTS
        for link in links(path.read_text("utf-8"))
    }
    linked.add(ROOT / "docs" / "index.md")
    files = {path for path in (ROOT / "docs").rglob("*") if path.is_file()}
    assert {path for path in files if path.suffix != ".py"} <= linked
