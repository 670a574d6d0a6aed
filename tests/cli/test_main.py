import configparser
import importlib
import pathlib
import shlex

import pytest

from keras_rl2.cli.main import main
from keras_rl2.cli.parser import make_parser
from support.processes import printed_by

ROOT = pathlib.Path(__file__).parents[2]
HEAVY = ("tensorflow", "keras", "gymnasium", "matplotlib", "numpy")
COMMANDS = (
    "train",
    "tune",
    "evaluate",
    "record",
    "plot",
    "export",
    "presets",
    "doctor",
)


@pytest.mark.parametrize(
    "arguments", [["--help"], ["train", "--help"], ["presets"]]
)
def test_help_and_presets_import_no_heavy_package(arguments, tmp_path):
    code = (
        "import sys; from keras_rl2.cli.main import main;"
        f"main({arguments});"
        f"print([m for m in {HEAVY} if m in sys.modules])"
    )
    assert printed_by(code, tmp_path) == "[]"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(capsys, command):
    assert main([command, "--help"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"usage: keras-rl2 {command}")
    assert "--debug" in printed


def test_the_version_is_known(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("keras-rl2 ")


def test_the_console_script_is_the_same_command():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    script = config["options.entry_points"]["console_scripts"].strip()
    name, _, target = script.partition(" = ")
    module, _, function = target.partition(":")
    assert name == "keras-rl2"
    assert getattr(importlib.import_module(module), function) is main


def test_every_command_is_documented_with_examples_that_are_accepted():
    text = (ROOT / "docs" / "command_line.md").read_text(encoding="utf-8")
    lines = text.replace("\\\n", " ").splitlines()
    commands = set()
    for line in (each.removeprefix("$ ") for each in lines):
        if line.startswith("keras-rl2 "):
            arguments = shlex.split(line, comments=True)[1:]
            commands.add(make_parser().parse_args(arguments).command)
    assert commands == set(COMMANDS)
