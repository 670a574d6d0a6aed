"""The agents of the registry, and small things to run them on."""

import copy
import dataclasses
import functools
import inspect

import gymnasium
import keras
import numpy as np
import pytest
from gymnasium import spaces

import keras_rl2 as rl
from keras_rl2.envs import as_vector_env
from keras_rl2.presets.algorithms import ALGORITHMS
from support.any_space_env import EPISODE_LENGTH
from support.any_space_env import AnySpaceEnv

_COMMON = {"gamma": 0.9, "seed": 3, "name": "my_agent"}
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


@dataclasses.dataclass(frozen=True)
class AgentCase:
    """An agent, and its abilities, which its class states."""

    make: type
    #: Whether its networks are to be recurrent.
    recurrent: bool = False

    def settings(self):
        """Returns constructor arguments, none at its default."""
        constructor = inspect.signature(self.make).parameters
        for_env = inspect.signature(self.make.for_env).parameters
        settings = {
            name: _CHOICES[name] if name in _CHOICES else _other(taken.default)
            for name, taken in constructor.items()
            if name in for_env and name not in ("seed", "name", "dtype")
        }
        return {**settings, **_COMMON, "dtype": "mixed_bfloat16"}

    @property
    def on_policy(self):
        """Whether it learns from rollouts."""
        return self.make.on_policy

    @property
    def networks(self):
        """Names of the networks that its constructor takes."""
        constructor = inspect.signature(self.make).parameters.values()
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return tuple(each.name for each in constructor if each.kind is kind)

    @property
    def actions(self):
        """Names of the action spaces it can act in, its usual one first."""
        kinds = self.make.action_kinds
        bounded = kinds != (gymnasium.Space,)
        return tuple(
            name
            for kind in kinds
            for name, space in ACTION_SPACES.items()
            if isinstance(space, kind)
            and not (bounded and name == "box_unbounded")
        )

    @functools.cached_property
    def widths(self):
        """Widths of its networks, by argument, in the first action space."""
        agent = self.make.for_env(make_env(self.pair), hidden=(1,), seed=0)
        return {
            name: keras.tree.flatten(given)[0].output_shape[-1]
            for name, given in networks_of(agent).items()
        }

    @property
    def every_update(self):
        """Constructor arguments with which each update is one of all."""
        delayed = "policy_delay" in self.make.argument_names()
        return {"policy_delay": 1} if delayed else {}

    @property
    def one_update(self):
        """Arguments of its dataset for rounds of a single update."""
        if self.on_policy:
            return {"batch_size": None}
        return {"updates_per_round": 1}

    @property
    def pair(self):
        """Its usual pair of spaces."""
        return f"act_{self.actions[0]}"

    @property
    def action_space(self):
        """The action space of that pair."""
        return ACTION_SPACES[self.actions[0]]

    @property
    def pairs(self):
        """Names of the pairs of spaces that it is tested on."""
        suffix = "" if self.actions[0] == "discrete" else "_act_box"
        return (
            *(f"act_{name}" for name in self.actions),
            *(f"observe_{name}{suffix}" for name in OBSERVATION_SPACES),
        )

    def make_dataset(self, env, **arguments):
        """Makes a small dataset: 8 steps in each environment, two updates."""
        if self.on_policy:
            return make_rollouts(env, **arguments)
        if self.recurrent:
            # They fit into the steps of a round.
            arguments = {"sequence_length": 4, "burn_in": 2, **arguments}
        return make_replay(env, **arguments)

    def env_steps(self, rounds, horizon=8, num_envs=2):
        """Returns the steps of rounds: `horizon` or an episode in each."""
        if self.make.whole_episodes:
            horizon = min(horizon, EPISODE_LENGTH)
        return rounds * horizon * num_envs


_DECAY = keras.optimizers.schedules.PolynomialDecay(0.4, 10, 0.2)
_CHOICES = {
    "action_units": "environment",
    "clip_ratio": _DECAY,
    "critics_in_target": 2,
    "distributional": "categorical",
    "epsilon": _DECAY,
    "exploration": rl.exploration.OrnsteinUhlenbeckNoise(_DECAY),
    "loss": "huber",
    "max_lag": 3,
    "noise_color": "white",
    "support": [-2.0, 3.0],
    "target_every": 3,
}


def _other(default):
    """Returns a value of a setting that is not its default, nor far off."""
    if isinstance(default, bool):
        return not default
    if isinstance(default, int):
        return default + 1
    return 0.5 * (default or 1.0) + 0.01


def _cases():
    """Yields an agent after the other, of CQL one for each kind of actions."""
    for name in ALGORITHMS:
        made = getattr(rl, name)
        for each in made.kinds.values() if name == "CQL" else [made]:
            yield each.__name__, AgentCase(each)


EVERY_AGENT = dict(_cases())
"""All agents of the registry, by name."""

AGENTS = {name: case for name, case in EVERY_AGENT.items() if case.on_policy}
"""Agents that learn from rollouts."""

OFF_POLICY = {
    name: case
    for name, case in EVERY_AGENT.items()
    if not case.on_policy and case.networks != ("actor",)
}
"""Agents that learn values from replay."""

ACTOR_CRITICS = {
    name: case
    for name, case in AGENTS.items()
    if issubclass(case.make, rl.agents.OnPolicyAgent)
}
"""Those that have a policy with probabilities, and a value of its own."""

KINDS = {name: EVERY_AGENT[name] for name in ("PPO", "SAC", "TD3", "DQN")}
"""One agent of each kind of policy, for what their bases do."""

RECURRENT_KINDS = {
    f"recurrent {name}": dataclasses.replace(KINDS[name], recurrent=True)
    for name in ("PPO", "SAC", "TD3")
}
"""Those that remember; `DQN` has a test of its own."""

ON_POLICY_KINDS = {"PPO": AGENTS["PPO"]}
"""The kind that learns from rollouts."""

OFF_POLICY_KINDS = {name: OFF_POLICY[name] for name in ("SAC", "TD3", "DQN")}
"""The kinds that learn from replay."""

EITHER_DATASET = {name: KINDS[name] for name in ("PPO", "SAC")}
"""An agent for each class of datasets, for what `Agent` does with either."""

SPACES = {
    **{f"act_{k}": (_VECTOR, v) for k, v in ACTION_SPACES.items()},
    **{
        f"observe_{k}": (v, ACTION_SPACES["discrete"])
        for k, v in OBSERVATION_SPACES.items()
    },
}
"""Pairs of observation and action space: each kind of either."""

_ALL_SPACES = {
    **SPACES,
    **{
        f"observe_{k}_act_box": (v, ACTION_SPACES["box"])
        for k, v in OBSERVATION_SPACES.items()
    },
}


def make_env(pair="act_discrete", num_envs=2):
    """Makes a vector of `AnySpaceEnv` for the name of a pair of spaces."""
    observation_space, action_space = _ALL_SPACES[pair]

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
        "scale_rewards": False,
        "seed": 0,
        **arguments,
    }
    return rl.RolloutDataset(env, **arguments)


def make_replay(env, **arguments):
    """Makes a small replay: two updates a round, and no warm-up."""
    env = as_vector_env(env)
    arguments = {
        "capacity": 256,
        "batch_size": 8,
        "steps_per_round": 8 * env.num_envs,
        "updates_per_round": 2,
        "warm_up": 0,
        "rounds_per_epoch": 1,
        "seed": 0,
        **arguments,
    }
    return rl.ReplayDataset(env, **arguments)


def fit_twice(case, agent, env):
    """Trains for two rounds; returns the history and the weights before."""
    before = weights_of(agent)
    history = agent.fit(case.make_dataset(env), epochs=2, verbose=0).history
    return history, before


def networks_of(agent):
    """Returns the networks that an agent is made from, by their arguments."""
    given = agent.given_networks()
    return {name: each for name, each in given.items() if each is not None}


def settings_of(agent):
    """Returns the config but for the networks, of which Keras takes care."""
    config, networks = agent.get_config(), networks_of(agent)
    return {key: config[key] for key in config if key not in networks}


def weights_of(agent):
    return [np.array(weight) for weight in agent.get_weights()]


def assert_equal_weights(agent, expected):
    """Asserts that agents, or lists of arrays, are equal bit for bit."""
    actual, expected = (
        x if isinstance(x, list) else x.get_weights() for x in (agent, expected)
    )
    assert len(actual) == len(expected) > 0
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def assert_equal_agents(agent, expected):
    """Asserts equality of weights, of optimizers and of counters."""
    assert agent.env_steps == expected.env_steps
    assert_equal_weights(agent, expected)
    assert_equal_weights(
        *([v.numpy() for v in a.optimizer.variables] for a in (agent, expected))
    )


def differ(weights, others):
    return any((a != b).any() for a, b in zip(weights, others, strict=True))


def slow(*cases):
    """Returns parameters that the slow layer alone runs: values, or tuples."""
    several = (case if isinstance(case, tuple) else (case,) for case in cases)
    return [pytest.param(*each, marks=pytest.mark.slow) for each in several]


class Hook(keras.callbacks.Callback):
    """Calls a function with the agent at the end of each epoch."""

    def __init__(self, function):
        super().__init__()
        self._function = function

    def on_epoch_end(self, epoch, logs=None):
        self._function(self.model)
