"""Files of Stable-Baselines3 where PyTorch is not installed."""

import sys

import pytest

import keras_rl2 as rl
from support import sb3_parity


def test_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        ImportError, match=r'pip install "keras-rl2-fit\[sb3\]"'
    ):
        rl.migrate.from_sb3(sb3_parity.FOLDER / "dqn.zip")


def test_a_missing_file_is_said_to_be_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(FileNotFoundError, match="there_is_none"):
        rl.migrate.from_sb3("there_is_none.zip")
