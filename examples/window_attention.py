"""PPO with attention over the last steps: expect 475 or more.

A memory is any RNN cell: here one whose state is a window of the last steps.
CartPole-v1 without velocities; takes about two minutes on two cores.
"""

import keras_rl2 as rl
import gymnasium as gym
import keras
import numpy as np
from keras import ops

SEED = 0
STEPS = 200_000


@keras.saving.register_keras_serializable(package="window_attention")
class WindowAttentionCell(keras.layers.Layer):
    """Attends to the last steps, the present one included."""

    def __init__(self, units, window=16, heads=4, **kwargs):
        super().__init__(**kwargs)
        self.units, self.window, self.heads = units, window, heads
        # The window, and which of its slots are filled.
        self.state_size, self.output_size = [window * units, window], units
        self.embed = keras.layers.Dense(units)
        self.age = keras.layers.Embedding(window, units)
        self.attend = keras.layers.MultiHeadAttention(heads, units // heads)
        self.norm = keras.layers.LayerNormalization()
        self.outer = keras.layers.Dense(units, activation="relu")

    def build(self, input_shape):
        one, many = (None, 1, self.units), (None, self.window, self.units)
        self.embed.build(input_shape)
        self.age.build((self.window,))
        self.attend.build(one, many)
        self.norm.build((None, self.units))
        self.outer.build((None, self.units))

    def call(self, inputs, states):
        present = self.embed(inputs)[:, None]
        shape = (-1, self.window, self.units)
        window = ops.reshape(states[0], shape)[:, 1:]
        window = ops.concatenate([window, present], axis=1)
        there = ops.concatenate(
            [states[1][:, 1:], ops.ones_like(states[1][:, :1])], axis=1
        )
        aged = window + self.age(ops.arange(self.window))
        mask = there[:, None] > 0.5
        seen = (present + self.attend(present, aged, attention_mask=mask))[:, 0]
        output = seen + self.outer(self.norm(seen))
        return output, [ops.reshape(window, (-1, self.state_size[0])), there]

    def get_config(self):
        own = {"units": self.units, "window": self.window, "heads": self.heads}
        return {**super().get_config(), **own}


class PositionsOnly(gym.ObservationWrapper):
    """Shows where cart and pole are, and not how fast they move."""

    def __init__(self, env):
        super().__init__(env)
        seen = env.observation_space
        self.observation_space = gym.spaces.Box(seen.low[::2], seen.high[::2])

    def observation(self, observation):
        return np.array(observation[::2])


keras.utils.set_random_seed(SEED)
hidden = {"wrappers": [PositionsOnly], "num_envs": 8, "seed": SEED}
rollouts = rl.RolloutDataset("CartPole-v1", **hidden)
memory = WindowAttentionCell(64)
agent = rl.PPO.for_env(rollouts.env, memory=memory, seed=SEED)
agent.compile(keras.optimizers.Adam(1e-3))
agent.fit(rollouts, total_steps=STEPS)
score = agent.evaluate("CartPole-v1", episodes=20, **hidden)
print(f"greedy mean return over 20 episodes: {score['episode_return']:.1f}")
