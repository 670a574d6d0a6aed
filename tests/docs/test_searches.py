"""A reader who searches finds the page, by Sphinx' own search in a browser.

`searches.json` lists the searched words, the page with the answer, and the
tracker where the words come from. One site that is built already:

    SITE=FOLDER python -m pytest -m slow -n 0 tests/docs/test_searches.py
"""

import html
import json
import re
import subprocess
from pathlib import Path
from urllib.parse import urlencode

import pytest

PATH = Path(__file__).with_name("searches.json")
SEARCHES = json.loads(PATH.read_text("utf-8"))
# As many of the results as are seen without scrolling.
BEST = 2
_RESULT = re.compile(r'<li[^>]*>\s*<a href="([^"?#]+)')

pytestmark = pytest.mark.slow


def found(browser, address, search, profile):
    """Returns the pages of the results, the best first, each once."""
    url = f"{address}/search.html?{urlencode({'q': search})}"
    done = subprocess.run(
        [
            browser,
            *("--headless", "--no-sandbox", "--disable-gpu"),
            f"--user-data-dir={profile}",
            "--virtual-time-budget=10000",
            *("--dump-dom", url),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    _, results, text = done.stdout.partition('id="search-results"')
    assert results, done.stderr[-2000:]
    pages = map(html.unescape, _RESULT.findall(text))
    names = dict.fromkeys(pages)
    return [name.removesuffix(".html").split("/")[-1] for name in names]


def test_there_are_thirty_searches():
    searches = [each["search"] for each in SEARCHES]
    assert len(set(searches)) == len(searches) >= 30
    assert sum("source" in each for each in SEARCHES) >= 15


def test_each_search_finds_its_page_first_or_second(browser, address, tmp_path):
    missed = {}
    for each in SEARCHES:
        pages = found(browser, address, each["search"], tmp_path)
        if each["page"] not in pages[:BEST]:
            missed[each["search"]] = (each["page"], pages[:5])
    assert missed == {}
