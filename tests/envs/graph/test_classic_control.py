"""Each environment equals Gymnasium's, step for step, to the time limit."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from keras import ops

import keras_rl2 as rl
from keras_rl2.envs.graph.graph_env import make_graph_env

SEEDS = 4
OTHERS = ("Acrobot-v1", "MountainCar-v0", "MountainCarContinuous-v0")
IDS = ("CartPole-v1", "Pendulum-v1", *OTHERS)


def placed(name: str, state: np.ndarray) -> gymnasium.Env[Any, Any]:
    """Returns Gymnasium's environment in a state of ours."""
    env = gymnasium.make(name)
    env.reset(seed=0)
    inner: Any = env.unwrapped
    inner.state = np.array(state, np.float64)
    return env


def actions_of(name: str, steps: int) -> np.ndarray:
    """Returns random actions, `[T, B, ...]`, some beyond their bounds."""
    env = gymnasium.make(name)
    generator = np.random.default_rng(0)
    if isinstance(env.action_space, gymnasium.spaces.Discrete):
        return generator.integers(env.action_space.n, size=(steps, SEEDS))
    scale = 1.5 * float(env.action_space.high[0])
    drawn = generator.uniform(-scale, scale, (steps, SEEDS, 1))
    return drawn.astype(np.float32)


@pytest.mark.parametrize(
    "name",
    [IDS[0], *(pytest.param(i, marks=pytest.mark.slow) for i in IDS[1:])],
)
def test_episodes_equal_gymnasiums(name: str) -> None:
    env = rl.envs.GraphVectorEnv(name, num_envs=SEEDS)
    limit = gymnasium.spec(name).max_episode_steps
    assert limit == env.graph_env.max_episode_steps
    assert (
        env.single_observation_space == gymnasium.make(name).observation_space
    )
    assert env.single_action_space == gymnasium.make(name).action_space
    env.reset(seed=7)
    # Near their unstable points, pendulums in float32 drift away from float64
    # (by 1e-3 in 200 steps): each of their steps begins in our very state.
    drifts = name in ("Acrobot-v1", "Pendulum-v1")
    states = env.episodes.state.numpy()
    others: list[Any] = [placed(name, state) for state in states]
    lengths = []
    for action in actions_of(name, limit + 5):
        states = env.episodes.state.numpy()
        _, reward, terminated, truncated, info = env.step(action)
        for index, other in enumerate(others):
            if other is None:
                continue
            if drifts:
                other.unwrapped.state = states[index].astype(np.float64)
            given = action[index]
            seen, paid, *ends, _ = other.step(given)
            assert ends == [terminated[index], truncated[index]]
            assert reward[index] == pytest.approx(paid, abs=1e-4)
            mine = env.observations()[index]
            if any(ends):
                mine = info["final_obs"][index]
                others[index] = None
                lengths.append(other.get_wrapper_attr("_elapsed_steps"))
            np.testing.assert_allclose(mine, seen, atol=1e-5, rtol=1e-5)
    assert len(lengths) == SEEDS
    assert (max(lengths) == limit) is (name != "CartPole-v1")


@pytest.mark.parametrize(
    ("name", "place", "force"),
    [
        ("MountainCar-v0", [0.44, 0.07], 2),
        ("MountainCarContinuous-v0", [0.44, 0.07], [1.0]),
        ("Acrobot-v1", [3.0, 0.1, 0.5, -0.2], 2),
    ],
)
def test_goals_end_episodes(name, place, force) -> None:
    env = make_graph_env(name)
    state = ops.convert_to_tensor(place)
    seed = ops.convert_to_tensor([0, 1], "uint32")
    action = ops.convert_to_tensor(force)
    other = placed(name, np.array(place))
    _, observation, reward, terminated, _ = env.step(state, action, seed)
    seen, paid, ended, _, _ = other.step(np.array(force))
    np.testing.assert_allclose(observation, seen, atol=1e-5)
    assert float(reward) == pytest.approx(paid)
    assert bool(terminated) is bool(ended) is True, name


def test_the_left_wall_stops_the_car() -> None:
    env = make_graph_env("MountainCar-v0")
    state = ops.convert_to_tensor([-1.19, -0.05])
    seed = ops.convert_to_tensor([0, 1], "uint32")
    state, *_ = env.step(state, ops.convert_to_tensor(0), seed)
    np.testing.assert_allclose(state, [-1.2, 0.0], atol=1e-6)
