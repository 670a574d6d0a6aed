"""Rounds of replay in the graph: the noise of their actions."""

from typing import Any

import keras
import numpy as np
import pytest

import keras_rl2 as rl


def trained(kind: Any, **given: Any) -> tuple[Any, rl.ReplayDataset]:
    """Returns an agent that never learns, and the replay of its steps."""
    env = rl.envs.GraphVectorEnv("CartPole-v1", num_envs=4)
    data = rl.ReplayDataset(
        env,
        batch_size=8,
        steps_per_round=40,
        updates_per_round=1,
        warm_up=0,
        rounds_per_epoch=10,
        seed=0,
    )
    agent = kind.for_env(env, hidden=(8,), seed=0, **given)
    agent.compile(keras.optimizers.SGD(0.0))
    agent.fit(data, epochs=1, verbose=0)
    assert agent.round_size.rounds is data.graph_rounds() is not None
    return agent, data


def other_actions(agent: Any, data: rl.ReplayDataset) -> float:
    """Returns the share of actions that are not the greedy ones."""
    steps = data.buffer.sample(2000)
    greedy = agent.act(steps["observation"], deterministic=True)
    return float((steps["action"] != greedy).mean())


@pytest.mark.parametrize(
    ("epsilon", "expected"),
    [pytest.param(0.0, 0.0, marks=pytest.mark.slow), (0.6, 0.3)],
)
def test_actions_are_random_as_often_as_epsilon_says(epsilon, expected):
    found = other_actions(*trained(rl.DQN, epsilon=epsilon))
    # Of 400 steps; half of the random actions of two are the greedy ones.
    assert found == pytest.approx(
        expected, abs=4 * (expected * 0.7 / 400) ** 0.5
    )


@pytest.mark.slow
def test_epsilon_falls_within_a_call():
    schedule = keras.optimizers.schedules.PolynomialDecay(1.0, 400, 0.0)
    assert 0.15 < other_actions(*trained(rl.DQN, epsilon=schedule)) < 0.35


class AlwaysRight(rl.DQN):
    """Draws noise of its own."""

    def draw_noise(self, generator, shape, state=None):
        noise = np.zeros((*shape, 2), np.float32)
        noise[..., 1] = 1e30
        return noise, state


@pytest.mark.slow
def test_noise_of_a_subclass_is_its_own():
    _, data = trained(AlwaysRight)
    assert set(data.buffer.sample(500)["action"].tolist()) == {1}
