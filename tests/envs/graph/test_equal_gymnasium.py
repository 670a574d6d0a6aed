"""Environments within a graph equal those of Gymnasium that they stand for.

Gymnasium computes in float64. Where motion is unstable, whole episodes of
float32 drift away from it: there, each step begins in the same state.
"""

import gymnasium
import numpy as np
import pytest

from keras_rl2.envs import GraphVectorEnv

pytestmark = pytest.mark.slow

SEEDS = range(4)
TOLERANCE = 1e-5
# Rounding does not grow; Gymnasium's own state of the latter is float32.
STABLE = ("MountainCar-v0", "MountainCarContinuous-v0")
# Without an action, none of these ends before its time limit.
UNENDED = ("Acrobot-v1", "Pendulum-v1", *STABLE)
IDS = ("CartPole-v1", *UNENDED)


def own_state(env_id, state):
    """Returns the state in the form in which Gymnasium's class keeps it."""
    if env_id in ("CartPole-v1", "MountainCar-v0"):
        return tuple(float(each) for each in state)
    kept = np.float32 if env_id == "MountainCarContinuous-v0" else np.float64
    return np.array(state, kept)


def acted(env_id, observation, random):
    """Returns an action that leads to many states, goals among them."""
    if env_id == "CartPole-v1":
        leaning = observation[2] + 0.5 * observation[3] > 0
        return int(leaning if random.random() < 0.6 else random.integers(2))
    if env_id == "Acrobot-v1":
        if random.random() < 0.2:
            return int(random.integers(3))
        return int(2 * (observation[5] > 0))
    if env_id == "MountainCar-v0":
        return int(2 * (observation[1] >= 0))
    if env_id == "MountainCarContinuous-v0":
        force = np.sign(observation[1]) * random.uniform(0.0, 1.5)
        return np.array([force], np.float32)
    return random.uniform(-3.0, 3.0, (1,)).astype(np.float32)


def idle(env_id, observation, random):
    """Returns an action with which no goal is reached."""
    del observation, random
    if env_id in ("Acrobot-v1", "MountainCar-v0"):
        return 1
    return np.zeros(1, np.float32)


def every(*env_ids):
    """Runs a test for each of these ids."""
    return pytest.mark.parametrize(
        "both", env_ids, indirect=True, scope="module"
    )


@pytest.fixture(scope="module")
def both(request):
    """Returns an id, our environment and Gymnasium's."""
    theirs = gymnasium.make(request.param, disable_env_checker=True)
    return request.param, GraphVectorEnv(request.param, 2), theirs


def play(env_id, ours, theirs, seed, policy=acted, together=False):
    """Plays an episode, and returns the largest difference and the length."""
    random = np.random.default_rng(seed)
    observation, _ = ours.reset(seed=seed)
    theirs.reset(seed=0)
    largest, steps, ended = 0.0, 0, False
    while not ended:
        if together or not steps:
            state = ours.episodes.state[0].numpy()
            theirs.unwrapped.state = own_state(env_id, state)
        action = policy(env_id, observation[0], random)
        observation, *outcome, info = ours.step(np.stack([action] * 2))
        reward, *ends = (each[0] for each in outcome)
        wanted, paid, *theirs_end, _ = theirs.step(action)
        assert ends == theirs_end, steps
        ended = any(ends)
        final = info["final_obs"] if ended else observation
        largest = max(largest, np.abs(final[0] - wanted).max())
        largest = max(largest, abs(reward - paid))
        steps += 1
    return largest, steps


@every(*IDS)
def test_spaces_and_time_limits_are_the_same(both):
    _, ours, theirs = both
    assert ours.single_observation_space == theirs.observation_space
    assert ours.single_action_space == theirs.action_space
    assert ours.graph_env.max_episode_steps == theirs.spec.max_episode_steps


@pytest.mark.parametrize("seed", SEEDS)
@every(*IDS)
def test_each_step_from_the_same_state_is_the_same(both, seed):
    difference, _ = play(*both, seed, together=True)
    assert difference < TOLERANCE


@pytest.mark.parametrize("seed", SEEDS)
@every(*STABLE)
def test_whole_stable_episodes_are_the_same(both, seed):
    difference, _ = play(*both, seed)
    assert difference < TOLERANCE


@every(*UNENDED)
def test_the_time_limit_is_the_same(both):
    theirs = both[-1]
    difference, steps = play(*both, 0, idle, together=True)
    assert steps == theirs.spec.max_episode_steps
    assert difference < TOLERANCE


def test_a_balanced_pole_is_left_at_the_time_limit():
    theirs = gymnasium.make("CartPole-v1", disable_env_checker=True)
    ours = GraphVectorEnv("CartPole-v1", 2)

    def balanced(env_id, observation, random):
        del env_id, random
        x, x_speed, angle, angle_speed = observation
        return int(angle + angle_speed + 0.05 * x + 0.1 * x_speed > 0)

    difference, steps = play(
        "CartPole-v1", ours, theirs, 0, balanced, together=True
    )
    assert steps == 500
    assert difference < TOLERANCE
