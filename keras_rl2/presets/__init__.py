"""Settings that are known to work, as data.

    preset = keras_rl2.presets.find("PPO", "CartPole-v1")
    training = keras_rl2.Training.from_preset(preset, seed=0)
    history = training.run()

Nothing but the standard library is imported here.
"""

from keras_rl2.presets.algorithms import ALGORITHMS
from keras_rl2.presets.preset import Preset
from keras_rl2.presets.preset import available
from keras_rl2.presets.preset import default
from keras_rl2.presets.preset import find
from keras_rl2.presets.preset import on_recorded_data
from keras_rl2.presets.preset import read
from keras_rl2.presets.search_space import SearchSpace

__all__ = [
    "ALGORITHMS",
    "Preset",
    "SearchSpace",
    "available",
    "default",
    "find",
    "on_recorded_data",
    "read",
]
