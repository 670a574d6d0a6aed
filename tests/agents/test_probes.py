"""Every agent learns what is known beforehand, as fast as its peer does.

The limits are the environment steps that Stable-Baselines3 2.9.2 needs at most
(gamma 0.5, one layer of 32 units, three seeds) until the criterion has held in
five checks in a row, 64 steps apart.
"""

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from support.agents import AGENTS
from support.agents import fresh
from support.probe_envs import PROBES

GAMMA = 0.5
TIMES_IN_A_ROW = 5


def values(agent, *observations):
    return agent.value(np.array([observations], "float32").T).numpy()


def policy(agent, *observations):
    observations = np.array([observations], "float32").T
    return agent.policy(agent(observations))


def probability(agent, observations, actions):
    log_prob = policy(agent, *observations).log_prob(np.int32(actions))
    return np.exp(log_prob.numpy())


def near(actual, *expected):
    return np.abs(actual - np.array(expected)).max() < 0.1


CRITERIA = {
    1: lambda agent: near(values(agent, 0), 1),
    2: lambda agent: near(values(agent, -1, 1), -1, 1),
    3: lambda agent: near(values(agent, 0, 1), GAMMA, 1),
    4: lambda agent: (
        probability(agent, [0], [1]).min() >= 0.95 and near(values(agent, 0), 1)
    ),
    5: lambda agent: (
        probability(agent, [-1, 1], [0, 1]).min() >= 0.95
        and near(values(agent, -1, 1), 1, 1)
    ),
    6: lambda agent: near(values(agent, 0), 1 / (1 - GAMMA)),
    9: lambda agent: abs(policy(agent, 0).mode().numpy()[0, 0] - 0.5) <= 0.05,
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
            agent.compile(keras.optimizers.Adam(case.probe_learning_rate))
            agent.optimizer.build(agent.trainable_variables)
            compiled[key] = agent
        fresh(compiled[key], agent.get_weights())
        return compiled[key]

    return make


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("probe", CRITERIA)
@pytest.mark.parametrize("name", AGENTS)
def test_probe(name, probe, seed, new_agent):
    case = AGENTS[name]
    env = rl.envs.as_vector_env(PROBES[probe]())
    agent = new_agent(case, env, seed)
    assert agent.env_steps == 0
    assert not CRITERIA[probe](agent)
    rollouts = rl.RolloutDataset(env, seed=seed, **case.probe_rollouts)
    watch = StopWhenHeld(CRITERIA[probe])
    limit = case.probe_steps[probe]
    agent.fit(
        rollouts,
        epochs=limit // rollouts.steps_per_round,
        callbacks=[watch],
        verbose=0,
    )
    assert watch.held >= TIMES_IN_A_ROW
    assert agent.env_steps <= limit
