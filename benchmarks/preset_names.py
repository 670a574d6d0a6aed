"""Presets by the names of their files, `dqn-CartPole-v1` for example."""

from keras_rl2 import presets


def name_of(preset):
    """Returns the name of a preset."""
    return f"{preset.algorithm.lower()}-{preset.environment}"


def preset_of(name):
    """Returns the preset of a name."""
    algorithm, _, environment = name.partition("-")
    return presets.find(algorithm, environment)


def laptop_presets():
    """Returns the names of all presets that a laptop is enough for."""
    return [
        name_of(each)
        for each in presets.available()
        if each.laptop and each.total_steps
    ]
