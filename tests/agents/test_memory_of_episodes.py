"""Where a memory begins anew, where it goes on, and what that is worth."""

import gymnasium as gym
import numpy as np
import pytest

import keras_rl2 as rl
from support.remembering import CELLS
from support.remembering import stepwise


@pytest.mark.parametrize("cell", CELLS)
def test_an_episode_begins_without_a_memory(cell):
    agent = rl.PPO.for_env("CartPole-v1", memory=CELLS[cell](), seed=0)
    generator = np.random.default_rng(0)
    observation = generator.normal(size=(2, 5, 4)).astype("float32")
    state = [np.ones_like(each) for each in agent.initial_state(2)]
    on = np.zeros((2, 5), np.float32)
    anew = np.where(np.arange(5) == 3, np.float32(1.0), on)
    _, values, after = agent.run_sequences(observation, anew, state)
    _, alone, expected = agent.run_sequences(
        observation[:, 3:], on[:, 3:], agent.initial_state(2)
    )
    np.testing.assert_allclose(values[:, 3:], alone, atol=1e-6)
    for one, other in zip(after, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    _, values, _ = agent.run_sequences(observation, on, state)
    assert np.abs(values[:, 3:] - alone).min() > 1e-3


def cut_off(mode):
    """Returns an agent and rollouts of ten steps, of episodes of three."""
    env = gym.make_vec(
        "CartPole-v1",
        num_envs=2,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": mode},
        max_episode_steps=3,
    )
    settings = {"gamma": 0.5, "gae_lambda": 0.0}
    agent = rl.PPO.for_env(env, memory=CELLS["gru"](), seed=0, **settings)
    rollouts = rl.RolloutDataset(
        env, horizon=10, passes=1, scale_rewards=False, seed=0
    )
    rollouts.bind(agent)
    return agent, rollouts


@pytest.mark.parametrize(
    ("mode", "beginnings"),
    [("NextStep", [0, 4, 8]), ("SameStep", [0, 3, 6, 9])],
)
def test_an_episode_begins_after_a_truncation_too(mode, beginnings):
    _, rollouts = cut_off(mode)
    trajectory = rollouts.collect()
    expected = np.isin(np.arange(11), beginnings)
    np.testing.assert_array_equal(
        trajectory.begins, np.stack([expected, expected], axis=1)
    )


@pytest.mark.parametrize(
    ("mode", "beginnings"),
    [
        ("NextStep", [1, 0, 0, 0, 1, 0, 0, 0]),
        ("SameStep", [1, 0, 0, 1, 0, 0, 1]),
    ],
)
def test_episodes_of_an_evaluation_begin_without_a_memory(
    mode, beginnings, monkeypatch
):
    agent, rollouts = cut_off(mode)
    rollouts.collect()
    assert not rollouts.collect().begins[0].any()
    begun, begin = [], rl.data.ActorSnapshot.begin

    def noted(actor, envs):
        begun.append(np.array(envs))
        begin(actor, envs)

    monkeypatch.setattr(rl.data.ActorSnapshot, "begin", noted)
    agent.evaluate(rollouts.env, episodes=4)
    np.testing.assert_array_equal(begun, np.stack([beginnings] * 2, axis=1))
    # It has reset the environments that are trained on.
    assert rollouts.collect().begins[0].all()


def test_resets_within_a_sequence_are_not_learned_from():
    agent, rollouts = cut_off("NextStep")
    batches = rollouts.as_dataset(agent)
    rollouts.refresh()
    (batch,) = batches.take(rollouts.updates_per_round)
    expected = np.tile(~np.isin(np.arange(10), [3, 7]), (2, 1))
    np.testing.assert_array_equal(batch["weight"], expected)


def test_what_was_cut_off_is_valued_with_its_memory():
    agent, rollouts = cut_off("SameStep")
    trajectory = rollouts.collect()
    samples, _ = agent.prepare(trajectory)
    _, values, states = stepwise(agent, trajectory)
    steps, envs = np.divmod(trajectory.final_index, 2)
    assert steps.tolist() == [2, 2, 5, 5, 8, 8]
    for row, (t, b) in enumerate(zip(steps, envs, strict=True)):
        _, value, _ = agent.run_sequences(
            trajectory.final_observation[row][None, None],
            np.zeros((1, 1), np.float32),
            [each[b : b + 1] for each in states[t + 1]],
        )
        np.testing.assert_allclose(
            samples["advantage"][b, t],
            1.0 + 0.5 * value[0, 0] - values[t, b],
            rtol=1e-4,
        )
