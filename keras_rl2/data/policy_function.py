"""The policy of an agent as one function of arrays."""

import contextlib
import functools
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import TypeAlias
from typing import cast

import keras
import tensorflow as tf

from keras_rl2.data.agent_protocols import ActingAgent
from keras_rl2.shapes import Tensor

PolicyFunction: TypeAlias = (
    "tf.types.experimental.PolymorphicFunction[..., list[tf.Tensor]]"
)
"""A policy as a `tf.function`."""

_NO_SCOPE = contextlib.nullcontext()


def policy_function(
    agent: ActingAgent,
    deterministic: bool,
    num_envs: int | None = None,
    variables: Sequence[keras.Variable] = (),
    decide: Callable[..., list[Tensor]] | None = None,
) -> PolicyFunction:
    """Traces a policy, for whoever acts outside of training.

    Args:
        agent: `ActingAgent`. Whose policy it is.
        deterministic: bool. Whether there is no noise.
        num_envs: int or None. Observations of each call, B; None for any
            number. Defaults to `None`.
        variables: Sequence of `keras.Variable`. What is given with each call,
            named `weight_0` and so on. Defaults to `()`.
        decide: Callable from the agent, observations and perhaps noise to what
            the function returns; None for `actions`. Defaults to `None`.

    Returns:
        `tf.function` of `observation` `[B, ...]`, of `noise`
        `[B, *noise_shape]` unless `deterministic`, and of the variables.
    """
    shape = (num_envs, *agent.observation_shape)
    inputs = [tf.TensorSpec(shape, agent.observation_dtype, "observation")]
    if not deterministic:
        shape = (num_envs, *agent.noise_shape)
        inputs.append(tf.TensorSpec(shape, "float32", "noise"))
    weights = [
        tf.TensorSpec(variable.shape, variable.dtype, f"weight_{index}")
        for index, variable in enumerate(variables)
    ]

    def policy(*given: Any) -> list[Tensor]:
        values = given[len(inputs) :]
        mapping = list(zip(variables, values, strict=True))
        # A scope would keep what a network of one's own assigns.
        with keras.StatelessScope(mapping) if mapping else _NO_SCOPE:
            return (decide or actions)(agent, *given[: len(inputs)])

    # Not the function itself: TensorFlow tells functions apart by their code,
    # and would warn of retracing where there are many agents.
    traced = tf.function(
        functools.partial(policy),
        input_signature=[*inputs, *weights],
        autograph=False,
    )
    return cast(PolicyFunction, traced)


def actions(
    agent: ActingAgent, observation: Tensor, noise: Tensor | None = None
) -> list[Tensor]:
    """Chooses actions, in the graph.

    Args:
        agent: `ActingAgent`. Whose policy it is.
        observation: `[B, ...]`. Raw observations.
        noise: `[B, *noise_shape]` float32, as of `draw_noise`; None for the
            most probable actions. Defaults to `None`.

    Returns:
        list: the policy's own actions `[B, ...]`, and last those for the
        environment, where they are others.
    """
    if noise is None:
        own = agent.greedy_action(observation)
    else:
        own = agent.sample_action(observation, noise)
    if not agent.policy_head.changes_action:
        return [own]
    return [own, agent.policy_head.to_environment(own)]
