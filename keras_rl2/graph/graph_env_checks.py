"""Checks of an environment's functions, before anything depends on them."""

import functools
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import tensorflow as tf
from keras import ops

from keras_rl2.envs.graph import random_numbers
from keras_rl2.envs.graph.graph_env import GraphEnv
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.supported import action_spec
from keras_rl2.spaces.supported import check_action_space
from keras_rl2.spaces.supported import check_observation_space
from keras_rl2.spaces.supported import observation_spec
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.spaces.trees import named_leaves

_STEPS = 3


def check_graph_env(env: GraphEnv) -> None:
    """Raises if the functions of an environment break a promise.

    They are run for a few steps: observations must have the shapes of their
    space; states must keep their shapes and dtypes; numbers must be finite;
    and the same arguments must give the same results, which they do not where
    random numbers come from a global generator.

    Example:

    >>> from keras_rl2.envs.graph.classic_control import CartPole
    >>> check_graph_env(CartPole())
    """
    check_observation_space(env.observation_space)
    check_action_space(env.action_space)
    dtypes = action_dtypes(env.action_space)
    seed = ops.convert_to_tensor(np.array([0, 1], np.uint32))
    where = f"{type(env).__name__}.reset"
    state, observation = _twice(where, env.reset, seed)
    _check_results(where, env, state, observation)
    form = _form(state)
    where = f"{type(env).__name__}.step"
    for number in range(_STEPS):
        env.action_space.seed(number)
        action = map_leaves(
            lambda dtype, drawn: ops.convert_to_tensor(drawn, dtype),
            dtypes,
            env.action_space.sample(),
        )
        state, observation, reward, terminated, truncated = _twice(
            where,
            env.step,
            state,
            action,
            random_numbers.fold_in(seed, number),
        )
        _check_results(where, env, state, observation, reward)
        scalars = {
            "reward": reward,
            "terminated": terminated,
            "truncated": truncated,
        }
        for kind, each in scalars.items():
            if np.shape(each) != ():
                raise ValueError(
                    f"Expected a scalar {kind} from {where}. Received: an "
                    f"array of shape {np.shape(each)}"
                )
        if _form(state) != form:
            raise ValueError(
                f"Expected {where} to keep the shapes and dtypes of the "
                f"state, {form}. Received: {_form(state)}"
            )


def action_dtypes(space: gymnasium.Space[Any]) -> Any:
    """Returns the dtypes in which `GraphEnv.step` takes actions."""

    def dtype(spec: ArraySpec) -> str:
        kind = np.dtype(spec.dtype).kind
        return "int32" if kind in "iu" else str(spec.dtype)

    return map_leaves(dtype, action_spec(space))


def _twice(where: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a function twice, and checks that it returns the same."""
    first, second = function(*arguments), function(*arguments)
    equal = functools.partial(np.array_equal, equal_nan=True)
    same = map(equal, leaves(first), leaves(second))
    if _form(first) != _form(second) or not all(same):
        raise ValueError(
            f"Expected {where} to return the same for the same arguments, with "
            "random numbers from `seed` alone, e.g. by "
            "`keras_rl2.envs.graph.random_numbers.uniform(seed, shape)`. "
            "Received: other results in a second call"
        )
    return first


def _form(tree: Any) -> list[tuple[str, tuple[int, ...], str]]:
    """Returns path, shape and dtype of each tensor."""
    tensors = map_leaves(tf.convert_to_tensor, tree)
    return [
        (path, tuple(each.shape), each.dtype.name)
        for path, each in named_leaves(tensors)
    ]


def _check_results(
    where: str, env: GraphEnv, state: Any, observation: Any, reward: Any = 0.0
) -> None:
    """Checks an observation's form, and that all numbers are finite."""
    spec = observation_spec(env.observation_space)
    expected = [(path, each.shape) for path, each in named_leaves(spec)]
    received = [
        (path, tuple(np.shape(each)))
        for path, each in named_leaves(observation)
    ]
    if expected != received:
        raise ValueError(
            f"Expected the observation of {where} in the form of its space: "
            f"{expected}, paths with shapes. Received: {received}"
        )
    trees = {"state": state, "observation": observation, "reward": reward}
    for path, each in named_leaves(trees):
        if not np.isfinite(np.asarray(each, np.float64)).all():
            raise ValueError(
                f"Expected a finite {path} from {where}. "
                f"Received: {np.asarray(each)}"
            )
