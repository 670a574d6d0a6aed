"""The drawing in `docs/architecture.md` is the house that stands."""

import configparser
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Not rooms: the door, and one number.
_NO_ROOMS = {"__init__", "version"}


def layers():
    """Returns the rooms of each floor by the contract, from the top."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    rows = config["importlinter:contract:layers"]["layers"].split("\n")
    return [
        {room.strip().removeprefix("keras_rl2.") for room in row.split("|")}
        for row in rows
        if row
    ]


def drawn():
    """Returns the rooms of each floor of the drawing, from the top."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    drawing = re.search(r"(?ms)^```\n(.*?)^```", text)[1]
    rows = re.findall(r"(?m)^ \| (.*) \|$", drawing)
    # After two blanks stands what the floor is for.
    return [set(re.split(r"  ", row)[0].split(" | ")) for row in rows]


def test_the_drawing_shows_the_contract():
    assert drawn() == layers()


def test_no_room_is_missing():
    found = {
        path.stem if path.suffix == ".py" else path.name
        for path in (ROOT / "keras_rl2").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").is_file()
    }
    assert set().union(*layers()) == found - _NO_ROOMS
