"""A stack of colour frames passes through the data room as it came."""

import gymnasium
import keras
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

import keras_rl2 as rl
from keras_rl2.data import unpack
from support import vector_envs
from support.agents import make_replay

SHAPE = (4, 6, 5, 3)
"""Frames, height, width, colours."""


class FrameStackEnv(gymnasium.Env):
    """Frames that all differ: the first byte is the environment's number,
    the second the episode, the third the step, the others follow from them."""

    observation_space = spaces.Box(0, 255, SHAPE, np.uint8)
    action_space = spaces.Discrete(2)

    def __init__(self, index):
        self._index, self._episode = index, -1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._episode += 1
        self._step = 0
        return frames(self._index, self._episode, 0), {}

    def step(self, action):
        self._step += 1
        observation = frames(self._index, self._episode, self._step)
        return observation, 1.0, False, self._step == 3, {}


def frames(index, episode, step):
    """Returns the stack of one step."""
    generator = np.random.default_rng([index, episode, step])
    stack = generator.integers(0, 256, SHAPE, np.uint8)
    stack.reshape(-1)[:3] = index, episode, step
    return stack


def assert_whole(observations):
    """Checks that each stack is one that the environments gave."""
    assert observations.dtype == np.uint8
    assert observations.shape[1:] == SHAPE
    for stack in observations:
        np.testing.assert_array_equal(stack, frames(*stack.reshape(-1)[:3]))


def network(units):
    return keras.Sequential(
        [
            keras.Input(SHAPE),
            keras.layers.Rescaling(1 / 255),
            keras.layers.Conv3D(2, (2, 3, 3)),
            keras.layers.Flatten(),
            keras.layers.Dense(units),
        ]
    )


def test_a_rollout():
    mode = AutoresetMode.SAME_STEP
    env = vector_envs.sync(FrameStackEnv, mode, num_envs=2)
    rollouts = rl.RolloutDataset(env, 8, passes=1, batch_size=8, seed=0)
    agent = rl.PPO(network(2), network(1), seed=0)
    dataset = rollouts.as_dataset(agent)
    trajectory = rollouts.collect()
    for leading in (trajectory.observation, trajectory.final_observation[None]):
        assert_whole(leading.reshape(-1, *SHAPE))
    # Those that a reset within the step would have lost.
    assert len(trajectory.final_observation) == 4
    unpacked = unpack(trajectory.packed_arrays(with_final=True))
    np.testing.assert_array_equal(
        unpacked["observation"], trajectory.observation
    )
    rollouts.refresh()
    assert_whole(rollouts.samples["observation"])
    assert_whole(next(iter(dataset))["observation"].numpy())


def test_replay():
    mode = AutoresetMode.NEXT_STEP
    env = vector_envs.sync(FrameStackEnv, mode, num_envs=2)
    replay = make_replay(env, warm_up=16)
    batches = replay.as_dataset(rl.DQN(network(2), seed=0))
    replay.refresh()
    batch = replay.sample(256)
    assert_whole(batch["observation"])
    assert_whole(batch["next_observation"])
    step, following = (
        batch[key].reshape(256, -1)[:, 2].astype(int)
        for key in ("observation", "next_observation")
    )
    # Never across a reset.
    np.testing.assert_array_equal(following, step + 1)
    assert_whole(next(iter(batches))["observation"].numpy())
