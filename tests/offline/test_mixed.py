"""Minibatches of recorded and of new transitions."""

import keras
import numpy as np
import pytest

import keras_rl2 as rl


def parts(ratio=0.5, batch_size=8, **kwargs):
    """Returns a dataset whose recorded rewards are 7."""
    count = 40
    offline = rl.OfflineDataset(
        {
            "observations": np.zeros((count, 4), "float32"),
            "actions": np.zeros(count, int),
            "rewards": np.full(count, 7.0),
            "terminations": np.arange(count) % 10 == 9,
            "truncations": np.zeros(count, bool),
        },
        updates_per_epoch=5,
    )
    replay = rl.ReplayDataset(
        "CartPole-v1",
        200,
        batch_size,
        steps_per_round=4,
        rounds_per_epoch=3,
        warm_up=12,
        seed=0,
        **kwargs,
    )
    return rl.MixedDataset(offline, replay, ratio)


def dqn(**kwargs):
    agent = rl.DQN.for_env("CartPole-v1", hidden=(4,), seed=0, **kwargs)
    agent.compile(keras.optimizers.SGD(0.01), run_eagerly=True)
    return agent


@pytest.mark.parametrize(("ratio", "recorded"), [(0.25, 2), (0.99, 7)])
def test_each_minibatch_has_its_share(ratio, recorded):
    mixed = parts(ratio)
    batches = mixed.as_dataset(dqn())
    mixed.refresh()
    for batch in batches.take(mixed.updates_per_round):
        assert (batch["reward"].numpy() == 7.0).sum() == recorded
        assert batch["weight"].shape == (8,)
    assert (mixed.sample(100)["reward"] == 7.0).sum() == round(100 * ratio)


def test_steps_are_taken_as_the_replay_takes_them():
    mixed, agent = parts(), dqn()
    history = agent.fit(mixed, epochs=2, verbose=0).history
    # Resets of CartPole's own vector environment are no steps.
    assert 12 + 20 <= history["env_steps"][1] <= 12 + 24
    assert history["steps_per_second"][0] > 0
    agent.fit(mixed, total_steps=8, verbose=0)
    assert 32 < agent.env_steps <= 44
    assert int(agent.updates) == 8 * mixed.updates_per_round


@pytest.mark.usefixtures("eagerly")
def test_after_learning_offline():
    mixed, agent = parts(), dqn()
    # As users run it.
    agent.compile(keras.optimizers.SGD(0.01))
    agent.fit(mixed.offline, verbose=0)
    assert agent.env_steps == 0
    agent.fit(mixed, total_steps=24, verbose=0)
    assert 18 < agent.env_steps <= 24


def test_state_goes_on_where_it_was():
    mixed = parts()
    mixed.bind(dqn())
    mixed.refresh()
    state = mixed.get_state()
    expected = mixed.sample(20)["observation"]
    mixed.set_state(state)
    np.testing.assert_array_equal(mixed.sample(20)["observation"], expected)


def test_minibatches_are_those_of_the_newest_round():
    def none_is_left():
        return pytest.raises(RuntimeError, match="before the round was refresh")

    mixed = parts()
    mixed.bind(dqn())
    for _ in range(2):
        mixed.refresh()
    mixed.hand_over()
    with none_is_left():
        mixed.hand_over()
    state = mixed.get_state()
    mixed.refresh()
    mixed.set_state(state)
    with none_is_left():
        mixed.hand_over()


def test_invalid_ratios_and_datasets_are_refused():
    for ratio in (0.0, 1.0, -1):
        with pytest.raises(ValueError, match=f"between 0 and 1.*{ratio}"):
            parts(ratio)
    with pytest.raises(ValueError, match=r"n_step=1 of the .*n_step=3 of the"):
        parts(n_step=3)
    with pytest.raises(ValueError, match="prioritized=True"):
        parts(prioritized=True)
    with pytest.raises(ValueError, match="PPO"):
        rl.PPO.for_env("CartPole-v1", seed=0).fit(parts())
