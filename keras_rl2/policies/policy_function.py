"""The policy outside of training: traced once, then called for actions."""

import contextlib
import functools
import itertools
import re
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import TypeAlias
from typing import cast

import keras
import tensorflow as tf

from keras_rl2.basics.shapes import Tensor
from keras_rl2.distributions import Distribution
from keras_rl2.policies.agent_protocols import ActingPolicy
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import named_leaves
from keras_rl2.spaces.trees import with_leaves

PolicyFunction: TypeAlias = (
    "tf.types.experimental.PolymorphicFunction[..., list[tf.Tensor]]"
)
"""A policy as a `tf.function`."""

_NO_SCOPE = contextlib.nullcontext()


def policy_function(
    policy: ActingPolicy,
    deterministic: bool = True,
    num_envs: int | None = None,
    variables: Sequence[keras.Variable] = (),
    decide: Callable[..., list[Tensor]] | None = None,
) -> PolicyFunction:
    """Returns a policy as a `tf.function`, as actors and files run it.

    Args:
        policy: `ActingPolicy`.
        deterministic: bool. Whether it returns the most probable action.
            Defaults to `True`.
        num_envs: int or None. Observations of each call, B; None for any
            number. Defaults to `None`.
        variables: Sequence of `keras.Variable`. Variables to be passed as
            values with each call, after the other arguments. Defaults to `()`.
        decide: Callable or None. Chooses actions; None for `actions`. Defaults
            to `None`.

    Returns:
        `tf.function` from raw observations `[B, ...]` (one argument for each
        array, in the order of `trees.leaves`), and unless `deterministic`
        `[B, n]` of its `noise`, to a list: the policy's own
        actions and, where they differ, those for the environment. Recurrent
        ones also take `begins` `[B]` and the state, and return the next one.

    Example:

    >>> import numpy as np
    >>> import keras_rl2 as rl
    >>> agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)
    >>> function = policy_function(agent.policy, deterministic=True)
    >>> [action] = function(np.zeros((3, 4), "float32"))
    >>> action.shape
    TensorShape([3])
    """
    observation_specs = input_specs(policy.observation_spec, num_envs)
    noise = []
    if not deterministic:
        shape = (num_envs, policy.noise.size)
        noise.append(tf.TensorSpec(shape, "float32", "noise"))
    memory = []
    for index, each in enumerate(policy.initial_state(1)):
        shape = (num_envs, *each.shape[1:])
        memory.append(tf.TensorSpec(shape, each.dtype, f"state_{index}"))
    if memory:
        memory.insert(0, tf.TensorSpec((num_envs,), "float32", "begins"))
    weights = []
    for index, variable in enumerate(variables):
        name = f"weight_{index}"
        weights.append(tf.TensorSpec(variable.shape, variable.dtype, name))
    parts = [len(observation_specs), len(noise), len(memory), len(weights)]

    def decided(*tensors: Any) -> list[Tensor]:
        rest = iter(tensors)
        leaves, drawn, state, values = (
            [*itertools.islice(rest, count)] for count in parts
        )
        mapping = list(zip(variables, values, strict=True))
        # A scope would capture the variables that a custom network assigns.
        with keras.StatelessScope(mapping) if mapping else _NO_SCOPE:
            return (decide or actions)(
                policy,
                with_leaves(policy.observation_spec, leaves),
                drawn[0] if drawn else None,
                state,
            )

    # Not the function itself: TensorFlow tells functions apart by their code,
    # and would warn of retracing where there are many agents.
    traced = tf.function(
        functools.partial(decided),
        input_signature=[*observation_specs, *noise, *memory, *weights],
        autograph=False,
    )
    return cast(PolicyFunction, traced)


def are_read(function: PolicyFunction, count: int) -> list[bool]:
    """Returns for each of the first inputs whether outputs depend on it."""
    graph = function.get_concrete_function().graph
    found = {each.op for each in graph.outputs}
    waiting = [*found]
    while waiting:
        last = waiting.pop()
        before = {each.op for each in last.inputs} | {*last.control_inputs}
        waiting += before - found
        found |= before
    return [each.op in found for each in graph.inputs[:count]]


def input_specs(
    observation: Tree[ArraySpec], num_envs: int | None = None
) -> list[tf.TensorSpec]:
    """Returns the spec of each array in a batch of observations.

    A single array is named `observation`, others `observation_<path>`, with a
    number where two would have the same name.
    """
    specs: dict[str, tf.TensorSpec] = {}
    for path, spec in named_leaves(observation):
        # ASCII only: LiteRT knows no other letters.
        plain = re.sub(r"\W", "_", path, flags=re.ASCII)
        name = f"observation_{plain}" if path else "observation"
        if name in specs:
            name = f"{name}_{len(specs)}"
        specs[name] = tf.TensorSpec((num_envs, *spec.shape), spec.dtype, name)
    return [*specs.values()]


def actions(
    policy: ActingPolicy,
    observation: Tree[Tensor],
    noise: Tensor | None = None,
    memory: Sequence[Tensor] = (),
) -> list[Tensor]:
    """Chooses actions, in the graph.

    Args:
        policy: `ActingPolicy`.
        observation: `[B, ...]`. Raw observations.
        noise: `[B, n]` float32, see `PolicyNoise`; None for the most probable
            actions. Defaults to `None`.
        memory: Sequence of `begins` `[B]` and each array of the state; empty
            if the policy is not recurrent. Defaults to `()`.

    Returns:
        list: the policy's own actions `[B, ...]`; then the environment's
        actions, if they differ, each of their arrays in the order of
        `trees.leaves`; and each array of the state after the step.

    Example:

    >>> import numpy as np
    >>> import keras_rl2 as rl
    >>> agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)
    >>> [action] = actions(agent.policy, np.zeros((3, 4), "float32"))
    >>> action.shape
    TensorShape([3])
    """
    state: Sequence[Tensor] = ()
    if memory:
        drawn, state = policy.policy_step(observation, memory[0], memory[1:])
        action = drawn.mode() if noise is None else drawn.sample(noise)
    elif noise is None:
        action = policy.greedy_action(observation)
    else:
        action = policy.sample_action(observation, noise)
    if not policy.head.changes_action:
        return [action, *state]
    return [action, *leaves(policy.head.to_environment(action)), *state]


def actions_and_log_prob(
    policy: ActingPolicy,
    observation: Tree[Tensor],
    noise: Tensor | None = None,
    memory: Sequence[Tensor] = (),
    *,
    clipped: bool = False,
) -> list[Tensor]:
    """Chooses actions; their log-probabilities `[B]` come before the state.

    With `clipped` they are those of the actions that the environment takes,
    which bounds may have clipped, instead of those of the drawn ones.
    """
    outputs = actions(policy, observation, noise, memory)
    drawn: Distribution
    if memory:
        drawn, _ = policy.policy_step(observation, memory[0], memory[1:])
    else:
        drawn = cast(Any, policy).distribution(observation)
    action, head = outputs[0], policy.head
    if clipped:
        action = head.from_environment(head.to_environment(action))
    count = len(outputs) - max(len(memory) - 1, 0)
    return [*outputs[:count], drawn.log_prob(action), *outputs[count:]]
