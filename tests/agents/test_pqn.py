"""PQN: targets and losses worked out by hand, and published returns."""

import keras
import numpy as np
import pytest
from gymnasium import spaces

import keras_rl2 as rl
from keras_rl2.envs import as_vector_env
from support.agents import AGENTS
from support.agents import make_eager_agent
from support.agents import make_rollouts
from support.probe_envs import CountingEnv
from support.tabular import Table
from support.tabular import a_batch


def tabular(q_values, **settings):
    """Makes an agent whose Q-values are its weights."""
    agent = rl.PQN(
        keras.Sequential([Table(q_values)]),
        observation_space=spaces.Discrete(len(q_values)),
        action_space=spaces.Discrete(len(q_values[0])),
        **{"max_gradient_norm": None, **settings},
    )
    agent.compile(keras.optimizers.SGD(1.0), run_eagerly=True)
    return agent


def test_loss_and_gradient_of_a_minibatch():
    agent = tabular([[1.0, 2.0], [3.0, 5.0]])
    batch = a_batch(action=[1, 0], returns=[4.0, 3.5])
    logs = agent.train_step(batch)
    # Errors of 2 and 0.5.
    assert float(logs["loss"]) == pytest.approx((4.0 + 0.25) / 2)
    assert float(logs["q_value"]) == pytest.approx(2.5)
    # d/dq of the mean of (G - q)^2 is -(G - q).
    np.testing.assert_allclose(
        agent.q_network.get_weights()[0], [[1.0, 4.0], [3.5, 5.0]], rtol=1e-6
    )
    # A sample that does not count changes nothing.
    agent = tabular([[1.0, 2.0], [3.0, 5.0]])
    batch = a_batch(action=[1, 0], returns=[4.0, 9.0], weight=[1.0, 0.0])
    assert float(agent.train_step(batch)["loss"]) == pytest.approx(4.0)
    np.testing.assert_allclose(
        agent.q_network.get_weights()[0], [[1.0, 6.0], [3.0, 5.0]], rtol=1e-6
    )


def test_targets_mix_the_best_next_value_with_the_rest_of_the_rollout():
    agent = tabular([[0.0]], gamma=0.5, q_lambda=0.75)
    arrays = {
        "reward": np.float32([[1.0], [2.0], [4.0], [8.0]]),
        "terminated": np.array([[False], [True], [False], [False]]),
        "truncated": np.array([[False], [False], [True], [False]]),
    }
    next_values = np.float32([[10.0], [20.0], [30.0], [40.0]])
    values = np.zeros((4, 1), np.float32)
    _, targets = agent.targets(arrays, None, values, next_values)
    last = 8.0 + 0.5 * 40.0
    truncated = 4.0 + 0.5 * 30.0
    terminated = 2.0
    first = 1.0 + 0.5 * (0.25 * 10.0 + 0.75 * terminated)
    np.testing.assert_allclose(
        targets, [[first], [terminated], [truncated], [last]], rtol=1e-6
    )


def test_targets_are_of_the_weights_that_acted():
    env = as_vector_env(CountingEnv(lengths=(3, 5)))
    agent = make_eager_agent(AGENTS["PQN"], env, q_lambda=0.0, gamma=0.9)
    rollouts = make_rollouts(env, passes=2)
    history = agent.fit(rollouts, verbose=0).history
    assert 0.0 < history["epsilon"][0] <= 1.0
    rollouts.refresh()
    samples = rollouts.samples
    value = agent.value(samples["observation"]).numpy()
    np.testing.assert_allclose(samples["value"], value, rtol=1e-5)


def test_forbidden_actions_are_no_next_action():
    agent = rl.PQN(
        keras.Sequential([Table([[1.0, 7.0]])]),
        observation_space=spaces.Dict(
            observation=spaces.Discrete(1),
            action_mask=spaces.Box(0, 1, (2,), np.int8),
        ),
        action_space=spaces.Discrete(2),
    )
    observation = {
        "observation": np.zeros(2, np.int64),
        "action_mask": np.int8([[1, 1], [1, 0]]),
    }
    assert agent.value(observation).numpy().tolist() == [7.0, 1.0]


@pytest.mark.learning
@pytest.mark.parametrize(
    # Published: CleanRL's pqn.py, the mean of its seeds less its deviation.
    ("env", "published"),
    [("CartPole-v1", 495.13 - 6.89), ("Acrobot-v1", -95.63 - 5.73)],
)
def test_published_returns(env, published):
    steps, decay = 500_000, keras.optimizers.schedules.PolynomialDecay
    returns = []
    for seed in range(5):
        rollouts = rl.RolloutDataset(
            env,
            num_envs=4,
            horizon=128,
            passes=4,
            batch_size=128,
            scale_rewards=False,
            seed=seed,
        )
        agent = rl.PQN.for_env(
            env,
            hidden=(120, 84),
            initialization="orthogonal",
            epsilon=decay(1.0, steps // 2, 0.05),
            seed=seed,
        )
        updates = steps // rollouts.steps_per_round * rollouts.updates_per_round
        agent.compile(keras.optimizers.Adam(decay(2.5e-4, updates, 0.0)))
        agent.fit(rollouts, total_steps=steps, verbose=0)
        score = agent.evaluate(env, episodes=20, seed=seed + 1000)
        returns.append(score["episode_return"])
    print(env, returns)
    assert np.mean(returns) >= published
