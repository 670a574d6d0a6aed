"""Files that are no JSON, or missing."""

import re

import pytest

import keras_rl2 as rl
from keras_rl2.saving import atomic_files
from support.agents import KINDS
from support.agents import make_eager_agent
from support.agents import make_env


def test_files_that_are_no_json_are_refused(tmp_path):
    path = tmp_path / "file"
    for content in ("no JSON", "[" * 10**5, ""):
        path.write_text(content)
        with pytest.raises(ValueError, match="not JSON"):
            atomic_files.read_json(path)
    path.write_text("[1, 2]")
    assert atomic_files.read_json(path) == [1, 2]


def test_missing_files_are_named(tmp_path):
    env = make_env()
    agent = make_eager_agent(KINDS["PPO"], env)
    path = tmp_path / "nowhere.bin"
    for read in (
        rl.load,
        rl.presets.read,
        rl.read_manifest,
        rl.PolicyFile,
        lambda path: rl.migrate.from_sb3(path, env),
        lambda path: agent.check_export(path, env),
    ):
        with pytest.raises(FileNotFoundError, match=re.escape(str(path))):
            read(path)
    assert list(tmp_path.iterdir()) == []
