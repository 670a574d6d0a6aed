"""Quantization of exported policies: weights in 16 bits, or all in 8."""

from collections.abc import Iterator
from typing import Any
from typing import TypeAlias

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from keras_rl2.collecting.litert import for_environment
from keras_rl2.envs.adapt import as_vector_env
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.export.formats import FLOAT16
from keras_rl2.policies.policy import ModelPolicy
from keras_rl2.spaces.batches import as_batch
from keras_rl2.spaces.supported import ACTION_MASK
from keras_rl2.spaces.supported import action_spec
from keras_rl2.spaces.supported import check_same
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves

#: Arrays `[1, ...]` of one step, in the order of a policy's inputs.
Row: TypeAlias = list[npt.NDArray[Any]]


#: Most steps that are used.
MOST_STEPS = 2048


#: Environments that are made from an id.
NUM_ENVS = 16


def refuse_eight_bits(agent: ModelPolicy, deterministic: bool) -> None:
    """Raises an error for a policy that 8 bits cannot represent.

    The values of invalid actions, and the values that noise assigns to random
    actions, are far from all other numbers, so that the 256 steps between them
    would leave none for the others.

    Args:
        agent: `ModelPolicy`. The agent with the policy.
        deterministic: bool. Whether there is no noise.

    Raises:
        ValueError: If the policy has action masks or epsilon-greedy
            exploration.
    """
    found = None
    if agent.is_masked:
        found = "a policy with action masks"
    elif not deterministic and any(
        part["kind"] == "epsilon_greedy" for part in agent.noise_parts
    ):
        found = "an epsilon-greedy policy with `deterministic=False`"
    if found is not None:
        raise ValueError(
            'Expected a policy that fits into the 256 steps of `"int8"`; '
            'export with `quantize="float16"`. '
            f"Received: {found}, of {type(agent).__name__}"
        )


def converter_arguments(
    agent: ModelPolicy,
    quantize: str | None,
    representative: str | GivenEnv | Tree[npt.ArrayLike] | None,
    inputs: list[keras.InputSpec],
    deterministic: bool,
) -> dict[str, Any]:
    """Returns the attributes of `tf.lite.TFLiteConverter` for quantization.

    Args:
        agent: `ModelPolicy`. The agent with the policy.
        quantize: str or None. One of `formats.QUANTIZATIONS`.
        representative: See `Agent.export`.
        inputs: list of `keras.InputSpec`. The inputs of the policy.
        deterministic: bool. Whether there is no noise.

    Returns:
        dict: arguments of `keras.Model.export`.

    Raises:
        ValueError: If observations do not fit the agent.
    """
    if quantize is None:
        return {}
    arguments: dict[str, Any] = {"optimizations": [tf.lite.Optimize.DEFAULT]}
    if quantize == FLOAT16:
        arguments["target_spec"] = {"supported_types": [tf.float16]}
        return arguments
    rows = representative_rows(agent, representative, deterministic)
    names = [str(each.name) for each in inputs]

    def samples() -> Iterator[dict[str, npt.NDArray[Any]]]:
        for row in rows:
            yield _named(names, row)

    arguments["representative_dataset"] = samples
    return arguments


def _named(names: list[str], row: Row) -> dict[str, npt.NDArray[Any]]:
    """Returns the arrays of one step by the names of the policy's inputs."""
    return dict(zip(names, map(np.ascontiguousarray, row), strict=True))


def representative_rows(
    agent: ModelPolicy,
    representative: Any,
    deterministic: bool,
) -> list[Row]:
    """Returns the inputs of an agent's policy in steps of episodes.

    Args:
        agent: `ModelPolicy`. The acting agent.
        representative: An environment or its id, to be played in; or
            observations `[N, ...]`, of which `MOST_STEPS` evenly spaced ones
            are used, or for a recurrent agent the first ones as one episode.
        deterministic: bool. Whether it acts without noise.

    Returns:
        list: the inputs of each step.

    Raises:
        ValueError: If it is neither, or does not fit the agent's spaces.
    """
    generator = np.random.default_rng(0)
    if isinstance(representative, str) or hasattr(representative, "step"):
        return _played(agent, representative, deterministic, generator)
    batch, single = as_batch(agent.observation_spec, representative)
    if single:
        raise ValueError(
            "Expected some hundreds of representative observations [N, ...], "
            "or an environment to play in. "
            "Received: one observation"
        )
    count = len(leaves(batch)[0])
    if agent.initial_state(1):
        chosen = np.arange(min(count, MOST_STEPS))
    else:
        size = min(count, MOST_STEPS)
        chosen = np.linspace(0, count - 1, size).astype(np.int64)
    function = agent.policy_function(deterministic)
    state = [*agent.initial_state(1)]
    rows = []
    for index in chosen:
        row = [array[index : index + 1] for array in leaves(batch)]
        if not deterministic:
            row.append(agent.draw_noise(generator, (1,))[0])
        rows.append([*row, *state])
        if state:
            begins = np.zeros(1, np.float32)
            outputs = [each.numpy() for each in function(*row, begins, *state)]
            state = outputs[-len(state) :]
    return rows


def _played(
    agent: ModelPolicy,
    env: Any,
    deterministic: bool,
    generator: np.random.Generator,
) -> list[Row]:
    """Plays in environments, and returns the inputs of the policy.

    A trained policy sees little besides its own path, and its ranges would not
    cover the way back to it: so the share of random actions rises from 0 in
    the first environment to 1 in the last.
    """
    env = as_vector_env(env, NUM_ENVS if isinstance(env, str) else 1)
    check_same(
        type(agent).__name__,
        observation=(agent.observation_space, env.observation_space),
        action=(agent.action_space, env.action_space),
    )
    function = agent.policy_function(deterministic)
    spec = action_spec(agent.action_space)
    count = env.num_envs
    random_share = np.linspace(0.0, 1.0, count) if count > 1 else 0.25
    observation = env.reset(seed=0)
    state = [*agent.initial_state(count)]
    begins = np.ones(count, np.float32)
    rows: list[Row] = []
    while len(rows) < MOST_STEPS:
        given = [*map(np.array, leaves(observation))]
        if not deterministic:
            given.append(agent.draw_noise(generator, (count,))[0])
        # An episode begins with zeros.
        state = [each * _over(1.0 - begins, each) for each in state]
        for index in range(count):
            row = [*given, *state]
            rows.append([array[index : index + 1] for array in row])
        memory = [np.zeros(count, np.float32), *state] if state else []
        outputs = [each.numpy() for each in function(*given, *memory)]
        state = outputs[len(outputs) - len(state) :]
        random = generator.random(count) < random_share
        own = _mixed(agent, observation, outputs[0], random, generator)
        resetting = env.pending_reset
        action = map_leaves(
            lambda one, array: np.asarray(array).astype(one.dtype, copy=False),
            spec,
            for_environment(spec, own),
        )
        observation, _, terminated, truncated, _ = env.step(action)
        over = resetting if env.masks_reset_rows else terminated | truncated
        begins = over.astype(np.float32)
    return rows


def _mixed(
    agent: ModelPolicy,
    observation: Any,
    own: npt.NDArray[Any],
    random: npt.NDArray[np.bool_],
    generator: np.random.Generator,
) -> list[Any]:
    """Returns a policy's actions, some of them replaced by random ones."""
    head = agent.policy_head
    mask = None
    if agent.is_masked:
        mask = np.array(observation[ACTION_MASK])
        # After the end of an episode no action is valid, and none is used.
        mask[~mask.astype(np.bool_).any(axis=-1)] = 1
    drawn = head.random_action(generator, (len(own),), mask)
    own = np.where(_over(random, drawn), drawn, own).astype(own.dtype)
    if not head.changes_action:
        return [own]
    return [own, *leaves(head.to_environment(own))]


def _over(
    factor: npt.NDArray[Any], array: npt.NDArray[Any]
) -> npt.NDArray[Any]:
    """Returns `[B]` in the rank and dtype of `[B, ...]`."""
    shape = (-1, *[1] * (array.ndim - 1))
    return np.reshape(factor, shape).astype(
        np.bool_ if factor.dtype == np.bool_ else array.dtype
    )
