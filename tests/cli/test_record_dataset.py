"""`keras-rl2 record --dataset`."""

import pytest

import keras_rl2 as rl
from keras_rl2.cli.main import main


def test_random_steps_become_a_dataset(tmp_path, capsys):
    folder = tmp_path / "random-v0"
    typed = ["record", "random", "--env", "CartPole-v1"]
    assert main([*typed, "--dataset", str(folder), "--steps", "50"]) == 0
    offline = rl.OfflineDataset(folder)
    assert offline.transitions == 50
    assert capsys.readouterr().out == f"{folder}: {offline.in_words}\n"
    # It is not written over.
    assert main([*typed, "--dataset", str(folder)]) == 2
    assert "new, or empty" in capsys.readouterr().err


def test_a_saved_agent_plays(tmp_path, capsys):
    agent = rl.DQN.for_env("CartPole-v1", hidden=(8,), seed=0)
    agent.save(tmp_path / "agent.keras")
    folder = tmp_path / "greedy-v0"
    typed = ["record", str(tmp_path / "agent.keras"), "--env", "CartPole-v1"]
    options = ["--dataset", str(folder), "--steps", "30", "--deterministic"]
    assert main([*typed, *options]) == 0
    assert rl.OfflineDataset(folder).transitions == 30


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        (["random", "--dataset", "x"], "expected --env"),
        (["random", "--env", "CartPole-v1", "--steps", "9"], "--dataset FOLD"),
        (
            [
                "random",
                "--env",
                "CartPole-v1",
                "--dataset",
                "x",
                "--steps",
                "0",
            ],
            "at least 1",
        ),
        (["random", "--env", "CartPole-v9x", "--dataset", "x"], "unknown envi"),
    ],
)
def test_what_is_wrong_is_said(typed, text, capsys):
    assert main(["record", *typed]) == 2
    assert text in capsys.readouterr().err
