"""Small environments whose right answers are known beforehand.

Each isolates one thing that can be wrong with an agent, so that a failure
points at its cause. `PROBES` holds those with one correct value or policy.
"""

import gymnasium
import numpy as np
from gymnasium import spaces


class ValueProbe(gymnasium.Env):
    """Probe 1: one step, reward 1. V = 1 whatever the agent does.

    Fails if the value loss or the optimizer is wrong.
    """

    def __init__(self, action_space=None):
        self.observation_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.action_space = action_space or spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), 1.0, True, False, {}


class ObservationProbe(ValueProbe):
    """Probe 2: one step, observation +1 or -1 is the reward too, and V.

    Fails if gradients do not reach the network's input.
    """

    def reset(self, *, seed=None, options=None):
        gymnasium.Env.reset(self, seed=seed)
        self._sign = float(self.np_random.choice([-1.0, 1.0]))
        return np.array([self._sign], np.float32), {}

    def step(self, action):
        observation = np.array([self._sign], np.float32)
        return observation, self._sign, True, False, {}


class DiscountProbe(ValueProbe):
    """Probe 3: observation 0, then 1, then reward 1. V(0) = gamma, V(1) = 1.

    Fails if rewards are discounted wrongly.
    """

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._step = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self._step += 1
        ended = self._step == 2
        return np.ones(1, np.float32), float(ended), ended, False, {}


class ActionProbe(ValueProbe):
    """Probe 4: one step, action 1 gives +1 and action 0 gives -1. V = 1.

    Fails if the advantage or the policy's update is wrong.
    """

    def __init__(self):
        super().__init__()

    def step(self, action):
        reward = 1.0 if action == 1 else -1.0
        return np.zeros(1, np.float32), reward, True, False, {}


class MatchProbe(ObservationProbe):
    """Probe 5: one step, +1 if the action matches the observation's sign.

    The action is 0 for observation -1, and 1 for +1; otherwise the reward is
    -1. V = 1. Fails if observations and actions get out of line in a batch.
    """

    def __init__(self):
        super().__init__()

    def step(self, action):
        reward = 1.0 if action == (self._sign > 0) else -1.0
        return np.array([self._sign], np.float32), reward, True, False, {}


class TimeLimitProbe(ValueProbe):
    """Probe 6: reward 1 for ever, cut off after 8 steps. V = 1 / (1 - gamma).

    Fails if truncation is taken for termination. The observation never
    changes, so nothing tells how much time is left.
    """

    def __init__(self, action_space=None, limit=8):
        super().__init__(action_space)
        self._limit = limit

    def reset(self, *, seed=None, options=None):
        self._step = 0
        return super().reset(seed=seed)

    def step(self, action):
        self._step += 1
        truncated = self._step == self._limit
        return np.zeros(1, np.float32), 1.0, False, truncated, {}


class ChainProbe(ValueProbe):
    """Probe 7: observations 0, 1, 2 with rewards 0 and 1; 2 is the last one.

    No transition may start at 2, and V(2) is never trained: with naive
    handling of NEXT_STEP a quarter of all transitions do.
    """

    FINAL = 2.0

    def __init__(self, action_space=None):
        super().__init__(action_space)
        self.observation_space = spaces.Box(0.0, 2.0, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        self._state = 0
        return super().reset(seed=seed)

    def step(self, action):
        self._state += 1
        observation = np.array([self._state], np.float32)
        ended = self._state == self.FINAL
        return observation, float(ended), ended, False, {}


class ContinuousProbe(ValueProbe):
    """Probe 9: one step, reward -(a - 0.5)^2. The mean action must be 0.5.

    Fails if the density, the squashing or the gradient of a continuous policy
    is wrong.
    """

    def __init__(self):
        super().__init__(spaces.Box(-1.0, 1.0, (1,), np.float32))

    def step(self, action):
        reward = -((float(action[0]) - 0.5) ** 2)
        return np.zeros(1, np.float32), reward, True, False, {}


PROBES = {
    1: ValueProbe,
    2: ObservationProbe,
    3: DiscountProbe,
    4: ActionProbe,
    5: MatchProbe,
    6: TimeLimitProbe,
    7: ChainProbe,
    9: ContinuousProbe,
}


class CountingEnv(gymnasium.Env):
    """Observation [index, episode, step, random], so that each is unlike any.

    The reward is `100 * index + 10 * episode + step` of the step just made.

    Args:
        index: Number of this environment among others.
        lengths: Lengths of the episodes, taken in turn.
        truncates: Whether the episodes at the same places are truncated
            instead of terminated.
        dtype: Of the observation.
        reuse: Whether one array is written to for ever.
    """

    def __init__(
        self,
        index=0,
        lengths=(3, 1, 5),
        truncates=(False, True, False),
        dtype=np.float32,
        reuse=False,
    ):
        self.observation_space = spaces.Box(-np.inf, np.inf, (4,), dtype)
        self.action_space = spaces.Discrete(3)
        self._index = index
        self._lengths = lengths
        self._truncates = truncates
        self._reuse = reuse
        self._array = np.zeros(4, dtype)
        self._episode = -1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._episode += 1
        self._step = 0
        return self._observation(), {}

    def get_state(self):
        return {"episode": self._episode, "step": self._step}

    def set_state(self, state):
        self._episode, self._step = state["episode"], state["step"]

    def step(self, action):
        kind = self._episode % len(self._lengths)
        if self._step == self._lengths[kind]:
            raise AssertionError("step() after the end of the episode")
        self._step += 1
        ended = self._step == self._lengths[kind]
        cut = self._truncates[kind]
        reward = 100.0 * self._index + 10.0 * self._episode + self._step
        observation = self._observation()
        return observation, reward, ended and not cut, ended and cut, {}

    def _observation(self):
        random = self.np_random.uniform()
        self._array[:] = [self._index, self._episode, self._step, random]
        return self._array if self._reuse else self._array.copy()


class ActionSpaceEnv(gymnasium.Env):
    """Takes actions of any space, refuses others, and is cut off at `limit`.

    The reward is the sum of the action; the observation is always zero.
    """

    def __init__(self, action_space, limit=4):
        self.observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.action_space = action_space
        self.actions = []
        self._limit = limit

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._step = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        if not self.action_space.contains(action):
            raise AssertionError(f"{action!r} is not in {self.action_space}")
        self.actions.append(action)
        self._step += 1
        truncated = self._step == self._limit
        reward = float(np.sum(action))
        return np.zeros(2, np.float32), reward, False, truncated, {}


class ImageEnv(gymnasium.Env):
    """uint8 images with one bright pixel in the row of the step's number."""

    def __init__(self, size=36, limit=4):
        self.observation_space = spaces.Box(0, 255, (size, size, 1), np.uint8)
        self.action_space = spaces.Discrete(2)
        self._limit = limit

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._step = 0
        return self._image(), {}

    def step(self, action):
        self._step += 1
        ended = self._step == self._limit
        return self._image(), float(action), ended, False, {}

    def _image(self):
        image = np.zeros(self.observation_space.shape, np.uint8)
        image[self._step, 0, 0] = 255
        return image


class NonFiniteEnv(gymnasium.Env):
    """Gives one number that is not finite, at step `at` since its making.

    Args:
        at: Counted from 1 over all episodes.
        key: "observation" or "reward".
        value: The number.
        length: Steps of an episode.
    """

    def __init__(self, at=3, key="observation", value=np.nan, length=10):
        self.observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.action_space = spaces.Discrete(2)
        self._at = at
        self._key = key
        self._value = value
        self._length = length
        self._steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self._steps += 1
        observation, reward = np.zeros(2, np.float32), 0.0
        if self._steps == self._at and self._key == "observation":
            observation[1] = self._value
        if self._steps == self._at and self._key == "reward":
            reward = self._value
        truncated = self._steps % self._length == 0
        return observation, reward, False, truncated, {}


class EnvCrash(RuntimeError):
    """The error of `CrashingEnv`, which a test can tell from others."""


class CrashingEnv(ValueProbe):
    """Raises `EnvCrash` at step `at` since its making, counted from 1."""

    def __init__(self, at=3, action_space=None):
        super().__init__(action_space)
        self._at = at
        self._steps = 0

    def step(self, action):
        self._steps += 1
        if self._steps == self._at:
            raise EnvCrash(f"crash at step {self._at}")
        return np.zeros(1, np.float32), 0.0, False, self._steps % 10 == 0, {}
