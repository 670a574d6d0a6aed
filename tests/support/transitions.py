"""The true transitions of an environment, without its adapter."""

import numpy as np


def play(env, steps, policy, seed=0):
    """Steps an adapter and returns the transitions of each environment.

    Args:
        env: `VectorEnvAdapter`.
        steps: Number of calls of `step`.
        policy: Function of environment, episode and step, all counted from 0,
            so that rows that are only resets do not shift the actions.
        seed: Of the reset.

    Returns:
        For each environment a list of `(observation, action, reward,
        terminated, truncated, next_observation)`.
    """
    observation = np.array(env.reset(seed=seed))
    transitions = [[] for _ in range(env.num_envs)]
    episode = np.zeros(env.num_envs, int)
    step = np.zeros(env.num_envs, int)
    for _ in range(steps):
        pending = env.pending_reset
        action = np.stack(
            [policy(i, episode[i], step[i]) for i in range(env.num_envs)]
        )
        following, reward, terminated, truncated, final = env.step(action)
        check_step(env, following, reward, terminated, truncated, final)
        for i in range(env.num_envs):
            ended = terminated[i] or truncated[i]
            if pending[i]:
                assert (reward[i], ended) == (0.0, False)
                continue
            true_next = (
                final[i] if ended and final is not None else following[i]
            )
            transitions[i].append(
                (
                    observation[i],
                    action[i],
                    reward[i],
                    bool(terminated[i]),
                    bool(truncated[i]),
                    np.array(true_next),
                )
            )
            step[i] = 0 if ended else step[i] + 1
            episode[i] += ended
        observation = np.array(following)
    return transitions


def check_step(env, observation, reward, terminated, truncated, final):
    """Asserts the contract of a step of any adapter."""
    shape = (env.num_envs, *env.observation_spec.shape)
    assert observation.shape == shape
    assert observation.dtype == env.observation_spec.dtype
    assert reward.shape == terminated.shape == (env.num_envs,)
    assert truncated.shape == env.pending_reset.shape == (env.num_envs,)
    assert reward.dtype == np.float32
    assert terminated.dtype == truncated.dtype == np.bool_
    ended = terminated | truncated
    if env.masks_reset_rows:
        assert final is None
        np.testing.assert_array_equal(env.pending_reset, ended)
        return
    assert not env.pending_reset.any()
    assert (final is not None) == ended.any()
    if final is not None:
        assert final.shape == shape
        assert final.dtype == env.observation_spec.dtype
        assert np.isfinite(final).all()
        assert not np.shares_memory(final, observation)


def assert_same(actual, expected, least):
    """Asserts that two lists of transitions begin alike.

    Args:
        actual: Transitions of one environment.
        expected: Transitions of one environment.
        least: How many there have to be at the least.
    """
    count = min(len(actual), len(expected))
    assert count >= least
    for one, other in zip(actual[:count], expected[:count], strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)
