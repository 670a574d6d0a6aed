"""Ranges of settings, as data."""

import pytest

from keras_rl2 import presets
from keras_rl2.presets import SearchSpace


class Lowest:
    """A trial that draws the first choice and the lowest number."""

    def __init__(self):
        self.asked = {}

    def suggest_categorical(self, name, choices):
        self.asked[name] = choices
        return choices[0]

    def suggest_float(self, name, low, high, *, log=False):
        self.asked[name] = (low, high, log, "float")
        return low

    def suggest_int(self, name, low, high, *, log=False):
        self.asked[name] = (low, high, log, "int")
        return low


def test_shipped_spaces_make_presets():
    for algorithm, known in presets.ALGORITHMS.items():
        if known.offline:
            continue
        space = SearchSpace(algorithm.lower())
        assert space.algorithm == algorithm
        assert {"optimizer.learning_rate", "agent.gamma"} < set(space.ranges)
        values = space.suggest(Lowest())
        assert set(values) == set(space.ranges)
        changed = space.apply(presets.default(algorithm, "Any-v0"), values)
        for name, value in values.items():
            section, _, key = name.partition(".")
            assert getattr(changed, section)[key] == value, (algorithm, name)
        for preset in presets.available():
            if preset.algorithm == algorithm:
                space.apply(preset, values)


def test_ranges_are_drawn_as_they_are_written():
    space = SearchSpace(
        "ppo",
        {
            "optimizer.learning_rate": {"low": 1e-5, "high": 1, "log": True},
            "agent.gamma": {"low": 0.0, "high": 1},
            "dataset.passes": {"low": 1, "high": 20},
            "networks.hidden": [[8], [16, 16]],
            "agent.clip_ratio": [0.1, 0.2],
        },
    )
    trial = Lowest()
    values = space.suggest(trial)
    assert trial.asked == {
        "optimizer.learning_rate": (1e-5, 1, True, "float"),
        "agent.gamma": (0, 1, False, "float"),
        "dataset.passes": (1, 20, False, "int"),
        # Optuna keeps no lists.
        "networks.hidden": ["[8]", "[16, 16]"],
        "agent.clip_ratio": ["0.1", "0.2"],
    }
    assert values["networks.hidden"] == [8]
    preset = presets.find("PPO", "CartPole-v1")
    changed = space.apply(preset, values)
    assert changed.networks == {**preset.networks, "hidden": [8]}
    # A schedule stays one.
    assert changed.optimizer["learning_rate"] == {
        "schedule": "linear",
        "initial": 1e-5,
        "final": 0.0,
    }


def test_without_an_optimizer_it_is_the_algorithms_own():
    space = SearchSpace("A2C", {"optimizer.learning_rate": [0.1, 0.2]})
    preset = presets.Preset("A2C", "CartPole-v1", 100)
    changed = space.apply(preset, {"optimizer.learning_rate": 0.1})
    assert changed.optimizer["name"] == "Adam"
    assert changed.optimizer["learning_rate"] == 0.1


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("total_steps", [1, 2], "names as agent.gamma"),
        ("agent.gamma", [0.9], "at least two choices"),
        ("agent.gamma", {"low": 0.9}, "at least two choices"),
    ],
)
def test_invalid_ranges_are_refused(name, given, said):
    with pytest.raises(ValueError, match=said):
        SearchSpace("PPO", {name: given})


def test_a_setting_stays_as_the_preset_has_it():
    space = SearchSpace("PPO", {"networks.hidden": ["preset", [8]]})
    preset = presets.find("PPO", "CartPole-v1")
    assert space.apply(preset, space.suggest(Lowest())) == preset
