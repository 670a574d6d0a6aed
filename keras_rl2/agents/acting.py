"""The policy outside of training: traced once, and asked for actions."""

import contextlib
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

import keras
import numpy as np
import tensorflow as tf

if TYPE_CHECKING:
    from keras_rl2.agents.agent import Agent


_NO_SCOPE = contextlib.nullcontext()


class Acting:
    """The policy of an agent as functions, each of them traced once.

    Args:
        agent: `keras_rl2.Agent`. Whose policy it is.
        seed: int or None. Seeds the noise of `act`.
    """

    def __init__(self, agent: "Agent", seed: int | None) -> None:
        self._agent = agent
        self._noise = np.random.default_rng(seed)
        self._functions: dict[tuple[Any, ...], Any] = {}

    def function(
        self,
        deterministic: bool,
        num_envs: int | None = None,
        variables: Sequence[Any] = (),
        with_log_prob: bool = False,
    ) -> Any:
        """Returns the policy as a `tf.function`; see `policy_function`.

        Args:
            deterministic: bool. Whether there is no noise.
            num_envs: int or None. Observations of each call; None for any
                number. Defaults to `None`.
            variables: Sequence of `keras.Variable`. What is given with each
                call. Defaults to `()`.
            with_log_prob: bool. Whether it gives log-probabilities too.
                Defaults to `False`.

        Returns:
            `tf.function`.
        """
        key = deterministic, num_envs, tuple(map(id, variables)), with_log_prob
        if key not in self._functions:
            self._functions[key] = self._trace(
                deterministic, num_envs, list(variables), with_log_prob
            )
        return self._functions[key]

    def _trace(
        self,
        deterministic: bool,
        num_envs: int | None,
        variables: list[Any],
        with_log_prob: bool,
    ) -> Any:
        """Makes the policy a function of observation, noise and variables."""
        agent = self._agent
        observation = agent.encode.spec
        shape = (num_envs, *observation.shape[1:])
        inputs = [tf.TensorSpec(shape, observation.dtype, "observation")]
        if not deterministic:
            shape = (num_envs, *agent.noise_shape)
            inputs.append(tf.TensorSpec(shape, "float32", "noise"))
        weights = [
            tf.TensorSpec(variable.shape, variable.dtype, f"weight_{index}")
            for index, variable in enumerate(variables)
        ]

        def policy(*given: Any) -> list[Any]:
            values = given[len(inputs) :]
            mapping = list(zip(variables, values, strict=True))
            # A scope would keep what a network of one's own assigns.
            scope = keras.StatelessScope(mapping) if mapping else _NO_SCOPE
            with scope:
                return self._decide(*given[: len(inputs)], with_log_prob)

        # Not the function itself: TensorFlow tells functions apart by their
        # code, and would warn of retracing where there are many agents.
        return tf.function(
            functools.partial(policy),
            input_signature=[*inputs, *weights],
            autograph=False,
        )

    def act(
        self, observation: Any, deterministic: bool, with_log_prob: bool
    ) -> Any:
        """Chooses an action, or a batch of actions; see `Agent.act`.

        Args:
            observation: `[...]` or `[B, ...]`. Raw observations.
            deterministic: bool. Whether there is no noise, and none is drawn.
            with_log_prob: bool. Whether to return log-probabilities too.

        Returns:
            np.ndarray of the action as the environment takes it, or
            `[B, ...]`; or a tuple of it and `[]` or `[B]`.

        Raises:
            ValueError: If the observation's shape is not that of the space,
                or the policy has no probabilities.
        """
        agent = self._agent
        if with_log_prob and not hasattr(agent, "distribution"):
            raise ValueError(
                "Expected `return_log_prob=False`: the actions of "
                f"{type(agent).__name__} have no log-probability. "
                "Received: return_log_prob=True"
            )
        shape = agent.observation_shape
        array = np.asarray(observation, agent.observation_dtype)
        single = array.shape == shape
        if not single and (
            array.ndim != len(shape) + 1 or array.shape[1:] != shape
        ):
            raise ValueError(
                f"Expected one observation of shape {shape} or a batch "
                f"{('B', *shape)}. Received: shape {array.shape}"
            )
        batch = array[None] if single else array
        inputs = [batch]
        if not deterministic:
            noise, _ = agent.draw_noise(self._noise, (len(batch),))
            inputs.append(noise)
        function = self.function(deterministic, with_log_prob=with_log_prob)
        outputs = function(*inputs)
        action, *rest = outputs[1:] if with_log_prob else outputs[-1:]
        dtype = agent.action_space.dtype
        given = [action.numpy().astype(dtype, copy=False)]
        given += [log_prob.numpy() for log_prob in rest]
        # [1, ...] -> [...] where one observation was given
        chosen = tuple(each[0] if single else each for each in given)
        return chosen if with_log_prob else chosen[0]

    def _decide(self, *given: Any) -> list[Any]:
        """Returns actions, those for the environment, and log-probabilities.

        Args:
            *given: Raw observations `[B, ...]`, perhaps noise, and whether
                log-probabilities are wanted.

        Returns:
            list: the policy's own actions `[B, ...]`; those for the
            environment, if they are others or more follows; and if wanted
            log-probabilities `[B]`.
        """
        *inputs, with_log_prob = given
        agent, head = self._agent, self._agent.policy_head
        own = (
            agent.sample_action(*inputs)
            if len(inputs) > 1
            else agent.greedy_action(*inputs)
        )
        if not head.changes_action and not with_log_prob:
            return [own]
        action = head.to_environment(own)
        if not with_log_prob:
            return [own, action]
        # Of what is returned: bounds may have clipped what was drawn.
        taken = head.from_environment(action)
        log_prob = agent.distribution(inputs[0]).log_prob(taken)
        return [own, action, log_prob]
