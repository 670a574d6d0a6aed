"""The site builds without a warning, and its links and anchors exist."""

import inspect
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

import keras_rl2

ROOT = Path(__file__).resolve().parents[2]
# What a reader's browser gets by itself.
FETCHED = {"img": "src", "script": "src", "link": "href", "source": "src"}


class Page(HTMLParser):
    """The anchors of a page of HTML, and its links."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.fetched = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.ids |= {attributes.get("id"), attributes.get("name")} - {None}
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        if attributes.get(FETCHED.get(tag)):
            self.fetched.append(attributes[FETCHED[tag]])


@cache
def page(path):
    return Page(path.read_text("utf-8"))


def leads_somewhere(link, path):
    file, _, anchor = unquote(link).partition("#")
    file = file.partition("?")[0]
    target = (path.parent / file).resolve() if file else path
    if target.suffix != ".html" or not target.exists():
        return target.exists()
    return not anchor or anchor in page(target).ids


pytestmark = pytest.mark.slow


def test_every_page_is_built(site):
    for path in (ROOT / "docs").glob("*.md"):
        assert (site / "docs" / f"{path.stem}.html").exists()
    assert (site / "search.html").exists()


def test_links_and_anchors_lead_somewhere(site):
    broken = [
        f"{path.relative_to(site)}: {link}"
        for path in site.rglob("*.html")
        # The source of a module links to one of the paths of its names.
        if "_modules" not in path.parts
        for link in (*page(path).links, *page(path).fetched)
        if not re.match(r"[a-z]+:", link) and not leads_somewhere(link, path)
    ]
    assert broken == []


def test_nothing_is_fetched_from_elsewhere_nor_edited(site):
    fetched = [
        link
        for path in site.rglob("*.html")
        for link in page(path).fetched
        if re.match(r"(https?:)?//", link)
    ]
    assert fetched == []
    for path in site.rglob("*.html"):
        for link in page(path).links:
            assert not re.search("/(edit|blob)/", link), path
    for style in site.rglob("*.css"):
        text = style.read_text("utf-8")
        assert not re.search(r"(url\(|@import )['\"]?(https?:)?//", text), style


def test_every_public_name_has_a_page(site):
    sections = {
        name: getattr(keras_rl2, name).__all__
        for name in keras_rl2.__all__
        if inspect.ismodule(getattr(keras_rl2, name))
    }
    names = {f"keras_rl2.{name}" for name in keras_rl2.__all__}
    for section, offered in sections.items():
        own = {*offered} - {*keras_rl2.__all__}
        names |= {f"keras_rl2.{section}.{name}" for name in own}
    pages = {path.stem for path in (site / "reference").glob("*.html")}
    assert names | {"keras_rl2"} == pages
    for name in names:
        ids = page(site / "reference" / f"{name}.html").ids
        assert {name, f"module-{name}"} & ids
