"""Observation statistics and reward scaling within an agent's training."""

import functools
import re

import gymnasium
import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.envs import RewardScaler
from support.agents import AGENTS
from support.agents import EVERY_AGENT
from support.agents import AnySpaceEnv
from support.agents import assert_equal_weights
from support.agents import make_eager_agent
from support.agents import make_rollouts
from support.agents import networks_of
from support.agents import slow
from support.agents import weights_of
from support.datasets import state_of
from support.errors import raises
from support.faults import numbers_env
from support.probe_envs import CountingEnv
from support.structured_envs import MaskedEnv

# Rollouts of so many steps, and of whole episodes.
of_rollouts = pytest.mark.parametrize("name", ["PPO", "REINFORCE"])


def counting_env(
    mode=gymnasium.vector.AutoresetMode.NEXT_STEP, action_space=None
):
    def make(index):
        env = CountingEnv(index)
        # The action does not matter to it.
        env.action_space = action_space or env.action_space
        return env

    return rl.envs.as_vector_env(
        gymnasium.vector.SyncVectorEnv(
            [lambda i=i: make(i) for i in range(2)], autoreset_mode=mode
        )
    )


def layers_of(agent):
    return [
        layer
        for network in keras.tree.flatten(networks_of(agent))
        for layer in network.layers
        if isinstance(layer, rl.layers.ObservationNormalization)
    ]


def outputs_of(agent, observation):
    """Returns the outputs of the acting network for observations."""
    return agent(np.asarray(observation)).numpy()


@functools.cache
def trained(name):
    """Returns an agent after three rounds, their observations, and the env."""
    case = EVERY_AGENT[name]
    env = counting_env(action_space=case.action_space)
    agent = make_eager_agent(case, env, normalize_observations=True)
    collected, observe = [], agent.observe

    def keep(trajectory):
        collected.append(trajectory.observation[:-1][trajectory.valid])
        observe(trajectory)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(agent, "observe", keep)
        agent.fit(case.make_dataset(env), epochs=3, verbose=0)
    return agent, collected, env


@pytest.mark.parametrize("name", ["REINFORCE", "TD3", *slow("PPO", "SAC")])
def test_statistics_equal_numpys(name):
    agent, collected, _ = trained(name)
    # Rows that are only resets were left out.
    assert sum(map(len, collected)) < 48
    for layer in layers_of(agent):
        everything = np.concatenate(collected)
        assert float(layer.count) == len(everything)
        mean, variance = layer.running_mean, layer.running_variance
        np.testing.assert_allclose(mean, everything.mean(0), rtol=1e-5)
        np.testing.assert_allclose(
            variance, everything.var(0), rtol=1e-4, atol=1e-6
        )
        # In use, until the next round, is what came before the last one.
        before = np.concatenate(collected[:-1])
        np.testing.assert_allclose(layer.mean, before.mean(0), rtol=1e-5)


@pytest.mark.parametrize("name", ["TD3", *slow("SAC")])
def test_target_networks_copy_the_statistics_of_their_sources(name):
    """They are copied and not averaged: a mean of means fits no rows."""
    agent, _, _ = trained(name)
    for target, source in agent.target_pairs:
        ours, theirs = (n.get_layer("normalization") for n in (target, source))
        assert float(ours.count) > 0
        assert_equal_weights(ours.get_weights(), theirs.get_weights())


def test_evaluating_and_acting_change_nothing():
    agent, collected, env = trained("TD3")
    before = weights_of(agent)
    agent.evaluate(env, episodes=4)
    agent.act(collected[0] + 100.0)
    agent.act(collected[0], deterministic=True)
    agent(collected[0])
    assert_equal_weights(agent, before)


def test_statistics_are_saved(tmp_path):
    agent, collected, _ = trained("TD3")
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    for ours, theirs in zip(layers_of(agent), layers_of(loaded), strict=True):
        assert_equal_weights(theirs.get_weights(), ours.get_weights())
        assert float(theirs.count) > 0
    np.testing.assert_array_equal(
        *(outputs_of(one, collected[0]) for one in (loaded, agent))
    )


def test_statistics_do_not_change_within_a_round():
    """The recorded log-probabilities still hold at the first update."""
    env = counting_env()
    agent = make_eager_agent(
        AGENTS["PPO"],
        env,
        normalize_observations=True,
        compile_arguments={"optimizer": keras.optimizers.SGD(0.0)},
    )
    rollouts = make_rollouts(env, batch_size=None)
    agent.fit(rollouts, epochs=3, verbose=0)
    policy, value = agent.policy_and_value(rollouts.samples["observation"])
    np.testing.assert_allclose(
        value, rollouts.samples["value"], rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(
        policy.log_prob(rollouts.samples["action"]),
        rollouts.samples["log_prob"],
        rtol=1e-5,
    )


@pytest.mark.parametrize("name", ["REINFORCE", *slow("PPO")])
def test_a_shared_layer_takes_each_row_once(name):
    normalization = rl.layers.ObservationNormalization()
    inputs = keras.Input((4,))
    normal = normalization(inputs)
    actor = keras.Model(inputs, keras.layers.Dense(3)(normal))
    critic = keras.Model(inputs, keras.layers.Dense(1)(normal))
    env = counting_env(gymnasium.vector.AutoresetMode.SAME_STEP)
    agent = AGENTS[name].make(actor, critic)
    agent.compile(run_eagerly=True)
    agent.fit(make_rollouts(env, batch_size=None), epochs=2, verbose=0)
    # Two environments: 8 steps twice; or the first and the third episode, as
    # all ends reset, and each round does again.
    expected = 2 * (3 + 5) if AGENTS[name].make.whole_episodes else 2 * 8 * 2
    assert float(normalization.count) == expected


# Rewards.


@of_rollouts
def test_rewards_are_scaled_as_by_the_scaler_itself(name):
    env = counting_env()
    agent = make_eager_agent(AGENTS[name], env, gamma=0.9)
    plain, scaled = (
        make_rollouts(counting_env(), scale_rewards=s) for s in (False, True)
    )
    scaler = RewardScaler(0.9, 2)
    for rollouts in (plain, scaled):
        rollouts.bind(agent)
    for _ in range(3):
        raw, trajectory = plain.collect(), scaled.collect()
        np.testing.assert_array_equal(raw.reward, trajectory.reward)
        reward = scaled.pack(trajectory)["outcome"][0]
        assert raw.ended.any()
        expected = scaler.scale_rollout(raw.reward, raw.ended, raw.valid)
        np.testing.assert_allclose(
            np.where(raw.valid, reward, 0.0),
            np.where(raw.valid, expected, 0.0),
            rtol=1e-6,
        )
    # Episode returns are those of the environment.
    assert scaled.logs()["episode_return"] == plain.logs()["episode_return"]


@of_rollouts
def test_episodes_broken_off_leave_no_return_behind(name):
    """`evaluate` on the same environment ends the episodes of training."""
    env = rl.envs.as_vector_env(CountingEnv(lengths=(100,)))
    agent = make_eager_agent(AGENTS[name], env, gamma=1.0)
    rollouts = make_rollouts(env, horizon=4, batch_size=4, scale_rewards=True)
    rollouts.bind(agent)
    # Whole episodes end within their round, and begin anew in any case.
    whole = AGENTS[name].make.whole_episodes
    rollouts.refresh()
    assert state_of(rollouts)["scaler"]["returns"][0] == (
        0 if whole else 1 + 2 + 3 + 4
    )
    env.reset()
    rollouts.refresh()
    # Episode 2 gives 21, 22, 23, 24.
    assert state_of(rollouts)["scaler"]["returns"][0] == (
        0 if whole else 21 + 22 + 23 + 24
    )


@pytest.mark.parametrize("name", ["PPO", *slow("SAC")])
def test_large_observations_keep_their_precision_when_mixed(name):
    """bfloat16 has 8 bits: 1001 and 1003 must not become one number."""
    case = EVERY_AGENT[name]
    space = gymnasium.spaces.Box(1000.0, 1004.0, (1,), np.float32)
    env = AnySpaceEnv(space, case.action_space)
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        agent = make_eager_agent(case, env, normalize_observations=True)
    finally:
        keras.config.set_dtype_policy("float32")
    agent.fit(case.make_dataset(env, **case.one_update), epochs=2, verbose=0)
    first, second = outputs_of(agent, np.array([[1001.0], [1003.0]], "float32"))
    # The last layer of a policy begins with weights of 0.01.
    assert np.abs(first - second).max() > 1e-3


@pytest.mark.parametrize(
    ("name", "value"), [("PPO", 1e30), *slow(("SAC", -3e38), ("DQN", -3e38))]
)
def test_an_observation_whose_square_is_not_finite_is_named(name, value):
    case = EVERY_AGENT[name]
    env = numbers_env(case, "observation", value)
    agent = make_eager_agent(case, env, normalize_observations=True)
    dataset = case.make_dataset(env)
    before = weights_of(agent)
    with raises(
        "squares must be finite",
        rf"observation={re.escape(f'{value:g}')} \(number \d+ of \d+\) "
        "from environment 1 at step 3",
    ):
        agent.fit(dataset, verbose=0)
    assert_equal_weights(agent, before)
    assert agent.env_steps == 0


def test_a_layer_without_a_key_beside_an_action_mask():
    def network(units):
        position = keras.Input((3,), name="position")
        x = rl.layers.ObservationNormalization()(position)
        return keras.Model({"position": position}, keras.layers.Dense(units)(x))

    env = MaskedEnv()
    agent = rl.A2C(network(5), network(1), seed=0)
    agent.compile(run_eagerly=True)
    agent.fit(rl.RolloutDataset(env, horizon=16, seed=0), verbose=0)
    for layer in layers_of(agent):
        assert float(layer.count) == 16
        assert np.abs(layer.running_mean).max() < 0.5
