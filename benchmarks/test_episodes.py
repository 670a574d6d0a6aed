"""Learning curves: which episodes make a point, and where it is."""

from types import SimpleNamespace

import keras_rl2 as rl
from benchmarks import episodes


def test_point_is_mean_of_episodes_that_ended_in_its_part():
    ended = [(30, 1.0), (50, 2.0), (51, 7.0), (1000, 9.0)]

    curve = episodes.curve_of(ended, 1000)

    assert curve == [[50, 1.5], [100, 7.0], [1000, 9.0]]


def test_last_part_has_what_a_last_round_adds():
    assert episodes.curve_of([(1060, 3.0)], 1000) == [[1000, 3.0]]


def test_steps_of_monitors_count_all_environments():
    found = {
        "get_episode_rewards": [[1.0, 2.0], [4.0]],
        "get_episode_lengths": [[10, 20], [15]],
    }
    env = SimpleNamespace(num_envs=2, env_method=found.get)

    assert episodes.of_monitors(env) == [(20, 1.0), (60, 2.0), (30, 4.0)]


def test_dataset_counts_more_than_the_last_hundred_episodes():
    data = rl.RolloutDataset("CartPole-v1", num_envs=4, horizon=700, seed=0)
    data.bind(rl.PPO.for_env(data.env, hidden=(8,), seed=0))

    episodes.count_all(data)
    data.refresh()

    found = list(episodes.of_dataset(data))
    assert len(found) > 100
    assert found[-1][0] <= 2800
