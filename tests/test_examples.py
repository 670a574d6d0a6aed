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


def test_there_are_examples():
    assert {path.name for path in EXAMPLES} >= {
        "ppo_cartpole.py",
        "ppo_pendulum.py",
        "existing_keras_model.py",
    }


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_it_is_short_and_says_what_to_expect(path):
    source = path.read_text()
    compile(source, str(path), "exec")
    assert len(source.splitlines()) <= 60
    assert re.match(r'""".*expect .*\d', source.splitlines()[0])
    assert "argparse" not in source
    assert "sys.argv" not in source


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
    assert score >= 30
    assert holds_events(folder)
    agent = load(folder / "agent.keras")
    assert isinstance(agent.action_space, gymnasium.spaces.Dict)
    assert PolicyFile(folder / "policy.tflite").deterministic


@pytest.mark.learning
@pytest.mark.parametrize("seed", range(5))
def test_ppo_cartpole(tmp_path, seed):
    score, folder = run("ppo_cartpole.py", tmp_path, seed)
    assert score >= 475
    assert holds_events(folder)
    picture = (folder / "learning_curve.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    loaded = keras.models.load_model(folder / "agent.keras")
    assert loaded.evaluate("CartPole-v1", episodes=5)["episode_return"] >= 475


@pytest.mark.learning
@pytest.mark.parametrize("seed", range(3))
def test_ppo_pendulum(tmp_path, seed):
    score, folder = run("ppo_pendulum.py", tmp_path, seed)
    assert score >= -200
    assert holds_events(folder)
    assert (folder / "agent.keras").exists()


@pytest.mark.learning
@pytest.mark.parametrize("seed", range(3))
def test_graph_ppo(tmp_path, seed):
    score, folder = run("graph_ppo.py", tmp_path, seed)
    assert score >= 475
    assert holds_events(folder)
    assert (folder / "agent.keras").exists()


@pytest.mark.learning
def test_many_seeds(tmp_path):
    score, folder = run("many_seeds.py", tmp_path)
    assert score >= 475
    assert (folder / "best.keras").exists()


@pytest.mark.learning
def test_appo_cartpole(tmp_path):
    score, folder = run("appo_cartpole.py", tmp_path)
    assert score >= 475
    assert holds_events(folder)
    assert (folder / "agent.keras").exists()


@pytest.mark.learning
def test_distributed_ppo(tmp_path):
    pytest.importorskip("ray", reason='needs Ray: pip install ".[ray]"')
    score, folder = run("distributed_ppo.py", tmp_path)
    assert score >= 200
    assert (folder / "agent.keras").exists()
