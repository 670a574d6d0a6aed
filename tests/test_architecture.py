"""`docs/architecture.md` names every package, and files that exist."""

import configparser
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")


def on_disk():
    """Returns the names of the packages."""
    folders = (ROOT / "keras_rl2").iterdir()
    return {each.name for each in folders if (each / "__init__.py").is_file()}


def test_the_page_and_the_contract_name_every_package():
    table = PAGE.split("## The packages")[1].split("##")[0]
    rows = re.findall(r"(?m)^\| (`.*?) \|", table)
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == on_disk()
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    layers = config["importlinter:contract:layers"]["layers"]
    assert set(re.findall(r"keras_rl2\.(\w+)", layers)) == on_disk()


def test_files_of_the_page_exist():
    named = re.findall(r"`((?:\w+/)+\w+\.py)`", PAGE)
    missing = [n for n in named if not (ROOT / "keras_rl2" / n).is_file()]
    assert named
    assert missing == []
