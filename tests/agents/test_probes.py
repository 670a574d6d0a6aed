"""Every agent learns what is known beforehand, as fast as its peer does.

The limits are the environment steps that Stable-Baselines3 2.9.2 needs at most
(gamma 0.5, one layer of 32 units, three seeds) until the criterion has held in
five checks in a row, 64 steps apart.
"""

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from support.agents import EVERY_AGENT
from support.agents import fresh
from support.probe_envs import PROBES

GAMMA = 0.5
TIMES_IN_A_ROW = 5


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
    policy = getattr(agent, "policy", agent.policy_head)(agent(observations))
    return np.exp(policy.log_prob(actions).numpy())


def near(agent, actual, *expected):
    """As near as is asked of Stable-Baselines3's agents of the same kind."""
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


@pytest.fixture(scope="module")
def new_agent():
    """Makes agents, compiling the update once for each kind of network."""
    compiled = {}

    def make(case, env, seed):
        agent = case.make.for_env(
            env, hidden=(32,), gamma=GAMMA, seed=seed, **case.probe_settings
        )
        key = case.make, str(env.action_space)
        if key not in compiled:
            # XLA takes longer to compile several updates of theirs at once
            # than it saves.
            agent.compile(
                keras.optimizers.Adam(case.probe_learning_rate),
                jit_compile="auto" if case.on_policy else False,
            )
            agent.optimizer.build(agent.trainable_variables)
            compiled[key] = agent
        fresh(compiled[key], agent.get_weights())
        return compiled[key]

    return make


# Of agents that share their bases one: all others differ by losses that have
# tests of their own. A policy, values of actions, and a number as an action.
ONE_OF_EACH = [
    ["PPO", "A2C", "REINFORCE", "APPO"],
    ["DQN"],
    ["SAC"],
    ["TD3", "DDPG"],
]


@pytest.mark.spread(seed=[0], probe=[4, 5, 9])
@pytest.mark.rotate(name=ONE_OF_EACH)
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(
    ("name", "probe"),
    [(name, p) for name, case in EVERY_AGENT.items() for p in case.probe_steps],
)
def test_probe(name, probe, seed, new_agent):
    case = EVERY_AGENT[name]
    env = rl.envs.as_vector_env(PROBES[probe]())
    agent = new_agent(case, env, seed)
    assert agent.env_steps == 0
    assert not CRITERIA[probe](agent)
    # Values are read in the units of rewards.
    scaled = {"scale_rewards": False} if agent.on_policy else {}
    dataset = case.dataset(
        env, rounds_per_epoch=1, seed=seed, **scaled, **case.probe_dataset
    )
    watch = StopWhenHeld(CRITERIA[probe])
    limit = case.probe_steps[probe]
    agent.fit(
        dataset,
        epochs=(limit - dataset.steps_before_first_round)
        // dataset.steps_per_round,
        callbacks=[watch],
        verbose=0,
    )
    assert watch.held >= TIMES_IN_A_ROW
    assert agent.env_steps <= limit
