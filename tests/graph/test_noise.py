"""Noise that is drawn in the graph has the distribution of NumPy's."""

import numpy as np
import pytest
from keras import ops

from keras_rl2.graph.noise import can_draw
from keras_rl2.graph.noise import draw_noise
from keras_rl2.graph.noise import noise_inputs

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
def test_moments_of_each_kind(kind: str, mean: float, deviation: float) -> None:
    noise = drawn([{"kind": kind, "size": 4}], (100, 100))
    assert noise.shape == (100, 100, 4)
    assert np.isfinite(noise).all()
    assert noise.mean() == pytest.approx(mean, abs=0.03)
    assert noise.std() == pytest.approx(deviation, abs=0.03)


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


def test_random_actions_are_ranked_where_some_are_forbidden() -> None:
    part = {"kind": "epsilon_greedy", "size": 4, "epsilon": 0.3}
    noise = drawn([part | {"ranked": True}], (100, 100))
    forced = noise > 0
    assert set(forced.sum(axis=-1).ravel().tolist()) == {0, 4}


def test_a_spread_makes_some_environments_explore_more() -> None:
    part = {"kind": "epsilon_greedy", "size": 4, "epsilon": 0.3}
    noise = drawn([part | {"ranked": False, "spread": 7.0}], (500, 3))
    share = (noise > 0).any(axis=-1).mean(axis=0)
    assert share == pytest.approx([0.3, 0.3**4.5, 0.3**8], abs=0.05)


def test_correlated_noise_is_left_to_numpy() -> None:
    assert not can_draw([{"kind": "PinkNoise", "size": 1}])
