"""The agents that every test of agents runs over, and small things to run on.

A new agent needs one line in `AGENTS`; the contract suite, the probes and the
tests of strict on-policy training and of seeds then run on it too.
"""

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import gymnasium
import keras
import numpy as np
from gymnasium import spaces

import keras_rl2 as rl
from keras_rl2.envs import as_vector_env


@dataclasses.dataclass(frozen=True)
class AgentCase:
    """What the tests have to know about an agent.

    Attributes:
        make: The class.
        settings: Returns constructor arguments, none at its default.
        probe_rollouts: Arguments of `RolloutDataset` on the probes.
        probe_learning_rate: Of Adam on the probes.
        probe_steps: Environment steps that Stable-Baselines3 needs at most
            until the criterion of each probe has held five times in a row.
        probe_settings: Constructor arguments on the probes.
        lacks: Arguments of a base that the constructor does not take.
    """

    make: type
    settings: Callable[[], dict[str, Any]]
    probe_rollouts: dict[str, int]
    probe_learning_rate: float
    probe_steps: dict[int, int]
    probe_settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    lacks: frozenset[str] = frozenset()

    @property
    def whole_episodes(self):
        """Whether a round is one episode of each environment."""
        return self.make.whole_episodes

    def env_steps(self, rounds, horizon=8, num_envs=2):
        """Returns the steps of rounds on `make_env`, by what is promised.

        Those are `horizon` in each environment; or one episode in each.
        """
        if self.whole_episodes:
            horizon = min(horizon, EPISODE_LENGTH)
        return rounds * horizon * num_envs


def _ppo_settings():
    return {
        "gamma": 0.9,
        "gae_lambda": 0.8,
        "entropy_coefficient": 0.01,
        "value_coefficient": 0.25,
        "max_gradient_norm": 1.5,
        "initial_log_std": -0.5,
        "clip_ratio": keras.optimizers.schedules.PolynomialDecay(0.3, 10, 0.1),
        "value_clip_range": 0.4,
        "normalize_advantages": False,
        "target_kl": 0.05,
        "seed": 3,
        "name": "my_agent",
        "dtype": "mixed_bfloat16",
    }


def _a2c_settings():
    settings = _ppo_settings()
    for key in ("clip_ratio", "value_clip_range", "target_kl"):
        del settings[key]
    return {**settings, "normalize_advantages": True}


def _reinforce_settings():
    settings = _a2c_settings()
    del settings["gae_lambda"]
    return settings


EPISODE_LENGTH = 5
"""Steps of each episode of `AnySpaceEnv`."""

AGENTS = {
    "PPO": AgentCase(
        rl.PPO,
        _ppo_settings,
        {"horizon": 64, "passes": 10, "batch_size": 32},
        1e-2,
        {1: 704, 2: 704, 3: 640, 4: 960, 5: 960, 6: 768, 9: 3136},
    ),
    "A2C": AgentCase(
        rl.A2C,
        _a2c_settings,
        {"horizon": 8, "passes": 1, "batch_size": 8},
        1e-2,
        {1: 320, 2: 384, 3: 512, 4: 768, 5: 768, 6: 448, 9: 5248},
    ),
    # Stable-Baselines3 has no REINFORCE: the steps are those of its A2C.
    "REINFORCE": AgentCase(
        rl.REINFORCE,
        _reinforce_settings,
        {"horizon": 8, "passes": 1, "batch_size": 8},
        1e-2,
        {1: 320, 2: 384, 3: 512, 4: 768, 5: 768, 6: 448, 9: 5248},
        # Monte-Carlo returns are those of lambda 1.
        lacks=frozenset({"gae_lambda"}),
    ),
}
"""All agents, by name."""

_VECTOR = spaces.Box(-1.0, 1.0, (3,), np.float32)

ACTION_SPACES = {
    "discrete": spaces.Discrete(3),
    "discrete_start": spaces.Discrete(2, start=5),
    "multi_discrete": spaces.MultiDiscrete([2, 3]),
    "multi_binary": spaces.MultiBinary(3),
    "box": spaces.Box(-1.0, 1.0, (1,), np.float32),
    # The nearest float32 of 0.3 is outside of these bounds.
    "box_matrix": spaces.Box(-0.1, 0.3, (2, 2), np.float64),
    "box_unbounded": spaces.Box(-np.inf, np.inf, (2,), np.float32),
}

OBSERVATION_SPACES = {
    "discrete": spaces.Discrete(4, start=1),
    "image": spaces.Box(0, 255, (36, 36, 1), np.uint8),
    "float64": spaces.Box(-1e3, 1e3, (3,), np.float64),
    "matrix": spaces.Box(-1.0, 1.0, (2, 3), np.float32),
}

SPACES = {
    **{f"act_{k}": (_VECTOR, v) for k, v in ACTION_SPACES.items()},
    **{
        f"observe_{k}": (v, ACTION_SPACES["discrete"])
        for k, v in OBSERVATION_SPACES.items()
    },
}
"""Pairs of observation and action space: each kind of either."""


class AnySpaceEnv(gymnasium.Env):
    """Any observation and action space; refuses actions outside of it.

    Episodes are random observations, `limit` steps long, cut off; the reward
    is the mean of the action.
    """

    def __init__(self, observation_space, action_space, limit=EPISODE_LENGTH):
        self.observation_space = observation_space
        self.action_space = action_space
        self._limit = limit

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self._step = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        if not self.action_space.contains(action):
            raise AssertionError(f"{action!r} is not in {self.action_space}")
        self._step += 1
        observation = self.observation_space.sample()
        reward = float(np.mean(action))
        return observation, reward, False, self._step == self._limit, {}


def make_env(pair="act_discrete", num_envs=2):
    """Makes a vector of `AnySpaceEnv` for a pair of `SPACES`."""
    observation_space, action_space = SPACES[pair]

    def make():
        # Each environment seeds a space of its own.
        return AnySpaceEnv(copy.deepcopy(observation_space), action_space)

    return as_vector_env(
        gymnasium.vector.SyncVectorEnv(
            [make] * num_envs,
            autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP,
        )
    )


def make_agent(case, env, *, compile_arguments=None, **settings):
    """Makes a small agent, compiled so that it is traced in no time."""
    settings = {"hidden": (8,), "seed": 0, **settings}
    agent = case.make.for_env(env, **settings)
    agent.compile(**{"jit_compile": False, **(compile_arguments or {})})
    return agent


def make_eager_agent(case, env, *, compile_arguments=None, **settings):
    """Makes a small agent for a few updates: tracing would take longer."""
    arguments = {"run_eagerly": True, **(compile_arguments or {})}
    return make_agent(case, env, compile_arguments=arguments, **settings)


def make_rollouts(env, **arguments):
    """Makes short rollouts: two updates a round."""
    arguments = {
        "horizon": 8,
        "passes": 1,
        "batch_size": 8,
        "seed": 0,
        **arguments,
    }
    return rl.RolloutDataset(env, **arguments)


def fresh(agent, initial_weights):
    """Takes an agent back to the start, keeping what has been compiled.

    Args:
        agent: A compiled agent, or one that was trained.
        initial_weights: As `get_weights` gives them.
    """
    agent.set_weights(initial_weights)
    agent.env_steps = 0
    for variable in agent.optimizer.variables:
        if not variable.path.endswith("learning_rate"):
            variable.assign(np.zeros(variable.shape))


def weights_of(agent):
    """Copies all weights."""
    return [np.array(weight) for weight in agent.get_weights()]


def assert_equal_weights(agent, expected):
    """Asserts equality bit for bit.

    Args:
        agent: An agent, or a list of arrays.
        expected: An agent, or a list of arrays.
    """
    actual, expected = (
        x if isinstance(x, list) else x.get_weights() for x in (agent, expected)
    )
    assert len(actual) == len(expected) > 0
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def differ(weights, others):
    """Tells whether any weight differs."""
    return any((a != b).any() for a, b in zip(weights, others, strict=True))


class Hook(keras.callbacks.Callback):
    """Calls a function with the agent at the end of each epoch."""

    def __init__(self, function):
        super().__init__()
        self._function = function

    def on_epoch_end(self, epoch, logs=None):
        self._function(self.model)
