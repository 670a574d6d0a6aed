"""`keras-rl2 record --dataset`."""

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


def test_a_saved_agent_plays(trained, tmp_path):
    folder = tmp_path / "greedy-v0"
    options = ["--dataset", str(folder), "--steps", "30", "--deterministic"]
    assert main(["record", str(trained), *options]) == 0
    assert rl.OfflineDataset(folder).transitions == 30


def test_invalid_options_are_refused(refused):
    at_random = ["record", "random", "--env", "CartPole-v1"]
    for typed, said in (
        (["record", "random", "--dataset", "x"], "expected --env"),
        ([*at_random, "--steps", "9"], "--dataset FOLD"),
        ([*at_random, "--dataset", "x", "--steps", "0"], "at least 1"),
        (
            ["record", "random", "--env", "CartPole-v9x", "--dataset", "x"],
            "CartPole",
        ),
    ):
        assert said in refused(*typed)
