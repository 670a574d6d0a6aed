"""What reads a file says which one is not there."""

import re

import pytest

import keras_rl2 as rl
from support.agents import EVERY_AGENT
from support.agents import make_eager_agent
from support.agents import make_env
from support.plain_networks import dense

READERS = {
    "load": rl.load,
    "presets.read": rl.presets.read,
    "presets.read_space": rl.presets.read_space,
    "read_manifest": rl.read_manifest,
    "PolicyFile": rl.PolicyFile,
    "from_sb3": rl.migrate.from_sb3,
    "from_keras_rl": lambda path: rl.migrate.from_keras_rl(
        path, dense((4,), 2)
    ),
    "check_export": lambda path: make_eager_agent(
        EVERY_AGENT["A2C"], make_env()
    ).check_export(path, make_env()),
}


@pytest.mark.parametrize("name", READERS)
def test_it_is_named(name, tmp_path):
    path = tmp_path / "nowhere.bin"
    with pytest.raises(FileNotFoundError, match=re.escape(str(path))):
        READERS[name](path)
    assert list(tmp_path.iterdir()) == []
