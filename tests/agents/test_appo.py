"""APPO: lagging rollouts, their V-trace targets, and equality with PPO."""

import dataclasses

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from support.errors import raises
from support.workers_here import WorkersHere

pytestmark = pytest.mark.usefixtures("eagerly")

SETTINGS = {"num_envs": 4, "horizon": 8, "passes": 1, "batch_size": 16}
ENV = "Acrobot-v1"


def trained(algorithm, workers=None, epochs=4, env=ENV, **kwargs):
    """Trains an agent, and returns it and its history."""
    rollouts = rl.RolloutDataset(env, seed=0, workers=workers, **SETTINGS)
    agent = getattr(rl, algorithm).for_env(
        rollouts.env, hidden=(8,), seed=0, **kwargs
    )
    agent.compile(keras.optimizers.SGD(0.01))
    history = agent.fit(rollouts, epochs=epochs, verbose=0).history
    rollouts.close()
    return agent, history


def weights(agent):
    return [variable.numpy() for variable in agent.trainable_variables]


def assert_close(first, second):
    for one, other in zip(weights(first), weights(second), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)


def test_without_a_lag_it_is_ppo():
    same = {"epochs": 2, "env": "Pendulum-v1"}
    ppo, expected = trained("PPO", **same)
    appo, history = trained("APPO", **same)
    assert_close(ppo, appo)
    assert "lag" not in history
    np.testing.assert_allclose(history["loss"], expected["loss"], rtol=1e-4)
    # Less than the 2 updates of a round: it waits for the updates.
    appo, history = trained("APPO", rl.LocalWorkers(2), max_lag=1, **same)
    assert "lag" not in history
    assert_close(ppo, appo)


def test_the_lag_is_logged_and_bounded():
    _, history = trained("APPO", rl.LocalWorkers(2), max_lag=5)
    assert history["lag"] == [0, 2, 4, 4]


def test_updates_of_sequences_count_for_the_lag():
    """Minibatches of whole sequences are others, and there may be more."""
    rollouts = rl.RolloutDataset(
        ENV, num_envs=5, horizon=100, passes=1, seed=0, workers=WorkersHere(1)
    )
    agent = rl.APPO.for_env(
        rollouts.env, memory=keras.layers.GRUCell(3), seed=0, max_lag=2
    )
    rollouts.bind(agent)
    assert rollouts.updates_per_round == 3
    rollouts.collect()
    # Nothing is collected ahead.
    assert not rollouts.env.pool._processes[0].calls


def test_log_probs_are_those_of_the_weights_that_acted():
    rollouts = rl.RolloutDataset(
        ENV, seed=0, workers=rl.LocalWorkers(2), **SETTINGS
    )
    agent = rl.APPO.for_env(rollouts.env, hidden=(8,), seed=0)
    agent.compile(keras.optimizers.SGD(1.0))
    acted, seen = [], []
    begin_round = agent.begin_round

    def noted():
        begin_round()
        acted.append(agent.get_weights())

    agent.begin_round = noted
    agent.observers.add(seen.append)
    agent.fit(rollouts, epochs=3, verbose=0)
    rollouts.close()
    # One more round is under way.
    assert (len(seen), len(acted)) == (3, 4)
    assert any(
        not np.array_equal(*pair)
        for pair in zip(acted[1], acted[2], strict=True)
    )
    for before, trajectory in zip(acted, seen, strict=False):
        agent.set_weights(before)
        policy = agent.distribution(trajectory.observation[:-1].reshape(32, 6))
        np.testing.assert_allclose(
            trajectory.log_prob.ravel(),
            policy.log_prob(trajectory.action.ravel()),
            atol=1e-5,
        )


def test_targets_by_hand():
    """Two steps of one environment; π/μ is 0.5, then 4, which is clipped."""
    agent = rl.APPO.for_env(
        "CartPole-v1", seed=0, gamma=0.5, gae_lambda=0.5, clip_c=2.0
    )
    arrays = {
        "reward": np.array([[1.0], [2.0]], np.float32),
        "terminated": np.zeros((2, 1), np.bool_),
        "truncated": np.zeros((2, 1), np.bool_),
        "log_prob": np.log([[0.5], [0.125]]).astype(np.float32),
    }
    advantages, targets = agent.targets(
        arrays,
        np.log([[0.25], [0.5]]).astype(np.float32),
        np.array([[1.0], [4.0]], np.float32),
        np.array([[4.0], [2.0]], np.float32),
    )
    # Errors 0.5 (1 + 0.5 4 - 1) and 1 (2 + 0.5 2 - 4); trace 0.5 0.5 0.5.
    np.testing.assert_allclose(targets, [[1 + 1.0 - 0.125], [3.0]], atol=1e-6)
    # The first looks ahead to 0.5 4 + 0.5 3.
    np.testing.assert_allclose(
        advantages, [[1 + 0.5 * 3.5 - 1], [-1.0]], atol=1e-6
    )


def test_a_rollout_of_another_policy_is_corrected_by_vtrace():
    rollouts = rl.RolloutDataset(ENV, seed=0, **SETTINGS)
    agent = rl.APPO.for_env(rollouts.env, hidden=(8,), seed=0)
    agent.compile()
    rollouts.bind(agent)
    trajectory = rollouts.collect()
    fresh, _ = agent.prepare(trajectory)
    own = fresh["log_prob"].reshape(trajectory.reward.shape)
    same, _ = agent.prepare(dataclasses.replace(trajectory, log_prob=own))
    np.testing.assert_allclose(same["advantage"], fresh["advantage"], atol=1e-6)
    # What was half as probable moves a value half as far.
    other = dataclasses.replace(
        trajectory, log_prob=own + np.float32(np.log(2.0))
    )
    agent = rl.APPO.for_env(rollouts.env, hidden=(8,), seed=0, gae_lambda=0.0)
    fresh, _ = agent.prepare(trajectory)
    lagging, _ = agent.prepare(other)
    for key, share in (("advantage", 1.0), ("returns", 0.5)):
        value = fresh["value"] if key == "returns" else 0.0
        np.testing.assert_allclose(
            lagging[key] - value, share * (fresh[key] - value), atol=1e-5
        )
    # The ratio is to the policy that acted.
    np.testing.assert_array_equal(lagging["log_prob"], other.log_prob.ravel())


@pytest.mark.parametrize("max_lag", [-1, 1.5, "all", True])
def test_invalid_values_of_max_lag_are_refused(max_lag):
    with raises(
        "`max_lag` to be an integer of at least 0", f"max_lag={max_lag!r}"
    ):
        rl.APPO.for_env("CartPole-v1", max_lag=max_lag)


@pytest.mark.parametrize("max_lag", [None, 0, 3])
def test_valid_values_of_max_lag_are_kept(max_lag):
    agent = rl.APPO.for_env("CartPole-v1", max_lag=max_lag)
    assert agent.max_lag == agent.get_config()["max_lag"] == max_lag
