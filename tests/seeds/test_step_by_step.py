"""Text 000: control returns after each step; activations are not kept.

Can an optimizer use the activations of acting again? Only until the weights
change: a gradient belongs to one recorded forward pass of the present weights.
So a loop may return to Python after every step of the environment, each update
records a pass of its own, and what is kept between updates is what happened
(observations, actions, rewards, log-probabilities), never what a layer gave.
"""

import keras
import numpy as np
import pytest
from gymnasium import spaces

import keras_rl2 as rl

CELLS = 5
LEFT, RIGHT = 0, 1
GAMMA = np.float32(0.7)


class Corridor:
    """Five cells in a row: from the first, the last is to be reached.

    One reward there, which ends the episode.
    """

    observation_space = spaces.Box(0.0, 1.0, (CELLS,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self):
        self.cell = 0

    def look(self):
        """Returns the present cell as a one-hot row."""
        return np.eye(CELLS, dtype="float32")[self.cell]

    def step(self, action):
        """Returns the reward and whether the end was reached."""
        self.cell = max(self.cell + (1 if action == RIGHT else -1), 0)
        ended = self.cell == CELLS - 1
        return float(ended), ended

    def begin(self):
        """Goes back to the first cell."""
        self.cell = 0


def network(units, seed, name="network"):
    """Makes a small network over the cells."""
    keras.utils.set_random_seed(seed)
    cell = keras.Input((CELLS,))
    hidden = keras.layers.Dense(16, activation="tanh")(cell)
    return keras.Model(cell, keras.layers.Dense(units)(hidden), name=name)


def greedy(outputs):
    """Returns the best action of every cell but the last."""
    return np.argmax(np.asarray(outputs)[: CELLS - 1], axis=-1)


ALL_CELLS = np.eye(CELLS, dtype="float32")


@pytest.mark.slow
def test_trajectories_kept_by_hand_train_an_agent():
    agent = rl.PPO(
        network(2, 0, "actor"),
        network(1, 10, "critic"),
        gamma=float(GAMMA),
        max_gradient_norm=None,
        observation_space=Corridor.observation_space,
        action_space=Corridor.action_space,
        seed=0,
    )
    agent.compile(keras.optimizers.Adam(0.01), jit_compile=False)
    corridor = Corridor()
    for _ in range(12):
        kept = []
        for _ in range(64):
            seen = corridor.look()
            action, log_prob = agent.act(seen, return_log_prob=True)
            reward, ended = corridor.step(action)
            kept.append((seen, action, log_prob, reward, ended))
            if ended:
                corridor.begin()
        samples = in_arrays(agent, kept, corridor.look())
        for _ in range(4):
            agent.train_on_batch(samples)
    assert (greedy(agent(ALL_CELLS)) == RIGHT).all()
    policy, _ = agent.policy_and_value(ALL_CELLS)
    assert (np.exp(policy.log_prob([RIGHT] * CELLS))[:4] > 0.9).all()


def in_arrays(agent, kept, last):
    """Returns the samples of a trajectory `[T]`, as a minibatch."""
    seen, action, log_prob, reward, ended = (
        np.array(column) for column in zip(*kept, strict=True)
    )
    values = agent.value(np.concatenate([seen, last[None]]))
    advantage, target = rl.returns.generalized_advantage_estimation(
        reward.astype("float32"), GAMMA * ~ended, values[:-1], values[1:], 0.95
    )
    return {
        "observation": seen,
        "action": action,
        "log_prob": log_prob,
        "advantage": advantage.numpy(),
        "returns": target.numpy(),
    }


class Counting(keras.layers.Layer):
    """Counts the passes that are recorded for training, as they are traced."""

    def __init__(self):
        super().__init__()
        self.recorded = 0

    def call(self, inputs, training=False):
        self.recorded += bool(training)
        return inputs


def test_our_updates_record_one_pass():
    counting = Counting()
    cell = keras.Input((4,))
    trunk = keras.layers.Dense(8, activation="tanh")(counting(cell))
    outputs = [keras.layers.Dense(units)(trunk) for units in (2, 1)]
    agent = rl.PPO(keras.Model(cell, outputs))
    agent.compile(jit_compile=False)
    rollouts = rl.RolloutDataset(
        "CartPole-v1", horizon=8, passes=1, batch_size=None, seed=0
    )
    agent.fit(rollouts, epochs=2, verbose=0)
    # Policy and value: traced once, and never again.
    assert counting.recorded == 1
