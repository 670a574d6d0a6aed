"""Ranges of settings, as data."""

import pytest

from keras_rl2 import presets
from keras_rl2.presets import SearchSpace
from keras_rl2.presets import find_space
from keras_rl2.presets import read_space


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
        space = find_space(algorithm.lower())
        assert space.algorithm == algorithm
        assert {"optimizer.learning_rate", "agent.gamma"} < set(space.ranges)
        assert space.source
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
            "agent.gamma": {"low": 0, "high": 1},
            "dataset.passes": {"low": 1, "high": 20},
            "networks.hidden": [[8], [16, 16]],
            "agent.clip_ratio": [0.1, 0.2],
            "num_envs": [4, 8],
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
        "agent.clip_ratio": [0.1, 0.2],
        "num_envs": [4, 8],
    }
    assert values["networks.hidden"] == [8]
    preset = presets.find("PPO", "CartPole-v1")
    changed = space.apply(preset, values)
    assert changed.num_envs == 4
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


def test_settings_of_another_optimizer_can_be_varied():
    ranges = {"optimizer.name": ["SGD", "Adam"], "optimizer.momentum": [0, 0.9]}
    space = SearchSpace("PPO", ranges)
    changed = space.apply(
        presets.find("PPO", "CartPole-v1"),
        {"optimizer.name": "SGD", "optimizer.momentum": 0.9},
    )
    assert changed.optimizer["momentum"] == 0.9
    assert "epsilon" not in changed.optimizer


def test_invalid_ranges_are_refused():
    for name, given, said in (
        ("agent.gama", [0.9, 0.99], "perhaps 'agent.gamma'"),
        ("total_steps", [1, 2], "Expected a setting of PPO"),
        ("agent.gamma", [0.9], "at least two choices"),
        ("agent.gamma", [0.9, 0.9], "at least two choices"),
        ("agent.gamma", ["high", "low"], "each a number"),
        ("agent.gamma", 0.9, "at least two choices"),
        ("agent.gamma", {"low": 0.9}, "at least two choices"),
        ("agent.gamma", {"low": 0.9, "high": 0.9}, "low below high"),
        ("agent.gamma", {"low": 0, "high": 1, "log": True}, "above 0"),
        ("agent.gamma", {"low": 0, "high": 1, "step": 1}, "low below high"),
        ("agent.gamma", {"low": True, "high": 2}, "low below high"),
        ("dataset.passes", {"low": 0, "high": 3}, "of at least 1"),
        ("dataset.passes", {"low": 1.5, "high": 3}, "of at least 1"),
        ("networks.hidden", {"low": 1, "high": 3}, "a list of whole numbers"),
    ):
        assert said in refusal(SearchSpace, "PPO", {name: given}), name
        ranges = find_space("PPO").with_ranges
        assert said in refusal(ranges, {name: given}), name


def refusal(call, *args):
    """Returns what a call is refused with, nothing where it is not."""
    try:
        call(*args)
    except ValueError as error:
        return str(error)
    return ""


def test_ranges_are_replaced_and_taken_out():
    space = find_space("PPO")
    changed = space.with_ranges({"agent.gamma": [0.5, 0.6], "num_envs": None})
    assert changed.ranges == {**space.ranges, "agent.gamma": [0.5, 0.6]}
    less = space.with_ranges({"agent.gamma": None})
    assert set(space.ranges) - set(less.ranges) == {"agent.gamma"}
    with pytest.raises(ValueError, match="at least one setting"):
        space.with_ranges(dict.fromkeys(space.ranges))


def test_without_a_search_space_it_says_which_there_are():
    with pytest.raises(ValueError, match=r"one of A2C, APPO, .* 'CQL'"):
        find_space("cql")


def test_invalid_files_are_refused_by_name(tmp_path):
    path = tmp_path / "space.json"
    for text, said in (
        ("[]", "expected a JSON object"),
        ('{"algorithm": "PPO"}', "algorithm, ranges"),
        ('{"algorithm": "PPO", "ranges": []}', "at least one"),
        ('{"algorithm": "PPO", "ranges": {}, "x": 1}', "a field"),
        ('{"algorithm": 3, "ranges": {"agent.gamma": [0, 1]}}', "algorithm"),
    ):
        path.write_text(text)
        refused = refusal(read_space, path)
        assert said in refused, text
        assert "space.json" in refused, text
