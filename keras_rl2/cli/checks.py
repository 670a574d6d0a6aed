"""The checks of `doctor`: pure functions of spaces and random rollouts."""

import operator
from typing import Any
from typing import NamedTuple

import gymnasium
import numpy as np
from gymnasium import Space
from gymnasium.spaces import Box
from gymnasium.spaces import Discrete
from gymnasium.spaces import MultiBinary
from gymnasium.spaces import MultiDiscrete

from keras_rl2.cli.random_rollout import RandomRollout
from keras_rl2.cli.random_rollout import random_action
from keras_rl2.envs.action_mask import where_mask_is
from keras_rl2.envs.vector_env import Observation
from keras_rl2.envs.vector_env import VectorEnvAdapter
from keras_rl2.presets import ALGORITHMS
from keras_rl2.spaces import supported as spaces
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.spaces.trees import named_leaves

# Networks begin with weights that expect inputs and targets of about 1.
_LARGE_OBSERVATION = 10.0
_LARGE_REWARD = 100.0
_SMALL_DEVIATION = 0.01
# Beyond the rewards of nearly all environments; a single bonus may be 100.
_FAR_OFF = 1e4
#: Name of the finding that advises to normalise observations.
SCALE = "observation scale"


class Finding(NamedTuple):
    """The result of one check.

    Attributes:
        name: str. The property that was checked.
        ok: bool. Whether the check passed.
        text: str. The observation, with advice if the check failed.
    """

    name: str
    ok: bool
    text: str


def check_spaces(observation: Space[Any], action: Space[Any]) -> Finding:
    """Lists the algorithms that support the spaces.

    Args:
        observation: `gymnasium.Space` of one environment.
        action: `gymnasium.Space` of one environment.

    Returns:
        `Finding`.

    Example:

    >>> check_spaces(Box(-1, 1, (3,)), Discrete(2)).text
    'Box([-1, 1], (3,), float32), Discrete(2): A2C, ... SAC; with a memory A2C,
    ... REINFORCE'
    """
    try:
        spaces.check_observation_space(observation)
        spaces.check_action_space(action)
    except ValueError as error:
        return Finding("spaces", False, " ".join(str(error).split()))
    kinds = {kind.__name__ for kind in type(action).mro()}
    able = [
        name
        for name, known in ALGORITHMS.items()
        if known.actions is None or kinds.intersection(known.actions)
    ]
    unbounded = isinstance(action, Box) and not action.is_bounded()
    bound = [n for n in able if unbounded and ALGORITHMS[n].actions is not None]
    names = [name for name in able if name not in bound]
    masked = spaces.is_masked(observation)
    if masked:
        # Imports Keras, which most environments do not need.
        from keras_rl2.policy_heads import policy_head

        try:
            size = policy_head(action).mask_size
            spaces.check_mask_space(observation, size)
        except ValueError as error:
            return Finding("spaces", False, " ".join(str(error).split()))
    seen = f"{spaces.describe(observation)}, {spaces.describe(action)}"
    remember = sorted(
        name for name in names if ALGORITHMS[name].learns_with_memory(kinds)
    )
    text = (
        f"{seen}: {', '.join(sorted(names))}; "
        f"with a memory {', '.join(remember)}"
    )
    if masked:
        text += "; with action masks"
    if bound:
        text += f" ({', '.join(bound[:-1])} and {bound[-1]} need finite bounds)"
    return Finding("spaces", True, text)


def check_masks(env: gymnasium.Env[Any, Any], seed: int) -> list[Finding]:
    """Points to an action mask that agents do not see.

    Args:
        env: `gymnasium.Env`. Is reset.
        seed: int. Seeds it.

    Returns:
        list of `Finding`, empty if there is nothing to report.

    Example:

    >>> (finding,) = check_masks(gymnasium.make("Taxi"), seed=0)
    >>> finding.text
    'info has an action mask: `wrappers=[keras_rl2.envs.ActionMask]` puts it
    into the observation, and agents act by it'
    """
    _, info = env.reset(seed=seed)
    where = where_mask_is(env, info)
    if where is None or spaces.is_masked(env.observation_space):
        return []
    source = "info has" if where == "info" else f"`{where}()` gives"
    return [
        Finding(
            "action mask",
            True,
            f"{source} an action mask: `wrappers=[keras_rl2.envs.ActionMask]` "
            "puts it into the observation, and agents act by it",
        )
    ]


def check_observations(
    rollout: RandomRollout, space: Space[Any]
) -> list[Finding]:
    """Checks the range of observations.

    Args:
        rollout: `RandomRollout`.
        space: `gymnasium.Space` of one observation.

    Returns:
        list of `Finding`.
    """
    findings = []
    for (path, leaf), values in zip(
        named_leaves(spaces.space_tree(space)),
        leaves(rollout.observation),
        strict=True,
    ):
        where = f"{path}: " if path else ""
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            text = "NaN or infinity was observed: mend the environment"
            return [Finding("observations", False, where + text)]
        if path != spaces.ACTION_MASK:
            found = _scale_of(leaf, values)
            findings.append(found._replace(text=where + found.text))
    return [_inside(rollout, space), *findings]


def _scale_of(space: Space[Any], values: np.ndarray) -> Finding:
    """Looks at the range of one array of the observations."""
    states = None
    if isinstance(space, Discrete):
        states = int(space.n)
    if isinstance(space, MultiDiscrete):
        states = int(space.nvec.sum())
    if states is not None:
        text = f"{states} states, which networks see as one-hot vectors"
        return Finding(SCALE, True, text)
    if isinstance(space, MultiBinary):
        return Finding(SCALE, True, "switches, zeros and ones")
    return _far_off(SCALE, values) or _scale(
        values.astype(np.float64), values.dtype
    )


def _inside(rollout: RandomRollout, space: Space[Any]) -> Finding:
    """Returns whether observations were members of their space."""
    if not rollout.outside:
        text = "all were members of their space"
        return Finding("observations", True, text)
    text = (
        f"{rollout.outside} of {len(rollout.reward) + 1} were no members of "
        "the observation space: mend its shape, dtype, low or high"
    )
    for (path, leaf), array in zip(
        named_leaves(spaces.space_tree(space)),
        leaves(rollout.stranger),
        strict=True,
    ):
        if not leaf.contains(array):
            where = f"{path}, " if path else ""
            text += f" ({where}{array.dtype} of shape {array.shape}, in {leaf})"
    return Finding("observations", False, text)


def _far_off(name: str, values: np.ndarray) -> Finding | None:
    """Looks for values `[N, ...]` of another size than nearly all others."""
    columns = values.reshape(len(values), -1).astype(np.float64)
    low, middle, high = np.quantile(columns, [0.01, 0.5, 0.99], axis=0)
    # A constant has no scale to compare with.
    reach = np.where(high > low, _FAR_OFF * (high - low), np.inf)
    found = np.argwhere(np.abs(columns - middle) > reach)
    if not len(found):
        return None
    step, place = found[0]
    number = f" (number {place})" if columns.shape[1] > 1 else ""
    return Finding(
        name,
        False,
        f"{len(found)} far off, first {columns[step, place]:.3g} at step "
        f"{step}{number}, where 98% lie from {low[place]:.3g} to "
        f"{high[place]:.3g}: mend or clip it in the environment",
    )


def _scale(values: np.ndarray, dtype: np.dtype[Any]) -> Finding:
    """Looks at mean and deviation of observations `[N + 1, ...]`."""
    largest = float(np.abs(values).max())
    mean = float(np.abs(values.mean(axis=0)).max())
    deviation = values.std(axis=0)
    seen = (
        f"up to {largest:.3g}, |mean| up to {mean:.3g}, deviation "
        f"{deviation.min():.3g} to {deviation.max():.3g}"
    )
    if dtype == np.uint8:
        return Finding(SCALE, True, f"images or bytes, {seen}")
    # A constant is neither large nor small.
    smallest = deviation[deviation > 0.0].min(initial=np.inf)
    if largest > _LARGE_OBSERVATION:
        advice = f"observations reach {largest:.0e}: "
    elif smallest < _SMALL_DEVIATION:
        advice = f"some observations deviate by {smallest:.0e} only: "
    else:
        return Finding(SCALE, True, seen)
    return Finding(
        SCALE, False, f"{advice}use normalize_observations=True ({seen})"
    )


def check_rewards(rollout: RandomRollout) -> Finding:
    """Checks the range of rewards.

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
    far_off = _far_off(name, reward)
    if far_off is not None:
        return far_off
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
        second: `RandomRollout`. From another environment of the same id.

    Returns:
        `Finding`.
    """
    name = "determinism"
    found = []
    for key in ("observation", "reward", "terminated", "truncated"):
        pairs = zip(
            named_leaves(getattr(first, key)),
            leaves(getattr(second, key)),
            strict=True,
        )
        for (path, a), b in pairs:
            if a.shape == b.shape and _equal(a, b):
                continue
            place = f"{key} {path}" if path else key
            found.append((_first_difference(a, b), place))
    if found:
        # The first difference is nearest to the cause.
        step, place = min(found, key=operator.itemgetter(0))
        text = (
            f"{place} differs at step {step} of two runs with one seed: "
            "draw from self.np_random only, after super().reset(seed=seed)"
        )
        return Finding(name, False, text)
    text = f"two runs of {len(first.reward)} steps with one seed are equal"
    return Finding(name, True, text)


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether arrays are equal; NaN is a matter of floats."""
    return np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind == "f")


def _first_difference(a: np.ndarray, b: np.ndarray) -> int:
    """Returns the index of the first row that differs."""
    for index, (one, other) in enumerate(zip(a, b, strict=False)):
        if not _equal(one, other):
            return index
    return min(len(a), len(b))


def check_ends(rollout: RandomRollout, max_steps: int | None) -> Finding:
    """Checks the ends of episodes.

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
        env: `VectorEnvAdapter`. The environments, adapted as for training.
        steps: int. Steps of each environment.
        seed: int. Seeds environments and actions.

    Returns:
        `Finding`.
    """
    name = "autoreset"
    env.action_space.seed(seed)
    ends = 0
    try:
        observation = env.reset(seed=seed)
        for _ in range(steps):
            action = _random_actions(env, observation)
            observation, _, terminated, truncated, _ = env.step(action)
            ends += int(np.count_nonzero(terminated | truncated))
    except ValueError as error:
        reason = " ".join(str(error).split())
        text = (
            f"{env.num_envs} environments cannot be stepped together: {reason}"
        )
        return Finding(name, False, text)
    text = (
        f"{env.num_envs} environments stepped together, {ends} episodes ended "
        "and others began"
    )
    return Finding(name, True, text)


def _random_actions(env: VectorEnvAdapter, observation: Observation) -> Any:
    """Draws an allowed action for each environment."""
    seen = spaces.space_tree(env.observation_space)
    actions = []
    for index in range(env.num_envs):
        own = map_leaves(operator.itemgetter(index), observation)
        if env.pending_reset[index] and spaces.is_masked(env.observation_space):
            # Its last observation may allow no action, and none is taken.
            own = map_leaves(lambda _, array: np.ones_like(array), seen, own)
        actions.append(
            random_action(env.action_space, env.observation_space, own)
        )
    return map_leaves(lambda *rows: np.stack(rows), *actions)
