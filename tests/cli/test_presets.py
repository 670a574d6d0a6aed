import pytest

from keras_rl2 import presets
from keras_rl2.cli.main import main


@pytest.mark.parametrize("words", [[], ["CartPole-v1"]])
def test_the_table_has_all_presets(capsys, words):
    assert main(["presets", *words]) == 0
    lines = capsys.readouterr().out.splitlines()
    head, *rows = (line.split() for line in lines)
    assert head[:2] == ["algorithm", "environment"]
    assert head[2:] == ["steps", "updates", "laptop"]
    assert rows == [
        [
            preset.algorithm,
            preset.environment,
            f"{preset.total_steps:,}" if preset.total_steps else "-",
            f"{preset.updates:,}" if preset.updates else "-",
            "yes" if preset.laptop else "no",
        ]
        for preset in presets.available(*words)
    ]
    # Columns are straight.
    column = lines[0].index("environment")
    assert all(line[column - 1] == " " != line[column] for line in lines)


def test_words_are_algorithms_and_environments(capsys):
    ppo = [p.environment for p in presets.available() if p.algorithm == "PPO"]
    for words, rows in (
        (["ppo"], [("PPO", environment) for environment in ppo]),
        (["bc", "CartPole-v1"], [("BehaviorCloning", "CartPole-v1")]),
        (
            ["CartPole-v1", "behaviorcloning"],
            [("BehaviorCloning", "CartPole-v1")],
        ),
    ):
        assert main(["presets", *words]) == 0
        _, *lines = capsys.readouterr().out.splitlines()
        assert [tuple(line.split()[:2]) for line in lines] == rows


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sac", "CartPole-v1"], "no preset for sac CartPole-v1"),
        (["Cartpole"], "perhaps 'CartPole-v1'"),
        (["pppo"], "perhaps 'PPO'"),
    ],
)
def test_unknown_words_name_the_nearest(refused, words, said):
    assert said in refused("presets", *words)
