"""Pages are whole on wide and narrow screens, and axe finds no barrier.

A reader can scroll to everything that is wider than the page, by a bar that
is seen. axe checks contrast, keyboard and names by the rules of WCAG 2.
"""

import inspect
from pathlib import Path

import pytest

import keras_rl2

DOCS = Path(__file__).resolve().parents[2] / "docs"
PUBLIC = ((name, getattr(keras_rl2, name)) for name in keras_rl2.__all__)
MODULES = [name for name, each in PUBLIC if inspect.ismodule(each)]
# Pages of classes have one template, and so have pages of examples.
PAGES = [
    *("search", "genindex", "BENCHMARKS", "CHANGELOG", "CONTRIBUTING"),
    *("examples/README", "examples/ppo_cartpole"),
    "_modules/keras_rl2/agents/ppo",
    *(f"docs/{path.stem}" for path in sorted(DOCS.glob("*.md"))),
    *(f"docs/notebooks/{p.stem}" for p in DOCS.glob("notebooks/*.ipynb")),
    *(f"reference/keras_rl2{name}" for name in ("", ".PPO", ".RolloutDataset")),
    "reference/keras_rl2.losses.policy_gradient",
    *(f"reference/keras_rl2.{name}" for name in MODULES),
]
# What of an article is wider than its box, and has no bar to scroll by.
# Headings are half a letter wider: their colour is, once they are linked to.
CLIPPED = """() => {
    const scrolls = each => /auto|scroll/.test(getComputedStyle(each).overflowX)
        && (each.scrollWidth <= each.clientWidth
            || each.offsetHeight - each.clientHeight > 5);
    const reached = each => each.tagName != "ARTICLE"
        && (scrolls(each) || reached(each.parentElement));
    const root = document.documentElement;
    const blocks = document.querySelectorAll("article, article *");
    return [root, ...blocks]
        .filter(each => each.clientWidth > 1
            && each.scrollWidth > each.clientWidth + 8
            && (each == root || !reached(each)))
        .map(each => each.outerHTML.slice(0, 200));
}"""
# The menu is the same on all pages: one of them is enough, and saves minutes.
MENU = {"exclude": [".sidebar-drawer"]}
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
# Contrast takes most of the time. It depends on the theme, and not on the
# width; other rules depend on the width, and not on the theme.
CHECKS = {
    (1400, "light"): {"runOnly": WCAG},
    (1400, "dark"): {"runOnly": ["color-contrast"]},
    (420, "light"): {
        "runOnly": WCAG,
        "rules": {"color-contrast": {"enabled": False}},
    },
}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def tabs(browser):
    """Yields a browser that shows its scroll bars."""
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        yield playwright.chromium.launch(
            executable_path=browser,
            args=["--no-sandbox", "--disable-gpu"],
            ignore_default_args=["--hide-scrollbars"],
        )


def opened(tabs, address, width, theme):
    """Opens each page in turn; yields its name and the tab."""
    with tabs.new_page(viewport={"width": width, "height": 900}) as tab:
        tab.add_init_script(f"localStorage.setItem('theme', '{theme}')")
        for name in PAGES:
            assert tab.goto(f"{address}/{name}.html").ok, name
            yield name, tab


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 1024, 420])
def test_nothing_is_clipped(tabs, address, width, theme):
    pages = opened(tabs, address, width, theme)
    clipped = {name: tab.evaluate(CLIPPED) for name, tab in pages}
    assert {name: found for name, found in clipped.items() if found} == {}


@pytest.mark.parametrize(("width", "theme"), CHECKS)
def test_axe_finds_no_violation(tabs, address, width, theme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    options = CHECKS[width, theme] | {"resultTypes": ["violations"]}
    found = []
    for name, tab in opened(tabs, address, width, theme):
        part = None if name == "docs/index" else MENU
        for rule in axe.run(tab, part, options).response["violations"]:
            found += [
                (name, rule["id"], e["html"][:200]) for e in rule["nodes"]
            ]
    assert found == []
