"""Non-finite values are refused before they change any weight."""

import os

import keras
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.vector import SyncVectorEnv

from keras_rl2.envs import as_vector_env
from support.agents import EITHER_DATASET
from support.agents import assert_equal_weights
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import weights_of
from support.errors import raises
from support.faults import all_variables
from support.faults import assert_same
from support.probe_envs import NonFiniteEnv


class InfiniteEnd(NonFiniteEnv):
    """An observation that is the last of an episode is infinite."""

    def step(self, action):
        observation, reward, _, ended, info = super().step(action)
        if self._steps == 4:
            observation[0] = np.inf
        return observation, reward, ended, False, info


def second_of_three(case, make, mode=AutoresetMode.SAME_STEP, length=10):
    good = [lambda: NonFiniteEnv(at=-1, length=length)]
    makers = [for_actions(case, each) for each in (*good, make, *good)]
    return as_vector_env(SyncVectorEnv(makers, autoreset_mode=mode))


def for_actions(case, make):
    """Gives an environment, which ignores actions, those of an agent."""

    def made():
        env = make()
        env.action_space = case.action_space
        return env

    return made


def stored(dataset):
    """Returns the contents of a replay buffer; nothing of rollouts."""
    buffer = getattr(dataset, "buffer", None)
    return {} if buffer is None else buffer.get_state()


SAME_STEP, NEXT_STEP, DISABLED = (
    AutoresetMode.SAME_STEP,
    AutoresetMode.NEXT_STEP,
    AutoresetMode.DISABLED,
)


@pytest.mark.parametrize(
    ("name", "key", "value", "mode"),
    [
        ("PPO", "observation", np.nan, SAME_STEP),
        ("PPO", "reward", -np.inf, DISABLED),
        ("SAC", "observation", -np.inf, NEXT_STEP),
        ("SAC", "reward", np.nan, SAME_STEP),
    ],
)
def test_non_finite_values_of_training_environments_are_refused(
    name, key, value, mode
):
    case = EITHER_DATASET[name]
    env = second_of_three(case, lambda: NonFiniteEnv(13, key, value), mode)
    agent = make_eager_agent(case, env)
    dataset = case.make_dataset(env, **case.one_update)
    agent.fit(dataset, verbose=0)
    before, buffer = weights_of(agent), stored(dataset)
    # Step 13 is the fifth of the second rollout; what it returns is observed
    # in the sixth; under NEXT_STEP one step more has gone to a reset.
    step = 4 + (key == "observation") + (mode == NEXT_STEP)
    where = f"{key}={value}.* from environment 1 at step {step} "
    with raises(f"a finite {key}", where):
        agent.fit(dataset, verbose=0)
    assert_equal_weights(agent, before)
    assert agent.env_steps == 24
    np.testing.assert_equal(stored(dataset), buffer)
    # The next rollout begins new episodes and is fine.
    agent.fit(dataset, verbose=0)


@pytest.mark.parametrize("mode", [SAME_STEP, NEXT_STEP])
def test_final_observation_that_is_not_finite(mode):
    case = EITHER_DATASET["PPO"]
    env = second_of_three(case, lambda: InfiniteEnd(at=-1, length=2), mode)
    agent = make_eager_agent(case, env)
    before = weights_of(agent)
    where = "final observation=inf.* from environment 1 at step 3 "
    if mode == NEXT_STEP:
        where = "observation=inf.* from environment 1 at step 5 "
    with raises("a finite", where):
        agent.fit(case.make_dataset(env), verbose=0)
    assert_equal_weights(agent, before)


def test_a_first_observation_that_is_not_finite():
    class BadStart(NonFiniteEnv):
        def reset(self, *, seed=None, options=None):
            return super().reset(seed=seed)[0] * np.nan, {}

    case = EITHER_DATASET["PPO"]
    env = as_vector_env(for_actions(case, lambda: BadStart(at=-1))())
    agent = make_eager_agent(case, env)
    with raises("a finite observation", "environment 0 at step 0"):
        agent.fit(case.make_dataset(env), verbose=0)


@pytest.mark.parametrize("key", ["observation", "reward"])
def test_evaluation_refuses_non_finite_observations_and_rewards(key):
    case = EITHER_DATASET["PPO"]
    env = as_vector_env(
        for_actions(case, lambda key=key: NonFiniteEnv(3, key))()
    )
    agent = make_eager_agent(case, env)
    with raises(f"a finite {key}", "nan.* from environment 0"):
        agent.evaluate(env, episodes=1)


# Weights that are not finite: no action, no file, no training.


def spoil(agent):
    """Makes the last weight of the network that acts not a number."""
    bias = agent.acting_networks[0].layers[-1].trainable_variables[-1]
    bias.assign(bias * np.nan)
    return bias.path


def made():
    case = EITHER_DATASET["SAC"]
    env = make_env(case.pair)
    agent = make_eager_agent(case, env)
    agent.optimizer.build(agent.trainable_variables)
    return agent, case.make_dataset(env, **case.one_update), env


def test_weights_that_are_not_finite_are_not_saved(tmp_path):
    agent, dataset, env = made()
    agent.fit(dataset, verbose=0)
    agent.save(tmp_path / "agent.keras")
    agent.save_weights(tmp_path / "agent.weights.h5")
    files = {p: p.read_bytes() for p in tmp_path.iterdir()}
    path = spoil(agent)
    with raises("finite weights to save", path):
        agent.save(tmp_path / "agent.keras")
    with raises("finite weights to save", path):
        agent.save_weights(tmp_path / "agent.weights.h5")
    with raises("finite weights to act with", path):
        agent.fit(dataset, verbose=0)
    with raises("finite weights to act with", path):
        agent.evaluate(env, episodes=1)
    with raises("finite weights to export", path):
        agent.export(tmp_path / "exported")
    assert {p: p.read_bytes() for p in tmp_path.iterdir()} == files
    slot = next(v for v in agent.optimizer.variables if len(v.shape))
    agent.load_weights(tmp_path / "agent.weights.h5")
    slot.assign(slot + np.inf)
    with raises("finite weights to save", slot.path):
        agent.save(tmp_path / "agent.keras")


def test_weights_that_are_not_finite_are_not_loaded(tmp_path):
    agent, dataset, env = made()
    before = all_variables(agent)
    spoil(agent)
    # As somebody would write it who does not go through the agent.
    file, weights = tmp_path / "agent.keras", tmp_path / "agent.weights.h5"
    keras.saving.save_model(agent, os.fspath(file))
    keras.Model.save_weights(agent, os.fspath(weights))
    other, _, _ = made()
    with raises("finite weights to go on", "not numbers"):
        other.load_weights(weights)
    assert_same(all_variables(other), before)
    for use in (
        lambda agent: agent.act(dataset.env.observation_space.sample()),
        lambda agent: agent.evaluate(env, episodes=1),
        lambda agent: agent.fit(dataset, verbose=0),
    ):
        with raises("finite weights to go on", "not numbers"):
            use(keras.saving.load_model(file))
