"""What setup.cfg cannot say: the README as it reads where no files are."""

import re
from configparser import ConfigParser
from pathlib import Path

from setuptools import setup

_ROOT = Path(__file__).parent
_LINK = re.compile(r"(!?)\[([^]]+)\]\((?![a-z]+:)([^)\s]+)\)")


def description(readme, source):
    """Returns a README whose links lead somewhere outside a checkout, too.

    Args:
        readme: str. Markdown.
        source: str. Where the source is kept, with GitHub's paths. Empty where
            nothing is known, and links become their words.
    """

    def absolute(link):
        picture, words, path = link.groups()
        if not source:
            return words
        kind = "raw" if picture else "blob"
        return f"{picture}[{words}]({source}/{kind}/HEAD/{path})"

    return _LINK.sub(absolute, readme)


def source_of(config):
    """Returns `Source` of the `project_urls` of setup.cfg, or nothing."""
    urls = config.get("metadata", "project_urls", fallback="")
    found = re.search(r"(?m)^Source\s*=\s*(\S+?)/?$", urls)
    return found[1] if found else ""


if __name__ == "__main__":
    config = ConfigParser()
    config.read(_ROOT / "setup.cfg", encoding="utf-8")
    readme = (_ROOT / "README.md").read_text("utf-8")
    setup(long_description=description(readme, source_of(config)))
