"""Every action of a rollout comes from the weights after the round before."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_rl2.policies import actors
from keras_rl2.training import rounds
from support.agents import ON_POLICY_KINDS
from support.agents import assert_equal_weights
from support.agents import differ
from support.agents import make_agent
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import make_rollouts

PPO = ON_POLICY_KINDS["PPO"]
UPDATES = 4


class Watch:
    """Notes with which weights each action was taken, and after how much.

    Attributes:
        used: The weights that the runner held, for each call of it.
        own: The agent's own weights at that time.
        updates: Updates that the agent had made.
        actions: Observations, noise and actions.
    """

    def __init__(self, agent, monkeypatch):
        self.used, self.own, self.updates, self.actions = [], [], [], []
        watch = self
        make = actors._make_runner

        def make_watched(*arguments):
            runner = make(*arguments)

            class Watched:
                backend = runner.backend

                def set_weights(self, weights):
                    self.weights = [np.array(w) for w in weights]
                    runner.set_weights(weights)

                def __call__(self, observation, noise):
                    watch.used.append(self.weights)
                    watch.own.append(
                        [v.numpy().copy() for v in agent.acting_variables]
                    )
                    watch.updates.append(int(agent.optimizer.iterations))
                    result = runner(observation, noise)
                    watch.actions.append((observation.copy(), noise, result[0]))
                    return result

            return Watched()

        monkeypatch.setattr(actors, "_make_runner", make_watched)


WAYS = {
    "one_by_one": {"steps_per_execution": 1, "jit_compile": False},
    "one_by_one_compiled": {"steps_per_execution": 1, "jit_compile": True},
    "half_a_round": {"steps_per_execution": 2, "jit_compile": False},
    "whole_round": {"jit_compile": False},
    # XLA compiles the round, for networks as small as these.
    "auto": {"jit_compile": "auto"},
}


@pytest.fixture(scope="module")
def trained():
    """Agents after four watched rounds in two fits; made once."""
    made = {}

    def get(arguments):
        key = str(arguments)
        if key not in made:
            env = make_env()
            rollouts = make_rollouts(env, passes=2, rounds_per_epoch=2)
            assert rollouts.updates_per_round == UPDATES
            arguments = {"optimizer": keras.optimizers.SGD(0.1), **arguments}
            agent = make_agent(PPO, env, compile_arguments=arguments)
            with pytest.MonkeyPatch.context() as monkeypatch:
                watch = Watch(agent, monkeypatch)
                for _ in range(2):
                    agent.fit(rollouts, epochs=1, verbose=0)
            made[key] = agent, watch
        return made[key]

    return get


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize(
    "way",
    [
        way
        if way == "whole_round"
        else pytest.param(way, marks=pytest.mark.slow)
        for way in WAYS
    ],
)
def test_actions_come_from_the_last_weights(way, trained, monkeypatch):
    monkeypatch.setattr(rounds, "_PAYING_UPDATES", 0)
    agent, watch = trained(WAYS[way])
    compiled = agent.rounds.compiled
    assert compiled == (way == "auto")

    # Steps of a round, in each environment.
    number = 4
    horizon = PPO.env_steps(1) // make_env().num_envs
    assert len(watch.used) == horizon * number
    # All updates of the round before, and none of this one.
    expected = np.repeat(np.arange(number) * UPDATES, horizon)
    np.testing.assert_array_equal(watch.updates, expected)
    for used, own in zip(watch.used, watch.own, strict=True):
        assert_equal_weights(used, own)
    starts = watch.used[::horizon]
    for before, after in itertools.pairwise(starts):
        assert differ(before, after)
    # What the runner was given is also what it acted with.
    for i in (0, horizon - 1, horizon, 3 * horizon):
        observation, noise, action = watch.actions[i]
        again = stateless_action(agent, watch.used[i], observation, noise)
        np.testing.assert_array_equal(action, again)
    # However updates are executed, they are the same.
    eager, _ = trained({"run_eagerly": True})
    for one, other in zip(
        agent.get_weights(), eager.get_weights(), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def stateless_action(agent, weights, observation, noise):
    """Returns the action of the policy with weights other than the agent's."""
    mapping = list(zip(agent.acting_variables, weights, strict=True))
    with keras.StatelessScope(state_mapping=mapping):
        return agent.sample_action(observation, noise).numpy()


def test_no_minibatch_is_read_ahead_of_a_refresh():
    env = make_env()
    agent = make_agent(PPO, env)
    rollouts = make_rollouts(env)
    iterator = iter(rollouts.as_dataset(agent))
    for _ in range(3):
        rollouts.refresh()
        own = rollouts.samples["observation"]
        for _ in range(rollouts.updates_per_round):
            batch = next(iterator)
            for row in batch["observation"].numpy():
                assert (row == own).all(axis=1).any()
    with pytest.raises(tf.errors.OpError, match="before the round was"):
        next(iterator)


def test_a_second_fit_drops_the_unused_round_of_the_first():
    """A round that was collected but not used is stale for the next `fit`."""
    env = make_env()
    agent = make_eager_agent(PPO, env)
    rollouts = make_rollouts(env)
    agent.fit(rollouts, verbose=0)
    rollouts.refresh()
    before = agent.optimizer.iterations.numpy()
    agent.fit(rollouts, verbose=0)
    assert agent.env_steps == PPO.env_steps(3)
    assert agent.optimizer.iterations.numpy() - before == 2
