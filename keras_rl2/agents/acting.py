"""The policy outside of training: traced once, and asked for actions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any
from typing import Protocol
from typing import cast

import keras
import numpy as np
import numpy.typing as npt

from keras_rl2.data import actions
from keras_rl2.data import policy_function
from keras_rl2.data.policy_function import PolicyFunction
from keras_rl2.distributions import Distribution
from keras_rl2.shapes import Tensor

if TYPE_CHECKING:
    from keras_rl2.agents.agent import Agent


class _Stochastic(Protocol):
    """An agent whose policy is a distribution."""

    def distribution(self, observation: Tensor) -> Distribution:
        """Returns the distribution of actions for raw observations."""


class Acting:
    """The policy of an agent as functions, each of them traced once.

    Args:
        agent: `keras_rl2.Agent`. Whose policy it is.
        seed: int or None. Seeds the noise of `act`.
    """

    def __init__(self, agent: "Agent", seed: int | None) -> None:
        self._agent = agent
        self._noise = np.random.default_rng(seed)
        self._functions: dict[tuple[Any, ...], PolicyFunction] = {}

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
            self._functions[key] = policy_function(
                self._agent,
                deterministic,
                num_envs,
                variables,
                actions_and_log_probs if with_log_prob else None,
            )
        return self._functions[key]

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
        array: npt.NDArray[Any] = np.asarray(
            observation, agent.observation_dtype
        )
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
        action, *rest = outputs if with_log_prob else outputs[-1:]
        dtype = agent.action_space.dtype
        given: list[npt.NDArray[Any]] = [
            action.numpy().astype(dtype, copy=False)
        ]
        given += [log_prob.numpy() for log_prob in rest]
        # [1, ...] -> [...] where one observation was given
        chosen = tuple(each[0] if single else each for each in given)
        return chosen if with_log_prob else chosen[0]


def actions_and_log_probs(
    agent: "Agent", observation: Tensor, noise: Tensor | None = None
) -> list[Tensor]:
    """Chooses actions as the environment takes them, with log-probabilities.

    Args:
        agent: `keras_rl2.Agent`. One whose policy is a distribution.
        observation: `[B, ...]`. Raw observations.
        noise: `[B, *noise_shape]` float32 or None. Defaults to `None`.

    Returns:
        list: `[B, ...]` and `[B]` float32.
    """
    head = agent.policy_head
    action = head.to_environment(actions(agent, observation, noise)[0])
    # Of what is returned: bounds may have clipped what was drawn.
    taken = head.from_environment(action)
    policy = cast(_Stochastic, agent).distribution(observation)
    return [action, policy.log_prob(taken)]
