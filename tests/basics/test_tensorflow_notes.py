"""TensorFlow writes what it must, and a crash keeps its message."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf

from keras_rl2.basics import tensorflow_notes

ROOT = Path(__file__).resolve().parents[2]
# What TensorFlow writes before it looks at the setting, an error of a machine
# without a driver, and what the interpreter says whatever the setting is.
UNAVOIDABLE = re.compile(
    r"WARNING: All log messages before absl"
    r"|I\d{4} .*\b(port|cudart_stub|cpu_feature_guard)\.cc:"
    r"|To enable the following instructions"
    r"|E\d{4} .*failed call to cuInit.*\(303\)"
    r"|INFO: Created TensorFlow Lite XNNPACK delegate"
)

FIT = """
import sys
import keras_rl2 as rl
rollouts = rl.RolloutDataset("CartPole-v1", num_envs=2, horizon=32)
agent = rl.PPO.for_env(rollouts.env, seed=0)
agent.fit(rollouts, total_steps=256)
agent.fit(rollouts, total_steps=256)
agent.evaluate("CartPole-v1", episodes=2)
agent.act(rollouts.env.observation_space.sample())
agent.export("policy")
agent.export("policy.tflite", format="litert")
agent.export("policy.onnx", format="onnx")
assert "IPython" not in sys.modules
"""

CRASH = """
import os
import tensorflow as tf
import keras_rl2 as rl

class Converter:
    def convert(self):
        os.write(2, b"why it crashed\\n")
        os.abort()

tf.lite.TFLiteConverter.from_concrete_functions = lambda *_: Converter()
rollouts = rl.RolloutDataset("CartPole-v1", num_envs=2, horizon=32)
rl.A2C.for_env(rollouts.env, hidden=(4,)).fit(rollouts, epochs=1, verbose=0)
"""


def run(code, folder, **environment):
    """Runs code in a fresh Python; returns what became of it."""
    unset = {k: v for k, v in os.environ.items() if "TF_CPP" not in k}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**unset, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
    )


def said(code, folder, **environment):
    """Runs code; returns the lines of stderr that could be avoided."""
    done = run(code, folder, **environment)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    return [line for line in lines if not UNAVOIDABLE.match(line)]


@pytest.mark.slow
@pytest.mark.parametrize("first", ["keras", "keras_rl2"])
def test_a_first_fit_and_exports_write_nothing_of_their_own(tmp_path, first):
    assert said(f"import {first}\n{FIT}", tmp_path) == []


@pytest.mark.slow
def test_the_setting_of_the_user_wins(tmp_path):
    lines = said(FIT, tmp_path, TF_CPP_MIN_LOG_LEVEL="0")
    assert any("XLA" in line for line in lines)


@pytest.mark.slow
def test_a_crash_within_a_conversion_shows_its_message(tmp_path):
    done = run(CRASH, tmp_path)
    assert done.returncode < 0
    assert "why it crashed" in done.stderr


def test_a_tensorflow_without_such_a_log_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(tf.sysconfig, "get_include", lambda: str(tmp_path))
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    tensorflow_notes.prepare()
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "2"
