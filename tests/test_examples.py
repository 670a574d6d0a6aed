import csv
import os
import pathlib
import re
import subprocess
import sys

import gymnasium
import keras
import pytest

from keras_rl2 import PPO
from keras_rl2 import PolicyFile
from keras_rl2 import load

ROOT = pathlib.Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def run(name, directory, seed=None):
    """Runs an example and returns the score it prints last, and its folder."""
    source = (ROOT / "examples" / name).read_text()
    if seed is not None:
        source, found = re.subn(r"(?m)^SEED = 0$", f"SEED = {seed}", source)
        assert found == 1
    script = directory / name
    script.write_text(source)
    finished = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", str(script)],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, finished.stderr[-2000:]
    assert "Warning" not in finished.stderr
    (folder,) = (directory / "runs").iterdir()
    last = finished.stdout.splitlines()[-1]
    assert last.startswith("greedy mean return over")
    return float(last.split(":")[1]), folder


def holds_events(folder):
    return any(folder.glob("events.out.tfevents.*"))


def test_examples_are_short_and_state_the_expected_result():
    assert len(EXAMPLES) > 10
    for path in EXAMPLES:
        lines = path.read_text().splitlines()
        assert len(lines) <= (90 if "window" in path.name else 60), path
        assert re.match(r'""".*expect .*\d', lines[0]), path
        assert not any("argparse" in x or "sys.argv" in x for x in lines), path


@pytest.mark.slow
def test_existing_keras_model(tmp_path):
    score, folder = run("existing_keras_model.py", tmp_path)
    assert score >= 400
    best = keras.models.load_model(folder / "best.keras")
    assert isinstance(best, PPO)
    assert best.act([0.0, 0.0, 0.0, 0.0], deterministic=True) in (0, 1)
    with open(folder / "log.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert float(rows[-1]["val_episode_return"]) > 400
    assert int(rows[0]["env_steps"]) < int(rows[-1]["env_steps"])


@pytest.mark.slow
def test_custom_environment(tmp_path):
    score, folder = run("custom_environment.py", tmp_path)
    # Five lights of 2, and a hundredth for each step of at most 200.
    assert 8.5 <= score < 10
    assert holds_events(folder)
    assert len(list((folder / "videos").glob("step-*.gif"))) == 3
    assert load(folder / "agent.keras").env_steps >= 150_000
    assert (folder / "policy.tflite").stat().st_size > 10_000


@pytest.mark.slow
def test_greenhouse(tmp_path):
    score, folder = run("greenhouse.py", tmp_path)
    # Of the random policy: -37.
    assert score >= 40
    assert holds_events(folder)
    agent = load(folder / "agent.keras")
    assert isinstance(agent.action_space, gymnasium.spaces.Dict)
    assert PolicyFile(folder / "policy.tflite").deterministic


@pytest.mark.learning
@pytest.mark.parametrize("seed", range(2))
def test_ppo_cartpole(tmp_path, seed):
    score, folder = run("ppo_cartpole.py", tmp_path, seed)
    assert score >= 475
    assert holds_events(folder)
    picture = (folder / "learning_curve.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    loaded = keras.models.load_model(folder / "agent.keras")
    assert loaded.evaluate("CartPole-v1", episodes=5)["episode_return"] >= 475


@pytest.mark.learning
@pytest.mark.parametrize(
    ("name", "least"), [("ppo_pendulum", -200), ("graph_ppo", 475)]
)
def test_ppo_of_other_tasks(tmp_path, name, least):
    score, folder = run(f"{name}.py", tmp_path)
    assert score >= least
    assert holds_events(folder)
    assert (folder / "agent.keras").exists()


@pytest.mark.learning
@pytest.mark.parametrize(
    ("name", "least", "kept", "package"),
    [
        ("many_seeds", 475, "best.keras", "keras_rl2"),
        ("appo_cartpole", 475, "agent.keras", "keras_rl2"),
        ("distributed_ppo", 200, "agent.keras", "ray"),
    ],
)
def test_trainings_in_parallel(tmp_path, name, least, kept, package):
    pytest.importorskip(package)
    score, folder = run(f"{name}.py", tmp_path)
    assert score >= least
    assert (folder / kept).exists()
