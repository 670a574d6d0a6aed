"""Recording makes a dataset, and a replay becomes one."""

import gymnasium
import numpy as np
import pytest

import keras_rl2 as rl
from support.probe_envs import CountingEnv
from support.structured_envs import MASKED_ACTIONS
from support.structured_envs import MaskedEnv
from support.structured_envs import vector


def pushed_right(observation):
    assert observation.shape == (4,)
    return 1


def shares(offline):
    return (
        np.bincount(offline.recorded.action, minlength=2) / offline.transitions
    )


@pytest.mark.parametrize("num_envs", [1, 3])
def test_a_function_plays(num_envs):
    offline = rl.record(pushed_right, "CartPole-v1", 50, num_envs=num_envs)
    assert offline.transitions == 50
    assert shares(offline).tolist() == [0.0, 1.0]
    # A pole that is pushed one way falls within a few steps.
    assert offline.recorded.lengths.max() < 12


@pytest.mark.parametrize("mode", [*gymnasium.vector.AutoresetMode])
def test_every_mode_gives_the_transitions_of_the_environment(mode):
    env = gymnasium.vector.SyncVectorEnv(
        [lambda: gymnasium.make("CartPole-v1")] * 2, autoreset_mode=mode
    )
    offline = rl.record(pushed_right, env, 60, seed=4)
    assert offline.transitions == 60
    agent = rl.DQN.for_env("CartPole-v1", hidden=(4,), seed=0)
    offline.bind(agent)
    batch = offline.sample(400)
    position, velocity = batch["observation"][:, 0], batch["observation"][:, 1]
    # CartPole moves by its velocity in 0.02 s, also into the last state.
    np.testing.assert_allclose(
        batch["next_observation"][:, 0], position + 0.02 * velocity, atol=1e-5
    )
    fallen = np.abs(batch["next_observation"][:, 2]) > 0.2095
    np.testing.assert_array_equal(batch["discount"] == 0.0, fallen)


def test_a_seed_repeats_it():
    one, two = (rl.record("random", "CartPole-v1", 80, seed=5) for _ in "ab")
    assert repr(one) == repr(two)
    assert repr(one) != repr(rl.record("random", "CartPole-v1", 80, seed=6))


def test_an_agent_plays_and_is_not_changed():
    agent = rl.PPO.for_env(
        "CartPole-v1", hidden=(8,), normalize_observations=True, seed=0
    )
    before = [weight.copy() for weight in agent.get_weights()]
    greedy = rl.record(agent, "CartPole-v1", 40, deterministic=True)
    assert greedy.transitions == 40
    mixed = rl.record(agent, "CartPole-v1", 200)
    assert shares(mixed).min() > 0.1
    for old, new in zip(before, agent.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)
    assert agent.env_steps == 0


def test_numbers_are_those_of_the_environment():
    agent = rl.SAC.for_env("Pendulum-v1", hidden=(8,), seed=0)
    offline = rl.record(agent, "Pendulum-v1", 100)
    action = offline.recorded.action
    assert 1.0 < action.max() <= 2.0
    assert -2.0 <= action.min() < -1.0


def test_masks_are_heeded():
    space = MASKED_ACTIONS["discrete"]
    offline = rl.record("random", vector(lambda: MaskedEnv(space)), 40)
    assert offline.transitions == 40


def test_bad_arguments_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"'random'.*policy='best'"):
        rl.record("best", "CartPole-v1", 5)
    # Pendulum takes it, and clips it.
    for path in (None, tmp_path / "data"):
        with pytest.raises(ValueError, match=r"within Box.*Received: \[9.\]"):
            rl.record(lambda observation: [9.0], "Pendulum-v1", 5, path)
    assert not [*tmp_path.iterdir()]
    with pytest.raises(ValueError, match="steps=0"):
        rl.record("random", "CartPole-v1", 0)


# Replay.


def filled(capacity, num_envs=1, **kwargs):
    """Returns replay of CountingEnv, with 100 steps taken in it."""
    replay = rl.ReplayDataset(
        gymnasium.vector.SyncVectorEnv([CountingEnv] * num_envs),
        capacity,
        8,
        steps_per_round=2 * num_envs,
        warm_up=10,
        seed=0,
        **kwargs,
    )
    agent = rl.DQN.for_env(CountingEnv(), hidden=(4,), seed=0)
    replay.bind(agent)
    replay.fill(100)
    return replay, agent


@pytest.mark.parametrize(("capacity", "num_envs"), [(60, 2), (1000, 1)])
def test_an_offline_dataset_holds_the_transitions_of_a_replay(
    capacity, num_envs
):
    replay, agent = filled(capacity, num_envs)
    offline = rl.OfflineDataset(replay)
    assert offline.transitions == len(replay.buffer)
    offline.bind(agent)

    def distinct(batch):
        parts = [
            np.reshape(batch[key], (len(batch["reward"]), -1))
            for key in (
                "observation",
                "action",
                "reward",
                "discount",
                "next_observation",
            )
        ]
        return np.unique(np.concatenate(parts, axis=1), axis=0)

    np.testing.assert_array_equal(
        distinct(offline.sample(4000)), distinct(replay.sample(4000))
    )


def test_an_empty_or_multi_step_replay_is_refused():
    with pytest.raises(ValueError, match="with stored transitions"):
        rl.OfflineDataset(rl.ReplayDataset("CartPole-v1", 100, 8))
    replay, _ = filled(60, n_step=3)
    with pytest.raises(ValueError, match="n_step=3"):
        rl.OfflineDataset(replay)
