"""Acting with a policy that has been traced, without TensorFlow."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import Protocol

import numpy as np

from keras_rl2.collecting.checks import check_actions
from keras_rl2.collecting.litert import for_environment
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree

# The policy's actions [B, ...], and the same as environments take them, a tree
# of arrays perhaps.
Actions = tuple[np.ndarray, Any]

# From observations [B, ...] and the noise of one step to actions: a
# `PolicyActor`, or whatever takes its place.
Actor = Callable[[Any, Any], Actions]


class PolicyRunner(Protocol):
    """Runs a traced policy with weights of its own."""

    def set_weights(self, weights: list[np.ndarray]) -> None:
        """Takes over weights, a copy of them."""

    def __call__(
        self,
        observation: Any,
        noise: np.ndarray | None,
        memory: Sequence[np.ndarray] = (),
    ) -> list[np.ndarray]:
        """Returns what the policy gives for `[B, ...]`."""


class PolicyActor:
    """Chooses the actions of B environments, and remembers what is to be.

    Args:
        runner: `PolicyRunner`. Gives the policy's own actions; those of the
            environment, where they are others; log-probabilities, if
            `with_log_prob`; and what is remembered after the step.
        action: tree of `ArraySpec`. What the action space holds.
        initial_state: tuple of `[B, ...]`. What is remembered before an
            episode; empty for a policy that remembers nothing.
        num_envs: int. B.
        gives_numbers: bool. Whether actions are numbers, which could be NaN,
            and no choices.
        with_log_prob: bool. Whether the policy gives log-probabilities.
            Defaults to `False`.

    Attributes:
        set_weights: Function of a list of arrays, in the order of the policy's
            variables, to act with from now on.
        state: tuple of `[B, ...]`. Recurrent state of each environment.
        begins: `[B]` float32. 1 where the next step is the first of an
            episode.
        log_prob: `[B]` float32. Of the actions that were chosen last; None
            where it is not known.
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
            The policy's actions `[B, ...]`, and the same as the environment
            takes them (shifted or clipped to its space).

        Raises:
            ValueError: If actions are numbers that are not finite.
        """
        if self.state:
            outputs = self._remembering(observation, noise)
        else:
            outputs = self._runner(observation, noise)
        if self._with_log_prob:
            self.log_prob = outputs.pop()
        if self._gives_numbers:
            check_actions(outputs[0], observation)
        return outputs[0], for_environment(self._action, outputs)

    def _remembering(self, observation: Any, noise: Any) -> list[np.ndarray]:
        """Runs the policy, and remembers what it is for the next step."""
        count = len(self.state)
        outputs = self._runner(observation, noise, (self.begins, *self.state))
        self.state = tuple(outputs[-count:])
        self.begins = np.zeros(self.num_envs, np.float32)
        return outputs[:-count]

    def begin(self, envs: np.ndarray) -> None:
        """Says that the next step is the first of an episode.

        Args:
            envs: `[B]` bool. Of which environments.
        """
        self.begins = np.maximum(self.begins, envs).astype(np.float32)

    def get_state(self) -> dict[str, Any]:
        """Returns what it remembers of each environment, as plain data."""
        return {
            "state": [np.array(each) for each in self.state],
            "begins": self.begins.copy(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes back what `get_state` gave.

        Args:
            state: dict, as returned by `get_state`.
        """
        self.state = tuple(state["state"])
        self.begins = state["begins"]
