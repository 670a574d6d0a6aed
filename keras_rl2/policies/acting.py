"""The policy outside of training: traced once, then called for actions."""

import functools
import warnings
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt

from keras_rl2.basics import seeds
from keras_rl2.basics.direct_call import direct_call
from keras_rl2.collecting.checks import check_actions
from keras_rl2.collecting.checks import check_mask
from keras_rl2.collecting.litert import for_environment
from keras_rl2.policies.policy import ModelPolicy
from keras_rl2.policies.policy_function import PolicyFunction
from keras_rl2.policies.policy_function import actions_and_log_prob
from keras_rl2.policies.policy_function import policy_function
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.batches import as_batch
from keras_rl2.spaces.supported import action_spec
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves

# Probabilities of the actions that are returned.
_CLIPPED = functools.partial(actions_and_log_prob, clipped=True)


class Acting:
    """The policy of an agent as functions, each of them traced once.

    Args:
        agent: `ModelPolicy`. The agent with the policy.
        seed: int or None. Seeds the noise of `act`.
    """

    def __init__(self, agent: ModelPolicy, seed: int | None) -> None:
        self._agent = agent
        self._noise = seeds.generator(seed)
        self._functions: dict[tuple[Any, ...], PolicyFunction] = {}
        self._called: dict[tuple[bool, bool], Any] = {}
        self._told_of_state = False

    def function(
        self,
        deterministic: bool,
        num_envs: int | None = None,
        variables: Sequence[keras.Variable] = (),
        with_log_prob: bool = False,
    ) -> PolicyFunction:
        """Returns the policy as a `tf.function`; see `policy_function`.

        Args:
            deterministic: bool. Whether there is no noise.
            num_envs: int or None. Number of observations per call; None for
                any number. Defaults to `None`.
            variables: Sequence of `keras.Variable`. Variables with values that
                are inputs of each call. Defaults to `()`.
            with_log_prob: bool. Whether it returns log-probabilities too.
                Defaults to `False`.

        Returns:
            `tf.function`.
        """
        key = deterministic, num_envs, tuple(map(id, variables)), with_log_prob
        if key not in self._functions:
            self._functions[key] = policy_function(
                self._agent,
                deterministic,
                num_envs,
                variables,
                _CLIPPED if with_log_prob else None,
            )
        return self._functions[key]

    def act(
        self,
        observation: Any,
        state: Sequence[Any] | None,
        deterministic: bool,
        with_log_prob: bool,
    ) -> Any:
        """Chooses an action, or a batch of actions; see `ActingModel.act`.

        Args:
            observation: `[...]` or `[B, ...]`. Raw observations.
            state: Sequence of `[B, ...]` or None. State of a recurrent policy.
            deterministic: bool. Whether there is no noise, and none is drawn.
            with_log_prob: bool. Whether to return log-probabilities too.

        Returns:
            np.ndarray of the action as the environment takes it, or
            `[B, ...]`; or a tuple of it and `[]` or `[B]`.

        Raises:
            ValueError: If the observation's shape is not that of the space, a
                mask allows nothing, the policy has no probabilities, or its
                action is not finite.
        """
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
            self._check_mask(batch, count)
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
        """Runs `function`."""
        if key not in self._called:
            function = self.function(key[0], with_log_prob=key[1])
            self._called[key] = direct_call(function.get_concrete_function())
        outputs: list[Any] = self._called[key](inputs)
        return outputs

    def get_state(self) -> dict[str, Any]:
        """Returns the state of the noise of later calls of `act`."""
        return {"noise": self._noise.bit_generator.state}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restores the state returned by `get_state`.

        Args:
            state: dict, as returned by `get_state`.
        """
        self._noise.bit_generator.state = state["noise"]

    def _memory(
        self, state: Sequence[Any] | None, count: int
    ) -> list[npt.NDArray[Any]]:
        """Returns the further inputs of a recurrent policy."""
        initial = self._agent.initial_state(count)
        if state is None:
            state = initial
        if not isinstance(state, Sequence):
            state = [state]
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

    def _check_mask(self, batch: Any, count: int) -> None:
        """Raises if a mask allows no action."""
        waiting = np.zeros(count, np.bool_)
        head = self._agent.policy_head.format
        check_mask(head, batch, waiting, "the observation of `act`", 0)
