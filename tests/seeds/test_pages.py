"""What the pages say beside their code (`tests/docs` runs that) is so."""

import keras
import numpy as np

import keras_rl2 as rl


def test_what_the_page_says_of_precision():
    for dtype in ("mixed_bfloat16", "mixed_float16"):
        agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), dtype=dtype, seed=0)
        assert agent.actor.compute_dtype == dtype.removeprefix("mixed_")
        assert agent.actor.variable_dtype == "float32"
        scaled = keras.optimizers.LossScaleOptimizer
        scales = isinstance(agent.optimizer, scaled)
        assert scales == (dtype == "mixed_float16")
        assert agent.value(np.zeros((3, 4))).dtype == "float32"
