"""The policy of an agent as one function of arrays."""

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
from keras_rl2.policies.policy import Policy
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
    agent: Policy,
    deterministic: bool,
    num_envs: int | None = None,
    variables: Sequence[keras.Variable] = (),
    decide: Callable[..., list[Tensor]] | None = None,
) -> PolicyFunction:
    """Traces a policy, for acting outside of training.

    Args:
        agent: `Policy`. The agent with the policy.
        deterministic: bool. Whether there is no noise.
        num_envs: int or None. Number of observations per call, B; None for any
            number. Defaults to `None`.
        variables: Sequence of `keras.Variable`. Variables with values that are
            inputs of each call, named `weight_0` and so on. Defaults to `()`.
        decide: Callable from the agent, observations and optional noise to the
            function's results; None for `actions`. Defaults to `None`.

    Returns:
        `tf.function` of `observation` `[B, ...]` (for a tree, of each of its
        arrays in the order of `trees.leaves`), of `noise` `[B, *noise_shape]`
        unless `deterministic`, of `begins` `[B]` and the state if the policy
        is recurrent, and of the variables.

    Example:

    >>> import numpy as np
    >>> import keras_rl2 as rl
    >>> agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)
    >>> policy = policy_function(agent, deterministic=True)
    >>> [action] = policy(np.zeros((3, 4), "float32"))
    >>> action.shape
    TensorShape([3])
    """
    seen = input_specs(agent.observation_spec, num_envs)
    noise = []
    if not deterministic:
        shape = (num_envs, *agent.noise_shape)
        noise.append(tf.TensorSpec(shape, "float32", "noise"))
    memory = memory_specs(agent, num_envs)
    weights = [
        tf.TensorSpec(variable.shape, variable.dtype, f"weight_{index}")
        for index, variable in enumerate(variables)
    ]
    parts = [len(seen), len(noise), len(memory), len(weights)]

    def policy(*given: Any) -> list[Tensor]:
        rest = iter(given)
        leaves, drawn, state, values = (
            [*itertools.islice(rest, count)] for count in parts
        )
        mapping = list(zip(variables, values, strict=True))
        # A scope would capture the variables that a custom network assigns.
        with keras.StatelessScope(mapping) if mapping else _NO_SCOPE:
            return (decide or actions)(
                agent,
                with_leaves(agent.observation_spec, leaves),
                drawn[0] if drawn else None,
                state,
            )

    # Not the function itself: TensorFlow tells functions apart by their code,
    # and would warn of retracing where there are many agents.
    traced = tf.function(
        functools.partial(policy),
        input_signature=[*seen, *noise, *memory, *weights],
        autograph=False,
    )
    return cast(PolicyFunction, traced)


def input_specs(
    observation: Tree[ArraySpec], num_envs: int | None = None
) -> list[tf.TensorSpec]:
    """Returns the spec of each array in a batch of observations.

    Args:
        observation: tree of `ArraySpec`. Specs of one observation.
        num_envs: int or None. Number of observations in a batch, B; None for
            any number. Defaults to `None`.

    Returns:
        list of `tf.TensorSpec` in the order of `trees.leaves`. A single array
        is named `observation`, others `observation_<path>`, with a number
        where two would have the same name.
    """
    specs: dict[str, tf.TensorSpec] = {}
    for path, spec in named_leaves(observation):
        name = input_name(path)
        if name in specs:
            name = f"{name}_{len(specs)}"
        specs[name] = tf.TensorSpec((num_envs, *spec.shape), spec.dtype, name)
    return [*specs.values()]


def input_name(path: str) -> str:
    """Returns the name of the input for an array of the observation."""
    # ASCII only: LiteRT knows no other letters.
    plain = re.sub(r"\W", "_", path, flags=re.ASCII)
    return f"observation_{plain}" if path else "observation"


def memory_specs(
    agent: Policy, num_envs: int | None = None
) -> list[tf.TensorSpec]:
    """Returns the specs of the further inputs of a recurrent policy.

    Args:
        agent: `Policy`. The agent with the policy.
        num_envs: int or None. See `input_specs`. Defaults to `None`.

    Returns:
        list of `tf.TensorSpec`: `begins` `[B]`, 1 where an episode begins,
        and each array of the state, `state_0` and so on; empty if the policy
        is not recurrent.
    """
    state = agent.initial_state(1)
    if not state:
        return []
    return [
        tf.TensorSpec((num_envs,), "float32", "begins"),
        *(
            tf.TensorSpec((num_envs, *each.shape[1:]), each.dtype, f"state_{k}")
            for k, each in enumerate(state)
        ),
    ]


def actions(
    agent: Policy,
    observation: Tree[Tensor],
    noise: Tensor | None = None,
    memory: Sequence[Tensor] = (),
) -> list[Tensor]:
    """Chooses actions, in the graph.

    Args:
        agent: `Policy`. The agent with the policy.
        observation: `[B, ...]`. Raw observations.
        noise: `[B, *noise_shape]` float32, see `draw_noise`; None for the most
            probable actions. Defaults to `None`.
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
    >>> [action] = actions(agent, np.zeros((3, 4), "float32"))
    >>> action.shape
    TensorShape([3])
    """
    state: Sequence[Tensor] = ()
    if memory:
        policy, state = agent.policy_step(observation, memory[0], memory[1:])
        own = policy.mode() if noise is None else policy.sample(noise)
    elif noise is None:
        own = agent.greedy_action(observation)
    else:
        own = agent.sample_action(observation, noise)
    if not agent.policy_head.changes_action:
        return [own, *state]
    return [own, *leaves(agent.policy_head.to_environment(own)), *state]


def actions_and_log_prob(
    agent: Policy,
    observation: Tree[Tensor],
    noise: Tensor | None = None,
    memory: Sequence[Tensor] = (),
    *,
    clipped: bool = False,
) -> list[Tensor]:
    """Chooses actions, with their log-probabilities, in the graph.

    Args:
        agent: `Policy` with a `distribution`. The agent with the policy.
        observation: `[B, ...]`. Raw observations.
        noise: `[B, *noise_shape]` float32 or None. See `actions`. Defaults
            to `None`.
        memory: Sequence. See `actions`. Defaults to `()`.
        clipped: bool. Whether the log-probability is that of the action that
            the environment takes, which bounds may have clipped, instead of
            that of the drawn one. Defaults to `False`.

    Returns:
        list: see `actions`, with the log-probability `[B]` float32 before the
        state.
    """
    outputs = actions(agent, observation, noise, memory)
    policy: Distribution
    if memory:
        policy, _ = agent.policy_step(observation, memory[0], memory[1:])
    else:
        policy = cast(Any, agent).distribution(observation)
    taken, head = outputs[0], agent.policy_head
    if clipped:
        taken = head.from_environment(head.to_environment(taken))
    count = len(outputs) - max(len(memory) - 1, 0)
    return [*outputs[:count], policy.log_prob(taken), *outputs[count:]]
