"""Noise that is drawn in the graph has the distribution of NumPy's."""

from typing import Any

import keras
import numpy as np
import pytest
from keras import ops

import keras_rl2 as rl
from keras_rl2.graph.noise import can_draw
from keras_rl2.graph.noise import draw_noise
from keras_rl2.graph.noise import noise_inputs
from keras_rl2.training.rounds import GraphRound

SEED = np.array([3, 4], np.uint32)


def drawn(parts: list[dict[str, object]], shape: tuple[int, ...]) -> np.ndarray:
    """Returns the noise of a policy as an array."""
    return ops.convert_to_numpy(
        draw_noise(parts, noise_inputs(parts), SEED, shape)
    )


def test_moments_of_each_kind() -> None:
    for kind, mean, deviation in (
        ("normal", 0.0, 1.0),
        ("logistic", 0.0, np.pi / np.sqrt(3.0)),
        ("gumbel", 0.5772, np.pi / np.sqrt(6.0)),
    ):
        noise = drawn([{"kind": kind, "size": 4}], (100, 100))
        assert noise.shape == (100, 100, 4)
        assert np.isfinite(noise).all()
        assert noise.mean() == pytest.approx(mean, abs=0.03), kind
        assert noise.std() == pytest.approx(deviation, abs=0.03), kind


def test_parts_lie_side_by_side_and_differ() -> None:
    noise = drawn([{"kind": "normal", "size": 2}] * 2, (50,))
    assert noise.shape == (50, 4)
    assert abs(np.corrcoef(noise[:, 0], noise[:, 2])[0, 1]) < 0.5


def test_epsilon_is_the_share_of_random_actions() -> None:
    part = {"kind": "epsilon_greedy", "size": 4, "epsilon": 0.3}
    noise = drawn([part | {"ranked": False}], (100, 100))
    forced = noise > 0
    assert forced.any(axis=-1).mean() == pytest.approx(0.3, abs=0.02)
    assert forced.sum(axis=-1).max() == 1
    # Each action as often as any other.
    assert forced.mean(axis=(0, 1)) == pytest.approx([0.075] * 4, abs=0.01)
    # All of them are ranked where some may be forbidden.
    forced = drawn([part | {"ranked": True}], (100, 100)) > 0
    assert set(forced.sum(axis=-1).ravel().tolist()) == {0, 4}


def test_correlated_noise_is_left_to_numpy() -> None:
    assert not can_draw([{"kind": "PinkNoise", "size": 1}])


def actions_of(kind: Any, **given: Any) -> tuple[np.ndarray, np.ndarray]:
    """Returns actions of 400 steps, and the greedy ones of the same agent."""
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
    assert isinstance(agent.rounds, GraphRound)
    steps = data.buffer.sample(2000)
    greedy = agent.act(steps["observation"], deterministic=True)
    return steps["action"], greedy


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "expected", "tolerance"),
    [
        # Half of the random actions of two are the greedy ones.
        (0.6, 0.3, 0.1),
        # It falls within a call.
        (keras.optimizers.schedules.PolynomialDecay(1.0, 400, 0.0), 0.25, 0.1),
    ],
    ids=["constant", "schedule"],
)
def test_rounds_explore_as_epsilon_says(epsilon, expected, tolerance):
    taken, greedy = actions_of(rl.DQN, epsilon=epsilon)
    assert (taken != greedy).mean() == pytest.approx(expected, abs=tolerance)


class AlwaysRight(rl.DQN):
    """Draws noise of its own."""

    def draw_noise(self, generator, shape, state=None):
        noise = np.zeros((*shape, 2), np.float32)
        noise[..., 1] = 1e30
        return noise, state


@pytest.mark.slow
def test_rounds_draw_the_noise_of_a_subclass():
    taken, _ = actions_of(AlwaysRight)
    assert set(taken.tolist()) == {1}
