"""The agents that every test of agents runs over, and small things to run on.

They are those of the registry. An agent without an entry here gets the settings
of its family; the contract suite, the probes and the tests of seeds, and for
one that learns from rollouts those of strict on-policy training, run on it.
"""

import copy
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import gymnasium
import keras
import numpy as np
from gymnasium import spaces

import keras_rl2 as rl
from keras_rl2.envs import as_vector_env
from keras_rl2.presets.algorithms import ALGORITHMS
from support import agent_settings
from support.any_space_env import EPISODE_LENGTH
from support.any_space_env import AnySpaceEnv

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
    """An agent, and the settings of its tests.

    What it can do is asked of its class.

    Attributes:
        make: The class.
        settings: Returns constructor arguments, none at its default.
        probe_dataset: Arguments of its dataset on the probes.
        probe_learning_rate: Of Adam on the probes.
        probe_steps: Environment steps that Stable-Baselines3 needs at most
            until the criterion of each probe has held five times in a row.
        probe_settings: Constructor arguments on the probes.
    """

    make: type
    settings: Callable[[], dict[str, Any]]
    probe_dataset: dict[str, int]
    probe_learning_rate: float
    probe_steps: dict[int, int]
    probe_settings: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def on_policy(self):
        """Whether it learns from rollouts."""
        return self.make.on_policy

    @property
    def networks(self):
        """Names of the networks that its constructor takes."""
        names = ("actor", "critic", "q_network", "value_network")
        taken = self.make.argument_names()
        return tuple(name for name in names if name in taken)

    @property
    def actions(self):
        """Names of the action spaces that it can act in.

        The first is the one of tests that do not ask for any.
        """
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
    def units(self):
        """Width of the network that acts, in the first action space."""
        agent = self.make.for_env(make_env(self.pair), hidden=(1,), seed=0)
        return agent.acting_networks[0].output_shape[-1]

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
    def whole_episodes(self):
        """Whether a round is one episode of each environment."""
        return self.make.whole_episodes

    @property
    def pair(self):
        """The pair of spaces of tests that do not ask for any."""
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

    @property
    def dataset(self):
        """The class of datasets that it learns from."""
        return rl.RolloutDataset if self.on_policy else rl.ReplayDataset

    def make_dataset(self, env, **arguments):
        """Makes a small dataset: 8 steps in each environment, two updates."""
        make = make_rollouts if self.on_policy else make_replay
        return make(env, **arguments)

    def env_steps(self, rounds, horizon=8, num_envs=2):
        """Returns the steps of rounds on `make_env`, by what is promised.

        Those are `horizon` in each environment; or one episode in each.
        """
        if self.whole_episodes:
            horizon = min(horizon, EPISODE_LENGTH)
        return rounds * horizon * num_envs


def _replay(steps, updates, **arguments):
    rounds = {"steps_per_round": steps, "updates_per_round": updates}
    return {"capacity": 1024, **rounds, **arguments}


def case_of(name):
    """Makes the case of an agent of the registry, by its family."""
    known, make = ALGORITHMS[name], getattr(rl, name)
    learned = {4, 5} if "Discrete" in (known.actions or ("Discrete",)) else {9}
    return AgentCase(
        make,
        functools.partial(agent_settings.of, make, known.settings),
        {"horizon": 64, "passes": 10, "batch_size": 32}
        if known.on_policy
        else _replay(16, 16, batch_size=64, warm_up=64),
        1e-2,
        dict.fromkeys(learned, 1920),
    )


AGENTS = {
    "PPO": AgentCase(
        rl.PPO,
        agent_settings.ppo,
        {"horizon": 64, "passes": 10, "batch_size": 32},
        1e-2,
        {1: 704, 2: 704, 3: 640, 4: 960, 5: 960, 6: 768, 9: 3136},
    ),
    "APPO": AgentCase(
        rl.APPO,
        agent_settings.appo,
        {"horizon": 64, "passes": 10, "batch_size": 32},
        1e-2,
        {1: 704, 2: 704, 3: 640, 4: 960, 5: 960, 6: 768, 9: 3136},
    ),
    "A2C": AgentCase(
        rl.A2C,
        agent_settings.a2c,
        {"horizon": 8, "passes": 1, "batch_size": 8},
        1e-2,
        {1: 320, 2: 384, 3: 512, 4: 768, 5: 768, 6: 448, 9: 5248},
    ),
    # Stable-Baselines3 has no REINFORCE: the steps are those of its A2C.
    "REINFORCE": AgentCase(
        rl.REINFORCE,
        agent_settings.reinforce,
        {"horizon": 8, "passes": 1, "batch_size": 8},
        1e-2,
        {1: 320, 2: 384, 3: 512, 4: 768, 5: 768, 6: 448, 9: 5248},
    ),
}
"""Agents that learn from rollouts of their present policy, by name."""

OFF_POLICY = {
    "DQN": AgentCase(
        rl.DQN,
        agent_settings.dqn,
        _replay(8, 8, batch_size=32, warm_up=16),
        1e-2,
        {1: 320, 2: 384, 3: 384, 4: 320, 5: 320, 6: 512},
        {"epsilon": 0.2, "tau": 1.0, "target_every": 8},
    ),
    # Of 4 and 5, Stable-Baselines3's steps are those of its DQN.
    "SAC": AgentCase(
        rl.SAC,
        agent_settings.sac,
        _replay(16, 16, batch_size=64, warm_up=64),
        1e-2,
        {4: 320, 5: 320, 9: 960},
        {"temperature": 0.05, "learn_temperature": False, "tau": 0.1},
    ),
    # The steps are those of its SAC.
    "TD3": AgentCase(
        rl.TD3,
        agent_settings.td3,
        _replay(16, 64, batch_size=64, warm_up=128),
        1e-2,
        {9: 960},
        {"activation": "tanh", "exploration": 0.3},
    ),
    "DDPG": AgentCase(
        rl.DDPG,
        agent_settings.ddpg,
        _replay(16, 64, batch_size=64, warm_up=128),
        1e-2,
        {9: 960},
        {"activation": "tanh", "exploration": 0.3},
    ),
    "TD3BC": AgentCase(
        rl.TD3BC,
        agent_settings.td3bc,
        _replay(16, 64, batch_size=64, warm_up=128),
        1e-2,
        # Stays near what it has learned from, here its own exploration.
        {},
    ),
    "BoxCQL": AgentCase(
        rl.agents.BoxCQL,
        agent_settings.box_cql,
        _replay(16, 16, batch_size=64, warm_up=64),
        1e-2,
        # Likes best what it has done already.
        {},
    ),
    "DiscreteCQL": AgentCase(
        rl.agents.DiscreteCQL,
        agent_settings.discrete_cql,
        _replay(8, 8, batch_size=32, warm_up=16),
        1e-2,
        {},
    ),
    "IQL": AgentCase(
        rl.IQL,
        agent_settings.iql,
        _replay(16, 16, batch_size=64, warm_up=64),
        1e-2,
        {},
    ),
}
"""Agents that learn values from replay, by name."""

CLONING = {
    "BehaviorCloning": AgentCase(
        rl.BehaviorCloning,
        agent_settings.behavior_cloning,
        _replay(16, 16, batch_size=64, warm_up=64),
        1e-2,
        # Learns to act as it acts.
        {},
    ),
}
"""Agents that learn from replay what is done, and not what it is worth."""

for _name, _known in ALGORITHMS.items():
    # Those of two classes are here by their classes.
    if _name not in {**AGENTS, **OFF_POLICY, **CLONING, "CQL": None}:
        (AGENTS if _known.on_policy else OFF_POLICY)[_name] = case_of(_name)

WITH_TARGETS = {
    name: case
    for name, case in OFF_POLICY.items()
    if "tau" in case.make.argument_names()
}
"""Those of which target networks follow the others."""

ACTOR_CRITICS = {
    name: case
    for name, case in AGENTS.items()
    if issubclass(case.make, rl.agents.OnPolicyAgent)
}
"""Those that have a policy with probabilities, and a value of its own."""

EVERY_AGENT = {**AGENTS, **OFF_POLICY, **CLONING}
"""All agents, by name."""

KINDS = {name: EVERY_AGENT[name] for name in ("PPO", "SAC", "TD3", "DQN")}
"""One agent of each kind of policy, for what their bases do.

A policy with probabilities that learns from rollouts, one that learns from
replay, a deterministic policy, and values of discrete actions.
"""

ON_POLICY_KINDS = {"PPO": AGENTS["PPO"]}
"""The kind that learns from rollouts."""

OFF_POLICY_KINDS = {name: OFF_POLICY[name] for name in ("SAC", "TD3", "DQN")}
"""The kinds that learn from replay."""

EITHER_DATASET = {name: KINDS[name] for name in ("PPO", "SAC")}
"""An agent for each class of datasets, for what `Agent` does with either."""

EACH_KIND = {**AGENTS, "SAC": OFF_POLICY["SAC"]}
"""Agents for what their dataset does, whatever they learn from it."""

EITHER_KIND = [list(AGENTS), list(OFF_POLICY)]
"""Of each of these one, for what their bases do; see the mark `rotate`."""

ANY = [[*EVERY_AGENT]]
"""One of all, for what `Agent` does."""

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

PAIRS = [
    (name, pair) for name, case in EVERY_AGENT.items() for pair in case.pairs
]
"""Each agent with each pair of spaces that it is tested on."""


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
    history = agent.fit(
        case.make_dataset(env),
        epochs=2,
        verbose=0,
    ).history
    return history, before


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


def networks_of(agent):
    """Returns the networks that an agent is made from, by their arguments."""
    names = ("actor", "critic", "q_network", "value_network")
    given = {name: getattr(agent, name, None) for name in names}
    given["critic"] = getattr(agent, "critics", given["critic"])
    return {
        name: network for name, network in given.items() if network is not None
    }


def settings_of(agent):
    """Returns the config but for the networks, of which Keras takes care."""
    config, networks = agent.get_config(), networks_of(agent)
    return {key: config[key] for key in config if key not in networks}


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
