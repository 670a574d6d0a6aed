import re

import pytest

from keras_rl2 import presets
from keras_rl2.cli.main import main


@pytest.mark.parametrize("env_id", [None, "CartPole-v1"])
def test_the_table_has_all_presets(env_id, capsys):
    assert main(["presets", *([env_id] if env_id else [])]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == [
        "algorithm",
        "environment",
        "steps",
        "updates",
        "laptop",
    ]
    assert [row.split() for row in rows] == [
        [
            preset.algorithm,
            preset.environment,
            f"{preset.total_steps:,}" if preset.total_steps else "-",
            f"{preset.updates:,}" if preset.updates else "-",
            "yes" if preset.laptop else "no",
        ]
        for preset in presets.available(env_id)
    ]


def test_columns_are_straight(capsys):
    assert main(["presets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    column = lines[0].index("environment")
    assert all(re.match(r"\S+ +$", line[:column]) for line in lines)
    assert len({line.rindex("  ") for line in lines}) == 1
