"""Noise that is drawn in the graph has the distribution of NumPy's."""

from typing import Any

import keras
import numpy as np
import pytest
from keras import ops

import keras_rl2 as rl
from keras_rl2.envs.graph import random_numbers
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


@pytest.mark.parametrize(
    ("kind", "mean", "deviation"),
    [
        ("normal", 0.0, 1.0),
        ("logistic", 0.0, np.pi / np.sqrt(3.0)),
        ("gumbel", 0.5772, np.pi / np.sqrt(6.0)),
    ],
)
def test_noise_has_the_moments_of_its_kind(
    kind: str, mean: float, deviation: float
) -> None:
    noise = drawn([{"kind": kind, "size": 4}], (100, 100))
    assert noise.shape == (100, 100, 4)
    assert noise.mean() == pytest.approx(mean, abs=0.03)
    assert noise.std() == pytest.approx(deviation, abs=0.03)


@pytest.mark.parametrize("uniform", [0.0, 1.0 - 2.0**-24])
@pytest.mark.parametrize("kind", ["logistic", "gumbel"])
def test_noise_of_the_extreme_uniform_numbers_is_finite(
    kind: str, uniform: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        random_numbers, "uniform", lambda seed, shape: ops.full(shape, uniform)
    )
    noise = drawn([{"kind": kind, "size": 2}], (3,))
    assert np.isfinite(noise).all()


def test_parts_are_side_by_side_and_independent() -> None:
    noise = drawn([{"kind": "normal", "size": 2}] * 2, (50,))
    assert noise.shape == (50, 4)
    assert abs(np.corrcoef(noise[:, 0], noise[:, 2])[0, 1]) < 0.5


@pytest.mark.parametrize(
    ("hold", "draws"), [(2, [0, 0, 1, 1, 2]), (None, [0] * 5)]
)
def test_noise_is_held_in_the_graph_too(hold, draws):
    part = {"kind": "normal", "size": 3}
    fresh = drawn([part], (max(draws) + 1, 4))
    held = drawn([part | {"hold": hold}], (5, 4))
    np.testing.assert_array_equal(held, fresh[draws])


def test_epsilon_is_the_share_of_random_actions() -> None:
    part = {"kind": "epsilon_greedy", "size": 4, "epsilon": 0.3}
    noise = drawn([part | {"ranked": False}], (100, 100))
    forced = noise > 0
    assert forced.any(axis=-1).mean() == pytest.approx(0.3, abs=0.02)
    assert forced.sum(axis=-1).max() == 1
    # Each action as often as any other.
    assert forced.mean(axis=(0, 1)) == pytest.approx([0.075] * 4, abs=0.01)


def test_random_actions_among_forbidden_ones_are_ranked() -> None:
    """Each action has a rank, so that the first allowed one can be taken."""
    part = {"kind": "epsilon_greedy", "size": 4, "epsilon": 0.3}
    noise = drawn([part | {"ranked": True}], (100, 100)).reshape(-1, 4)
    assert {*(noise > 0).sum(axis=-1).tolist()} == {0, 4}
    explores = noise[noise[:, 0] > 0]
    assert len(explores) / len(noise) == pytest.approx(0.3, abs=0.02)
    assert (np.diff(np.sort(explores), axis=-1) > 0).all()
    # Each action is the first as often as any other.
    first = np.bincount(explores.argmax(axis=-1), minlength=4)
    assert first / len(explores) == pytest.approx([0.25] * 4, abs=0.04)


@pytest.mark.parametrize(
    ("exploration", "in_graph"),
    [("pink", False), ("ornstein_uhlenbeck", False), (None, True)],
)
def test_noise_correlated_over_time_is_left_to_numpy(
    exploration: str | None, in_graph: bool
) -> None:
    agent = rl.SAC.for_env("Pendulum-v1", hidden=(4,), exploration=exploration)
    assert can_draw(agent.noise.parts) is in_graph


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
def test_rounds_explore_with_probability_epsilon(epsilon, expected, tolerance):
    taken, greedy = actions_of(rl.DQN, epsilon=epsilon)
    assert (taken != greedy).mean() == pytest.approx(expected, abs=tolerance)


class Right(rl.exploration.PolicyNoise):
    """Noise of a user, by which the second of two actions is taken."""

    size = 2

    def draw(self, generator, shape, state=None):
        noise = np.zeros((*shape, 2), np.float32)
        noise[..., 1] = 1e30
        return noise, state


class AlwaysRight(rl.DQN):
    """Has noise of its own."""

    noise = Right()


@pytest.mark.slow
def test_rounds_draw_the_noise_of_a_subclass():
    taken, _ = actions_of(AlwaysRight)
    assert set(taken.tolist()) == {1}
