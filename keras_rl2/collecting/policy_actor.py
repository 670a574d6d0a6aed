"""Acting with a traced policy, without TensorFlow."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import Protocol

import numpy as np

from keras_rl2.collecting.checks import check_actions
from keras_rl2.collecting.litert import for_environment
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree

# The policy's actions [B, ...], and the same in the form of the environment,
# possibly a tree of arrays.
Actions = tuple[np.ndarray, Any]

# From observations [B, ...] and the noise of one step to actions: a
# `PolicyActor`, or a function with the same signature.
Actor = Callable[[Any, Any], Actions]


class PolicyRunner(Protocol):
    """Runs a traced policy with weights that updates do not change."""

    def set_weights(self, weights: list[Any]) -> None:
        """Takes over weights, which are arrays or tensors."""

    def __call__(
        self,
        observation: Any,
        noise: np.ndarray | None,
        memory: Sequence[np.ndarray] = (),
    ) -> list[np.ndarray]:
        """Returns the outputs of the policy for `[B, ...]`."""


class PolicyActor:
    """Chooses the actions of B environments, and holds the recurrent state.

    Args:
        runner: `PolicyRunner`. Returns the policy's actions; the environment's
            actions, if different; log-probabilities, if `with_log_prob`; and
            the recurrent state after the step.
        action: tree of `ArraySpec`. Specs of the action space.
        initial_state: tuple of `[B, ...]`. Recurrent state before an episode;
            empty for a policy that is not recurrent.
        num_envs: int. B.
        gives_numbers: bool. Whether actions are real numbers, which could be
            NaN, instead of choices.
        with_log_prob: bool. Whether the policy returns log-probabilities.
            Defaults to `False`.

    Attributes:
        set_weights: Function that takes a list of weights, in the order of the
            policy's variables, and sets the weights of the next actions.
        state: tuple of `[B, ...]`. Recurrent state of each environment.
        begins: `[B]` float32. 1 where the next step is the first of an
            episode.
        log_prob: `[B]` float32. Log-probabilities of the last actions; None if
            unknown.
    """

    def __init__(
        self,
        runner: PolicyRunner,
        action: Tree[ArraySpec],
        initial_state: tuple[np.ndarray, ...],
        num_envs: int,
        gives_numbers: bool,
        with_log_prob: bool = False,
    ) -> None:
        self.num_envs = num_envs
        self.state = initial_state
        self.begins = np.ones(num_envs, np.float32)
        self.log_prob: np.ndarray | None = None
        self.set_weights = runner.set_weights
        self._runner = runner
        self._action = action
        self._gives_numbers = gives_numbers
        self._with_log_prob = with_log_prob

    def __call__(
        self, observation: Any, noise: np.ndarray | None = None
    ) -> Actions:
        """Chooses actions.

        Args:
            observation: `[B, ...]`. Observations, a tree of contiguous
                arrays.
            noise: `[B, *noise_shape]` float32. Standard noise of the policy;
                None for a deterministic actor. Defaults to `None`.

        Returns:
            The policy's actions `[B, ...]`, and the same in the form of the
            environment (shifted or clipped to its space).

        Raises:
            ValueError: If actions are numbers that are not finite.
        """
        if self.state:
            outputs = self._recurrent_outputs(observation, noise)
        else:
            outputs = self._runner(observation, noise)
        if self._with_log_prob:
            self.log_prob = outputs.pop()
        if self._gives_numbers:
            check_actions(outputs[0], observation)
        return outputs[0], for_environment(self._action, outputs)

    def _recurrent_outputs(
        self, observation: Any, noise: Any
    ) -> list[np.ndarray]:
        """Runs the policy, and keeps the recurrent state for the next step."""
        count = len(self.state)
        outputs = self._runner(observation, noise, (self.begins, *self.state))
        self.state = tuple(outputs[-count:])
        self.begins = np.zeros(self.num_envs, np.float32)
        return outputs[:-count]

    def begin(self, envs: np.ndarray) -> None:
        """Marks the next step as the first of an episode.

        Args:
            envs: `[B]` bool. The environments concerned.
        """
        self.begins = np.maximum(self.begins, envs).astype(np.float32)

    def get_state(self) -> dict[str, Any]:
        """Returns the recurrent state of each environment, as plain data."""
        return {
            "state": [np.array(each) for each in self.state],
            "begins": self.begins.copy(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores the state returned by `get_state`.

        Args:
            state: dict, as returned by `get_state`.
        """
        self.state = tuple(state["state"])
        self.begins = state["begins"]
