"""The command as typed, in a process of its own: what it prints and writes.

Each of them imports TensorFlow. What the subcommands do is also tested within
the process of the tests, in the default layer.
"""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter
from PIL import Image

from keras_rl2.cli import agent_file

COMMAND = Path(sysconfig.get_path("scripts"), "keras-rl2")
RUN = "runs/PPO-CartPole-v1/seed-0"
OBSERVATION = np.array([[0.0, 0.5, 0.1, -0.5], [0, -1, 0, 1]], np.float32)


pytestmark = pytest.mark.slow


class Typed:
    """A folder in which the command is typed."""

    def __init__(self, folder):
        self.folder = folder
        self.run_folder = folder / RUN

    def __call__(self, *arguments):
        """Returns the lines that one command prints."""
        return self.run(COMMAND, *arguments)

    def run(self, *program):
        """Returns the lines that a program prints."""
        done = subprocess.run(
            program,
            cwd=self.folder,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout.splitlines()


@pytest.fixture(scope="module")
def typed(tmp_path_factory):
    return Typed(tmp_path_factory.mktemp("typed"))


@pytest.fixture(scope="module")
def training(typed):
    """What a training printed, after which others of the command are typed."""
    return typed("train", "ppo", "CartPole-v1", "--steps", "2000")


# The same function in one process: each of its own would import TensorFlow.
IN_A_ROW = """
import json, sys
from keras_rl2.cli.main import main
for arguments in json.loads(sys.argv[1]):
    assert main(arguments) == 0, arguments
"""
EXPORTS = (
    ("--format", "tf_saved_model"),
    ("--format", "onnx"),
    ("--format", "litert", "--output", "new/cartpole.tflite"),
)


@pytest.fixture(scope="module")
def exported(typed, training):
    """What the exports printed that are made one after another."""
    commands = [["export", RUN, *options] for options in EXPORTS]
    return typed.run(sys.executable, "-c", IN_A_ROW, json.dumps(commands))


@pytest.fixture(scope="module")
def actions(typed, training):
    agent = agent_file.load(typed.run_folder / "best.keras")
    return agent.act(OBSERVATION, deterministic=True)


def test_train(typed, training):
    assert training[0] == (
        "PPO on CartPole-v1, seed 0, 2,000 steps, 8 environments: " + RUN
    )
    last = training[-1].partition(": ")[2]
    assert last.startswith("return ")
    assert last.count("20 greedy episodes") == 1
    assert (typed.run_folder / "agent.keras").is_file()


def test_evaluate_is_what_train_ended_with(typed, training):
    """The same 20 episodes of the same policy."""
    last = training[-1].partition(": ")[2]
    assert typed("evaluate", RUN) == [f"CartPole-v1: {last}"]


def test_record(typed, training):
    (line,) = typed("record", RUN, "--output", "videos/greedy.gif")
    frames, _, score = line.partition(": ")[2].partition(" frames, return ")
    assert int(frames) == float(score) + 1
    with Image.open(typed.folder / "videos" / "greedy.gif") as video:
        assert video.size == (600, 400)


def test_plot(typed, training):
    curve, path = typed("plot", "runs")
    assert curve.startswith("PPO on CartPole-v1: return ")
    assert curve.endswith("1 seed")
    with Image.open(typed.folder / path) as picture:
        assert picture.format == "PNG"


def test_export_tf_saved_model(typed, actions, exported):
    assert len(exported) == len(EXPORTS)
    assert exported[0].startswith(
        f"{RUN}/policy: greedy policy as tf_saved_model"
    )
    policy = tf.saved_model.load(str(typed.run_folder / "policy"))
    np.testing.assert_array_equal(policy.serve(OBSERVATION), actions)


def test_export_onnx(typed, actions, exported):
    session = onnxruntime.InferenceSession(typed.run_folder / "policy.onnx")
    (name,) = [each.name for each in session.get_inputs()]
    (served,) = session.run(None, {name: OBSERVATION})
    np.testing.assert_array_equal(served, actions)


def litert_actions(path):
    run = Interpreter(model_path=str(path)).get_signature_runner(
        "serving_default"
    )
    (served,) = run(observation=OBSERVATION).values()
    return served


def test_export_litert(typed, actions):
    typed("export", RUN, "--format", "litert")
    served = litert_actions(typed.run_folder / "policy.tflite")
    np.testing.assert_array_equal(served, actions)


def test_export_into_a_new_folder(typed, actions, exported):
    path = typed.folder / "new" / "cartpole.tflite"
    np.testing.assert_array_equal(litert_actions(path), actions)
