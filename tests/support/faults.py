"""Faults in the numbers of a training."""

import gymnasium
import keras
import numpy as np
from gymnasium import spaces

from keras_rl2.envs import as_vector_env


class NumbersEnv(gymnasium.Env):
    """Random observations and rewards, of which one is something else.

    Args:
        action_space: Of an agent's actions, which change nothing.
        key: `"observation"`, `"reward"` or None, for nothing else.
        value: The number in its place, at the third step of each episode.
    """

    def __init__(self, action_space, key=None, value=0.0):
        self.observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float32)
        self.action_space = action_space
        self._key, self._value = key, value

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._step = 0
        return self._observation(), {}

    def step(self, action):
        if not np.isfinite(action).all():
            raise AssertionError(f"was given {action!r}")
        self._step += 1
        observation = self._observation()
        reward = float(self.np_random.normal())
        if self._step == 3 and self._key == "observation":
            observation[1] = self._value
        if self._step == 3 and self._key == "reward":
            reward = self._value
        return observation, reward, False, self._step == 5, {}

    def _observation(self):
        return self.np_random.normal(size=3).astype(np.float32)


def numbers_env(case, key=None, value=0.0):
    """Makes two environments for an agent, one of them with a fault."""
    env = gymnasium.vector.SyncVectorEnv(
        [
            lambda: NumbersEnv(case.action_space),
            lambda: NumbersEnv(case.action_space, key, value),
        ],
        autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP,
    )
    return as_vector_env(env)


@keras.saving.register_keras_serializable("tests")
class InfiniteAfter(keras.optimizers.schedules.LearningRateSchedule):
    """A rate that is infinite from an update on."""

    def __init__(self, updates=2):
        self.updates = updates

    def __call__(self, step):
        step = keras.ops.convert_to_tensor(step)
        return keras.ops.where(step < self.updates, 1e-3, float("inf"))

    def get_config(self):
        return {"updates": self.updates}


class GivesNaN:
    """Replaces the observation encoder: networks receive and return NaN."""

    def __init__(self, encode):
        self._encode = encode

    def __call__(self, observation):
        return keras.tree.map_structure(
            lambda each: keras.ops.cast(each, "float32") * float("nan"),
            self._encode(observation),
        )

    def __getattr__(self, name):
        return getattr(self._encode, name)


def variables_of(agent):
    """Returns all variables of an agent and of its optimizers."""
    return [*agent.weights, *agent.optimizer.variables]


def all_variables(agent):
    """Returns the values of all variables, in order: names are not alike."""
    return dict(enumerate(v.numpy() for v in variables_of(agent)))


def not_finite(agent):
    """Returns the paths of variables that are not finite."""
    return [
        variable.path
        for variable in variables_of(agent)
        if not np.isfinite(variable.numpy()).all()
    ]


def assert_same(found, expected):
    """Asserts that variables are unchanged, bit for bit."""
    assert found.keys() == expected.keys()
    for index, value in expected.items():
        assert found[index].tobytes() == value.tobytes(), index
