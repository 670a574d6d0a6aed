"""The output and the files of the command, in a process of its own.

Each process imports TensorFlow. The default tests run the subcommands within
the process of the tests.
"""

import subprocess
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import keras_rl2 as rl

COMMAND = Path(sysconfig.get_path("scripts"), "keras-rl2")
RUN = "runs/PPO-CartPole-v1/seed-0"
OBSERVATION = np.array([[0.0, 0.5, 0.1, -0.5], [0, -1, 0, 1]], np.float32)


@pytest.mark.slow
def test_commands_follow_each_other(tmp_path):
    def typed(*arguments):
        """Returns the lines that a command prints."""
        done = subprocess.run(
            [COMMAND, *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout.splitlines()

    run_folder = tmp_path / RUN
    lines = typed("train", "ppo", "CartPole-v1", "--steps", "2000")
    assert lines[0] == (
        f"PPO on CartPole-v1, seed 0, 2,000 steps, 8 environments: {RUN}"
    )
    last = lines[-1].partition(": ")[2]
    assert last.startswith("return ")
    assert last.count("20 greedy episodes") == 1
    assert (run_folder / "agent.keras").is_file()

    # The same 20 episodes of the same policy.
    assert typed("evaluate", RUN) == [f"CartPole-v1: {last}"]

    (line,) = typed("record", RUN, "--output", "videos/greedy.gif")
    frames, _, score = line.partition(": ")[2].partition(" frames, return ")
    assert int(frames) == float(score) + 1
    with Image.open(tmp_path / "videos" / "greedy.gif") as video:
        assert video.size == (600, 400)

    curve, path = typed("plot", "runs")
    assert curve.startswith("PPO on CartPole-v1: return ")
    assert curve.endswith("1 seed")
    with Image.open(tmp_path / path) as picture:
        assert picture.format == "PNG"

    agent = rl.load(run_folder / "best.keras")
    actions = agent.act(OBSERVATION, deterministic=True)
    for form, ending in (("onnx", ".onnx"), ("litert", ".tflite")):
        typed("export", RUN, "--format", form)
        policy = rl.PolicyFile(run_folder / f"policy{ending}")
        np.testing.assert_array_equal(policy.act(OBSERVATION), actions)
