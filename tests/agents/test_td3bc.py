"""TD3BC: the policy's update against numbers by hand."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_rl2 as rl
from support.agents import assert_equal_weights
from support.deterministic import assert_linear
from support.deterministic import linear_agent
from support.deterministic import small_agent
from support.deterministic import small_replay
from support.errors import raises

BATCH = {
    "observation": tf.constant([[0.0], [0.0]]),
    "next_observation": tf.constant([[0.0], [0.0]]),
    "action": tf.constant([[0.5], [-0.5]]),
    "reward": tf.constant([0.0, 0.0]),
    "discount": tf.constant([0.0, 0.0]),
}


def one_update(make, **settings):
    """An agent whose Q_1 is 2 a + 1 and whose π is 0, after an update."""
    agent = linear_agent(
        make,
        (0.0, 0.0),
        [(0.0, 2.0, 1.0), (0.0, -5.0, 9.0)],
        policy_delay=1,
        **settings,
    )
    logs = agent.train_step(BATCH)
    return agent, {key: float(value) for key, value in logs.items()}


def test_update_of_the_policy_by_hand():
    agent, logs = one_update(rl.TD3BC, alpha=2.5)
    # Q_1 of both is 1, λ = 2.5; the distances are a quarter each.
    assert logs["actor_loss"] == pytest.approx(0.25 - 2.5)
    # dL / da = mean(2 (0 - a)) - λ 2, of which the first is 0.
    assert_linear(agent.actor, 0.0, 5.0)


def test_without_values_it_clones():
    batch = {**BATCH, "action": tf.constant([[0.5], [0.0]])}
    agent = linear_agent(
        rl.TD3BC,
        (0.0, 0.0),
        [(0.0, 2.0, 1.0)] * 2,
        policy_delay=1,
        alpha=0.0,
    )
    agent.train_step(batch)
    assert_linear(agent.actor, 0.0, 0.5)


def test_weights_of_samples_count():
    agent = linear_agent(
        rl.TD3BC, (0.0, 0.0), [(0.0, 2.0, 1.0)] * 2, policy_delay=1, alpha=0.0
    )
    agent.train_step({**BATCH, "weight": tf.constant([1.0, 0.0])})
    assert_linear(agent.actor, 0.0, 0.5)


def test_critics_learn_as_those_of_td3():
    (one, _), (other, _) = one_update(rl.TD3BC), one_update(rl.TD3)
    for ours, theirs in zip(one.critics, other.critics, strict=True):
        assert_equal_weights(ours.get_weights(), theirs.get_weights())


@pytest.mark.slow
def test_the_policy_stays_near_the_data():
    """Where the critic knows no bounds, beside TD3."""
    rng = np.random.default_rng(0)
    observation = rng.uniform(-1, 1, (256, 3)).astype("float32")
    batch = {
        "observation": observation,
        "next_observation": observation,
        "action": 0.3 * observation[:, :1],
        "reward": np.ones(256, "float32"),
        "discount": np.full(256, 0.9, "float32"),
    }
    distances = []
    for make in (rl.TD3BC, rl.TD3):
        agent = small_agent(make)
        agent.compile(keras.optimizers.Adam(1e-2))
        for _ in range(200):
            agent.train_on_batch(batch)
        greedy = agent.greedy_action(observation)
        distances.append(np.abs(greedy - batch["action"]).mean())
    assert distances[0] < 0.1 < distances[1]


def test_saved_with_its_alpha(tmp_path):
    agent = small_agent(rl.TD3BC, alpha=1.25)
    agent.compile(run_eagerly=True)
    agent.fit(small_replay(updates_per_round=2), verbose=0)
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    assert type(loaded) is rl.TD3BC
    assert loaded.alpha == 1.25
    assert_equal_weights(loaded, agent)


def test_alpha_out_of_range():
    with raises("alpha", "-1"):
        small_agent(rl.TD3BC, alpha=-1.0)
    with raises("alpha", "nan"):
        small_agent(rl.TD3BC, alpha=float("nan"))
