"""`keras-rl2 doctor`: checks of an environment by Gymnasium and by us."""

import argparse
import re
import warnings
from collections.abc import Iterator
from typing import Any
from typing import NamedTuple

import numpy as np
from gymnasium.spaces import Box
from gymnasium.utils.env_checker import check_env

from keras_rl2.cli.main import in_one_line
from keras_rl2.envs import make_env
from keras_rl2.envs.action_mask import where_mask_is
from keras_rl2.envs.adapt import as_vector_env
from keras_rl2.envs.games import is_game
from keras_rl2.envs.vector_env import VectorEnvAdapter
from keras_rl2.offline.recorder import play
from keras_rl2.offline.recorder import random_policy
from keras_rl2.presets import ALGORITHMS
from keras_rl2.spaces import supported as spaces
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import named_leaves

_NUM_ENVS = 2
_MOST_NUMBERS = 16
# Networks begin with weights that expect inputs and targets of about 1.
_LARGE_OBSERVATION = 10.0
_LARGE_REWARD = 100.0
_SMALL_DEVIATION = 0.01


class Finding(NamedTuple):
    """The result of one check: whether it passed, and its observations."""

    name: str
    ok: bool
    text: str


def run(arguments: argparse.Namespace) -> int:
    """Prints one line for each finding; returns 1 if one is to be mended."""
    has_fault = False
    for name, ok, text in of_environment(arguments):
        has_fault |= not ok
        print(f"{'ok' if ok else 'todo':5} {name:18} {text}")
    return int(has_fault)


def of_environment(arguments: argparse.Namespace) -> Iterator[Finding]:
    """Yields the results of checks by random steps in an environment."""
    env_id, seed = arguments.environment, arguments.seed
    env_kwargs = dict(arguments.env_kwargs)
    limit = None
    if not is_game(env_id):
        with make_env(env_id, env_kwargs=env_kwargs) as env:
            yield from _of_gymnasium(env)
            yield from _masks(env, seed)
            limit = getattr(env.spec, "max_episode_steps", None)
    try:
        together = as_vector_env(env_id, _NUM_ENVS, env_kwargs=env_kwargs)
        yield from _spaces(together)
        act = random_policy(together, np.random.default_rng(seed))
        played = play(together, arguments.steps, seed, act)
        together.close()
    except ValueError as error:
        yield Finding("environment", False, in_one_line(error))
        return
    yield from _observations(together.observation_space, played["observations"])
    yield _rewards(played["rewards"][played["valid"]])
    ends = played["terminations"], played["truncations"]
    yield _ends(played["valid"], *ends, limit)


def _of_gymnasium(env: Any) -> Iterator[Finding]:
    """Yields the findings of Gymnasium's own checker."""
    if spaces.is_masked(env.observation_space) or not env.spec.entry_point:
        # Its random actions may be forbidden ones, or there is a vector only.
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            check_env(env.spec.make().unwrapped, skip_render_check=True)
            yield Finding("check_env", True, "Gymnasium's checks have passed")
        # It asserts, raises errors of its own, and those of environments.
        except Exception as error:
            text = f"{type(error).__name__}: {in_one_line(error)}"
            yield Finding("check_env", False, text)
    for text in dict.fromkeys(str(each.message) for each in caught):
        plain = re.sub("\x1b\\[[0-9;]*m", "", text).removeprefix("WARN: ")
        yield Finding("check_env", True, " ".join(plain.split()))


def _masks(env: Any, seed: int) -> Iterator[Finding]:
    """Points to an action mask that agents do not see."""
    where = where_mask_is(env, env.reset(seed=seed)[1])
    if where is not None and not spaces.is_masked(env.observation_space):
        text = f"in `{where}`, where agents do not see it: "
        text += "pass wrappers=[keras_rl2.envs.ActionMask]"
        yield Finding("action mask", False, text)


def _spaces(env: VectorEnvAdapter) -> Iterator[Finding]:
    """Yields the algorithms that act in the space, and bounds of actions."""
    space = env.action_space
    kinds = {kind.__name__ for kind in type(space).mro()}
    unbounded = isinstance(space, Box) and not space.is_bounded()
    names = [
        name
        for name, known in sorted(ALGORITHMS.items())
        if known.actions is None
        or (kinds.intersection(known.actions) and not unbounded)
    ]
    memory = [n for n in names if ALGORITHMS[n].learns_with_memory(kinds)]
    text = (
        f"{spaces.describe(env.observation_space)}, {spaces.describe(space)}: "
        f"{', '.join(names)}; with a memory {', '.join(memory)}"
    )
    if unbounded:
        text += "; others need finite bounds"
    yield Finding("spaces", True, text)
    for path, leaf in named_leaves(spaces.space_tree(space)):
        if isinstance(leaf, Box):
            text = f"bounds {_pairs(leaf.low, leaf.high)}"
            yield Finding(f"action {path}".strip(), True, text)


def _pairs(low: np.ndarray, high: np.ndarray) -> str:
    """Returns the lowest and highest value of each dimension, if few."""
    if low.size > _MOST_NUMBERS:
        return f"[{low.min():.3g}, {high.max():.3g}] of {low.size} numbers"
    pairs = zip(low.ravel(), high.ravel(), strict=True)
    return " ".join(f"[{least:.3g}, {most:.3g}]" for least, most in pairs)


def _observations(space: Any, observation: Any) -> Iterator[Finding]:
    """Yields the bounds, range and scale of each array of observations."""
    named = named_leaves(spaces.space_tree(space))
    for (path, leaf), array in zip(named, leaves(observation), strict=True):
        if not isinstance(leaf, Box) or path == spaces.ACTION_MASK:
            continue
        values = array.reshape(-1, *leaf.shape).astype(np.float64)
        low, high = values.min(axis=0), values.max(axis=0)
        spread = values.std(axis=0)
        advice = ""
        if not np.isfinite(values).all():
            advice = "NaN or infinity: mend the environment: "
        elif (low < leaf.low).any() or (high > leaf.high).any():
            advice = "outside of its bounds: mend low or high: "
        elif array.dtype != np.uint8 and (
            np.abs(values).max() > _LARGE_OBSERVATION
            or ((spread > 0.0) & (spread < _SMALL_DEVIATION)).any()
        ):
            advice = "far from size 1: use normalize_observations=True: "
        text = f"bounds {_pairs(leaf.low, leaf.high)}, seen {_pairs(low, high)}"
        if spaces.is_image(leaf) and spaces.may_be_either(leaf.shape):
            text += ", channels last, or pass data_format='channels_first'"
        yield Finding(f"observation {path}".strip(), not advice, advice + text)


def _rewards(reward: np.ndarray) -> Finding:
    """Looks at the range of rewards."""
    advice = ""
    if not np.isfinite(reward).all():
        advice = "NaN or infinity: mend the environment: "
    elif not reward.any():
        advice = "none: reward progress too, or exploration has no direction: "
    elif np.abs(reward).max() > _LARGE_REWARD:
        advice = "large: use scale_rewards=True of RolloutDataset: "
    text = f"{reward.min():.3g} to {reward.max():.3g}, mean {reward.mean():.3g}"
    return Finding("rewards", not advice, advice + text)


def _ends(
    is_step: np.ndarray,
    terminated: np.ndarray,
    truncated: np.ndarray,
    max_steps: int | None,
) -> Finding:
    """Looks at the lengths of episodes."""
    ended = is_step & (terminated | truncated)
    steps = np.cumsum(is_step, axis=0)
    columns = zip(steps.T, ended.T, strict=True)
    lengths = np.concatenate([np.diff(s[e], prepend=0) for s, e in columns])
    if not len(lengths):
        text = f"no episode in {is_step.sum()} steps, time limit {max_steps}"
        if max_steps is None:
            text += ": register it with max_episode_steps"
        return Finding("ends", max_steps is not None, text)
    least, most = lengths.min(), lengths.max()
    text = f"{len(lengths)} episodes of {least} to {most} steps, "
    text += f"{terminated.sum()} terminated, {truncated.sum()} truncated"
    alike = len(lengths) > 2 and least == most > 1 and not truncated.any()
    if alike:
        text += ": is that a time limit? Return truncated=True then"
    return Finding("ends", not alike, text)
