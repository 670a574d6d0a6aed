"""Agents reach the known optimum of tiny environments, as fast as peers.

The limits are the environment steps that Stable-Baselines3 2.9.2 needs at most
(gamma 0.5, one layer of 32 units, three seeds) until the criterion has held in
five checks in a row, 64 steps apart. Where it has no such agent, they are those
of the one most like it.
"""

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from support.agents import EVERY_AGENT
from support.agents import slow
from support.probe_envs import PROBES

GAMMA = 0.5
TIMES_IN_A_ROW = 5

_PPO = {1: 704, 2: 704, 3: 640, 4: 960, 5: 960, 6: 768, 9: 3136}
_A2C = {1: 320, 2: 384, 3: 512, 4: 768, 5: 768, 6: 448, 9: 5248}
STEPS = {
    **{"PPO": _PPO, "APPO": _PPO, "A2C": _A2C, "REINFORCE": _A2C},
    "PQN": {4: 1920, 5: 1920},
    "DQN": {1: 320, 2: 384, 3: 384, 4: 320, 5: 320, 6: 512},
    "SAC": {4: 320, 5: 320, 9: 960},
    **{"TD3": {9: 960}, "DDPG": {9: 960}, "CrossQ": {9: 1920}},
    "TQC": {9: 960},
}
"""Environment steps by agent and probe.

Agents that stay near what they have learned from are not among them.
"""

SETTINGS = {
    "DQN": {"epsilon": 0.2, "tau": 1.0, "target_every": 8},
    "SAC": {"temperature": 0.05, "learn_temperature": False, "tau": 0.1},
    "TQC": {"temperature": 0.05, "learn_temperature": False, "tau": 0.1},
    "TD3": {"activation": "tanh", "exploration": 0.3},
    "DDPG": {"activation": "tanh", "exploration": 0.3},
}


def dataset_of(name, env):
    on_policy = EVERY_AGENT[name].on_policy
    make = rl.RolloutDataset if on_policy else rl.ReplayDataset
    if name in ("A2C", "REINFORCE"):
        sizes = {"horizon": 8, "passes": 1, "batch_size": 8}
    elif on_policy:
        sizes = {"horizon": 64, "passes": 10, "batch_size": 32}
    else:
        steps, updates, size, warm_up = {
            "DQN": (8, 8, 32, 16),
            "TD3": (16, 64, 64, 128),
            "DDPG": (16, 64, 64, 128),
        }.get(name, (16, 16, 64, 64))
        sizes = {
            "capacity": 1024,
            "steps_per_round": steps,
            "updates_per_round": updates,
            "batch_size": size,
            "warm_up": warm_up,
        }
    if on_policy:
        # Values are read in the units of rewards.
        sizes["scale_rewards"] = False
    return make(env, rounds_per_epoch=1, seed=0, **sizes)


def column(observations):
    return np.array([observations], "float32").T


def values(agent, *observations):
    """Returns V; for want of it, the value of the best action."""
    observations = column(observations)
    if hasattr(agent, "value"):
        return agent.value(observations).numpy()
    return agent.critics[0](observations).numpy().max(axis=-1)


def probability(agent, observations, actions):
    observations, actions = column(observations), np.int32(actions)
    if not hasattr(agent, "actor"):
        # The best action is what is learned, and the rest is exploration.
        return agent.act(observations, deterministic=True) == actions
    policy = agent.policy.head(agent(observations))
    return np.exp(policy.log_prob(actions).numpy())


def near(agent, actual, *expected):
    """The tolerance is that for Stable-Baselines3's agents of the same kind."""
    tolerance = 0.1 if agent.on_policy else 0.05
    return np.abs(actual - np.array(expected)).max() < tolerance


CRITERIA = {
    1: lambda agent: near(agent, values(agent, 0), 1),
    2: lambda agent: near(agent, values(agent, -1, 1), -1, 1),
    3: lambda agent: near(agent, values(agent, 0, 1), GAMMA, 1),
    4: lambda agent: (
        probability(agent, [0], [1]).min() >= 0.95
        and near(agent, values(agent, 0), 1)
    ),
    5: lambda agent: (
        probability(agent, [-1, 1], [0, 1]).min() >= 0.95
        and near(agent, values(agent, -1, 1), 1, 1)
    ),
    6: lambda agent: near(agent, values(agent, 0), 1 / (1 - GAMMA)),
    9: lambda agent: (
        abs(agent.act(np.zeros(1), deterministic=True)[0] - 0.5) <= 0.05
    ),
}


class StopWhenHeld(keras.callbacks.Callback):
    """Stops once a criterion has held for so many epochs in a row."""

    def __init__(self, criterion):
        super().__init__()
        self._criterion = criterion
        self.held = 0

    def on_epoch_end(self, epoch, logs=None):
        self.held = self.held + 1 if self._criterion(self.model) else 0
        if self.held == TIMES_IN_A_ROW:
            self.model.stop_training = True


def test_every_agent_has_a_probe_or_stays_near_its_data():
    offline = {name for name in EVERY_AGENT if "CQL" in name}
    assert {*EVERY_AGENT} == {*STEPS} | offline | {
        *("TD3BC", "IQL", "BehaviorCloning")
    }


DEFAULT = [("PPO", 5), ("DQN", 4), ("SAC", 9)]
MORE = [
    (name, probe)
    for name, steps in STEPS.items()
    for probe in steps
    if (name, probe) not in DEFAULT
]


@pytest.mark.parametrize(("name", "probe"), [*DEFAULT, *slow(*MORE)])
def test_probe(name, probe):
    case = EVERY_AGENT[name]
    env = rl.envs.as_vector_env(PROBES[probe]())
    settings = SETTINGS.get(name, {})
    agent = case.make.for_env(
        env, hidden=(32,), gamma=GAMMA, seed=0, **settings
    )
    # XLA takes longer to compile several updates at once than it saves.
    agent.compile(
        keras.optimizers.Adam(1e-2),
        jit_compile="auto" if case.on_policy else False,
    )
    assert not CRITERIA[probe](agent)
    dataset, limit = dataset_of(name, env), STEPS[name][probe]
    watch = StopWhenHeld(CRITERIA[probe])
    agent.fit(
        dataset,
        epochs=(limit - dataset.steps_before_first_round)
        // dataset.steps_per_round,
        callbacks=[watch],
        verbose=0,
    )
    assert watch.held >= TIMES_IN_A_ROW
    assert agent.env_steps <= limit
