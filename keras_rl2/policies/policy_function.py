"""The policy outside of training: traced once, then called for actions."""

import contextlib
import functools
import itertools
import re
import warnings
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import TypeAlias
from typing import cast

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from keras_rl2.basics import seeds
from keras_rl2.basics.direct_call import direct_call
from keras_rl2.basics.shapes import Tensor
from keras_rl2.collecting.checks import check_actions
from keras_rl2.collecting.checks import check_mask
from keras_rl2.collecting.litert import for_environment
from keras_rl2.distributions import Distribution
from keras_rl2.policies.agent_protocols import Policy
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.batches import as_batch
from keras_rl2.spaces.supported import action_spec
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves
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
    memory = []
    for index, each in enumerate(agent.initial_state(1)):
        shape = (num_envs, *each.shape[1:])
        memory.append(tf.TensorSpec(shape, each.dtype, f"state_{index}"))
    if memory:
        memory.insert(0, tf.TensorSpec((num_envs,), "float32", "begins"))
    weights = []
    for index, variable in enumerate(variables):
        name = f"weight_{index}"
        weights.append(tf.TensorSpec(variable.shape, variable.dtype, name))
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
    """Chooses actions; their log-probabilities `[B]` come before the state.

    With `clipped` they are those of the actions that the environment takes,
    which bounds may have clipped, instead of those of the drawn ones.
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


# Probabilities of the actions that are returned.
_CLIPPED = functools.partial(actions_and_log_prob, clipped=True)


class Acting:
    """The function of `Agent.act`: the policy, traced once, with its noise."""

    def __init__(self, agent: keras.Model, seed: int | None) -> None:
        self._agent = agent
        self._noise = seeds.generator(seed)
        self._called: dict[tuple[bool, bool], Any] = {}
        self._told_of_state = False

    def act(
        self,
        observation: Any,
        state: Sequence[Any] | None,
        deterministic: bool,
        with_log_prob: bool,
    ) -> Any:
        """Chooses an action, or a batch; see `Agent.act`."""
        agent = self._agent
        if with_log_prob and not hasattr(agent, "distribution"):
            raise ValueError(
                "Expected `return_log_prob=False`: the actions of "
                f"{type(agent).__name__} have no log-probability. "
                "Received: return_log_prob=True"
            )
        batch, single = as_batch(agent.observation_spec, observation)
        count = len(leaves(batch)[0])
        if agent.is_masked:
            head, waiting = agent.policy_head.format, np.zeros(count, np.bool_)
            check_mask(head, batch, waiting, "the observation of `act`", 0)
        inputs = leaves(batch)
        if not deterministic:
            noise, _ = agent.draw_noise(self._noise, (count,))
            inputs.append(noise)
        memory = self._memory(state, count)
        if memory and state is None:
            self._tell_of_state(count)
        outputs = self._outputs((deterministic, with_log_prob), inputs + memory)
        check_actions(outputs[0].numpy(), batch)
        after = [outputs.pop() for _ in memory[1:]][::-1]
        log_prob = outputs.pop() if with_log_prob else None
        spec = action_spec(agent.action_space)

        def taken(one: ArraySpec, output: Any) -> npt.NDArray[Any]:
            array: npt.NDArray[Any]
            array = output.numpy().astype(one.dtype, copy=False)
            # [1, ...] -> [...] where one observation was given
            return array[0] if single else array

        given = [map_leaves(taken, spec, for_environment(spec, outputs))]
        if log_prob is not None:
            given.append(log_prob.numpy()[0] if single else log_prob.numpy())
        if state is not None:
            given.append(tuple(each.numpy() for each in after))
        return tuple(given) if len(given) > 1 else given[0]

    def _outputs(self, key: tuple[bool, bool], inputs: list[Any]) -> list[Any]:
        """Runs the policy, traced when it is needed first."""
        if key not in self._called:
            deterministic, with_log_prob = key
            function = policy_function(
                self._agent,
                deterministic,
                decide=_CLIPPED if with_log_prob else None,
            )
            self._called[key] = direct_call(function.get_concrete_function())
        return self._called[key](inputs)

    def get_state(self) -> dict[str, Any]:
        """Returns the state of the noise of later calls of `act`."""
        return {"noise": self._noise.bit_generator.state}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restores the state returned by `get_state`."""
        self._noise.bit_generator.state = state["noise"]

    def _memory(
        self, state: Sequence[Any] | None, count: int
    ) -> list[npt.NDArray[Any]]:
        """Returns the further inputs of a recurrent policy."""
        initial = self._agent.initial_state(count)
        if state is None:
            state = initial
        # A bool, say, that was meant as another argument.
        state = state if isinstance(state, Sequence) else [state]
        shapes = [np.shape(each) for each in state]
        expected = [each.shape for each in initial]
        if shapes != expected:
            raise ValueError(
                f"Expected a state of arrays of shapes {expected}, see "
                f"`initial_state({count})`. Received: shapes {shapes}"
            )
        if not initial:
            return []
        arrays = [
            np.asarray(each, own.dtype)
            for each, own in zip(state, initial, strict=True)
        ]
        return [np.zeros(count, np.float32), *arrays]

    def _tell_of_state(self, count: int) -> None:
        """Warns once that no state is kept from call to call."""
        if self._told_of_state:
            return
        self._told_of_state = True
        warnings.warn(
            "`act` was called without a `state`, so that each call begins "
            "with the initial state. Expected, from the first step of an "
            f"episode on: `state = agent.initial_state({count})`, then "
            "`action, state = agent.act(observation, state)`. "
            "Received: state=None",
            stacklevel=5,
        )
