"""What `doctor` looks at: pure functions of what an environment did."""

from typing import Any
from typing import NamedTuple

import numpy as np
from gymnasium import Space
from gymnasium.spaces import Box
from gymnasium.spaces import Discrete

from keras_rl2 import spaces
from keras_rl2.cli.random_rollout import RandomRollout
from keras_rl2.envs.vector_env import VectorEnvAdapter

# Networks begin with weights that expect inputs and targets of about 1.
_LARGE_OBSERVATION = 10.0
_LARGE_REWARD = 100.0
_SMALL_DEVIATION = 0.01


class Finding(NamedTuple):
    """What one check has found.

    Attributes:
        name: str. What was looked at.
        ok: bool. Whether all is well.
        text: str. What was seen, and what to do where not all is well.
    """

    name: str
    ok: bool
    text: str


def check_spaces(observation: Space[Any], action: Space[Any]) -> Finding:
    """Says which algorithms can deal with the spaces.

    Args:
        observation: `gymnasium.Space` of one environment.
        action: `gymnasium.Space` of one environment.

    Returns:
        `Finding`.

    Example:

    >>> check_spaces(Box(-1, 1, (3,)), Discrete(2)).text
    'Box([-1, 1], (3,), float32), Discrete(2): A2C, DQN, PPO, REINFORCE, SAC'
    """
    try:
        spaces.check_observation_space(observation)
        spaces.check_action_space(action)
    except ValueError as error:
        return Finding("spaces", False, " ".join(str(error).split()))
    names = ["A2C", "PPO", "REINFORCE"]
    if isinstance(action, Discrete):
        names += ["DQN", "SAC"]
    unbounded = isinstance(action, Box) and not action.is_bounded()
    if isinstance(action, Box) and not unbounded:
        names += ["DDPG", "SAC", "TD3"]
    seen = f"{spaces.describe(observation)}, {spaces.describe(action)}"
    text = f"{seen}: {', '.join(sorted(names))}"
    if unbounded:
        text += " (DDPG, SAC and TD3 need actions with finite bounds)"
    return Finding("spaces", True, text)


def check_observations(
    rollout: RandomRollout, space: Space[Any]
) -> list[Finding]:
    """Looks at the range of what is observed.

    Args:
        rollout: `RandomRollout`.
        space: `gymnasium.Space` of one observation.

    Returns:
        list of `Finding`.
    """
    if isinstance(space, Discrete):
        text = f"{space.n} states, which networks see as one-hot vectors"
        return [_inside(rollout), Finding("observation scale", True, text)]
    values = rollout.observation.astype(np.float64)
    if not np.isfinite(values).all():
        text = "NaN or infinity was observed: mend the environment"
        return [Finding("observations", False, text)]
    return [_inside(rollout), _scale(values, rollout.observation.dtype)]


def _inside(rollout: RandomRollout) -> Finding:
    """Says whether observations were members of their space."""
    if not rollout.outside:
        text = "all were members of their space"
        return Finding("observations", True, text)
    text = (
        f"{rollout.outside} of {len(rollout.observation)} were no members of "
        "the observation space: mend its shape, dtype, low or high"
    )
    return Finding("observations", False, text)


def _scale(values: np.ndarray, dtype: np.dtype[Any]) -> Finding:
    """Looks at mean and deviation of observations `[N + 1, ...]`."""
    largest = float(np.abs(values).max())
    mean = float(np.abs(values.mean(axis=0)).max())
    deviation = values.std(axis=0)
    seen = (
        f"up to {largest:.3g}, |mean| up to {mean:.3g}, deviation "
        f"{deviation.min():.3g} to {deviation.max():.3g}"
    )
    name = "observation scale"
    if dtype == np.uint8:
        return Finding(name, True, f"images or bytes, {seen}")
    # What never changes can be neither large nor small.
    smallest = deviation[deviation > 0.0].min(initial=np.inf)
    if largest > _LARGE_OBSERVATION:
        advice = f"observations reach {largest:.0e}: "
    elif smallest < _SMALL_DEVIATION:
        advice = f"some observations deviate by {smallest:.0e} only: "
    else:
        return Finding(name, True, seen)
    return Finding(
        name, False, f"{advice}use normalize_observations=True ({seen})"
    )


def check_rewards(rollout: RandomRollout) -> Finding:
    """Looks at the range of rewards.

    Args:
        rollout: `RandomRollout`.

    Returns:
        `Finding`.
    """
    reward = rollout.reward
    name = "rewards"
    if not np.isfinite(reward).all():
        text = "NaN or infinity was received: mend the environment"
        return Finding(name, False, text)
    largest = float(np.abs(reward).max())
    seen = (
        f"{reward.min():.3g} to {reward.max():.3g}, mean {reward.mean():.3g}, "
        f"deviation {reward.std():.3g}"
    )
    if largest == 0.0:
        text = (
            f"none in {len(reward)} random steps: reward progress as well, or "
            "exploration has nothing to go by"
        )
        return Finding(name, False, text)
    if largest > _LARGE_REWARD:
        text = (
            f"rewards reach {largest:.0e}: use scale_rewards=True of "
            f"RolloutDataset, or divide them in the environment ({seen})"
        )
        return Finding(name, False, text)
    return Finding(name, True, seen)


def check_determinism(first: RandomRollout, second: RandomRollout) -> Finding:
    """Compares two runs with the same seed and the same actions.

    Args:
        first: `RandomRollout`.
        second: `RandomRollout`. Of another environment of the same id.

    Returns:
        `Finding`.
    """
    name = "determinism"
    for key in ("observation", "reward", "terminated", "truncated"):
        a, b = getattr(first, key), getattr(second, key)
        same = a.shape == b.shape and np.array_equal(a, b, equal_nan=True)
        if not same:
            step = _first_difference(a, b)
            text = (
                f"{key} differs at step {step} of two runs with one seed: "
                "draw from self.np_random only, after "
                "super().reset(seed=seed)"
            )
            return Finding(name, False, text)
    text = f"two runs of {len(first.reward)} steps with one seed are equal"
    return Finding(name, True, text)


def _first_difference(a: np.ndarray, b: np.ndarray) -> int:
    """Returns the index of the first row that differs."""
    for index, (one, other) in enumerate(zip(a, b, strict=False)):
        if not np.array_equal(one, other, equal_nan=True):
            return index
    return min(len(a), len(b))


def check_ends(rollout: RandomRollout, max_steps: int | None) -> Finding:
    """Looks at how episodes end.

    Args:
        rollout: `RandomRollout`.
        max_steps: int or None. The time limit of the environment, if any.

    Returns:
        `Finding`.
    """
    name = "ends"
    lengths = rollout.episode_lengths
    if not len(lengths):
        steps = len(rollout.reward)
        if max_steps is not None:
            text = f"no episode in {steps} steps, time limit {max_steps}"
            return Finding(name, True, text)
        text = (
            f"no episode ended in {steps} steps and there is no time limit: "
            "register it with max_episode_steps, or no return is ever known"
        )
        return Finding(name, False, text)
    alike = len(lengths) > 2 and lengths.min() == lengths.max() > 1
    if alike and not rollout.truncated.any():
        text = (
            f"all {len(lengths)} episodes terminated after {lengths[0]} steps: "
            "if that is a time limit, return truncated=True instead, or "
            "values are learned as if nothing came after it"
        )
        return Finding(name, False, text)
    text = (
        f"{len(lengths)} episodes of {lengths.min()} to {lengths.max()} steps, "
        f"{int(rollout.terminated.sum())} terminated, "
        f"{int(rollout.truncated.sum())} truncated"
    )
    return Finding(name, True, text)


def check_autoreset(env: VectorEnvAdapter, steps: int, seed: int) -> Finding:
    """Steps environments together past the ends of their episodes.

    Args:
        env: `VectorEnvAdapter`. As training sees it.
        steps: int. Steps of each environment.
        seed: int. Seeds environments and actions.

    Returns:
        `Finding`.
    """
    name = "autoreset"
    env.action_space.seed(seed)
    ends = 0
    try:
        env.reset(seed=seed)
        for _ in range(steps):
            action = [env.action_space.sample() for _ in range(env.num_envs)]
            _, _, terminated, truncated, _ = env.step(np.stack(action))
            ends += int(np.count_nonzero(terminated | truncated))
    except ValueError as error:
        said = " ".join(str(error).split())
        text = f"{env.num_envs} environments cannot be stepped together: {said}"
        return Finding(name, False, text)
    text = (
        f"{env.num_envs} environments stepped together, {ends} episodes ended "
        "and others began"
    )
    return Finding(name, True, text)
