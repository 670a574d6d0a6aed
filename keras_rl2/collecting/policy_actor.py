"""Acting with a traced policy, without TensorFlow."""

import dataclasses
import functools
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_rl2.collecting.checks import check_actions
from keras_rl2.collecting.litert import LiteRTRunner
from keras_rl2.collecting.litert import for_environment
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import map_leaves

# The policy's actions [B, ...], and the same in the form of the environment,
# possibly a tree of arrays.
Actions = tuple[np.ndarray, Any]

# From observations [B, ...] and the noise of one step to actions: a
# `PolicyActor`, or a function with the same signature.
Actor = Callable[[Any, Any], Actions]


class PolicyActor:
    """Chooses the actions of B environments, and holds the recurrent state.

    Args:
        runner: `LiteRTRunner`, or another with its methods. Returns the
            policy's actions; the environment's actions, if different;
            log-probabilities, if `with_log_prob`; and the recurrent state after
            the step.
        action: tree of `ArraySpec`. Specs of the action space.
        initial_state: tuple of `[B, ...]`. Recurrent state before an episode;
            empty for a policy that is not recurrent.
        num_envs: int. B.
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
        runner: Any,
        action: Tree[ArraySpec],
        initial_state: tuple[np.ndarray, ...],
        num_envs: int,
        with_log_prob: bool = False,
    ) -> None:
        self.num_envs = num_envs
        self.state = initial_state
        self.begins = np.ones(num_envs, np.float32)
        self.log_prob: np.ndarray | None = None
        self.set_weights = runner.set_weights
        self._runner = runner
        self._action = action
        self._with_log_prob = with_log_prob

    def __call__(
        self, observation: Any, noise: np.ndarray | None = None
    ) -> Actions:
        """Chooses actions.

        Args:
            observation: `[B, ...]`. Observations, a tree of contiguous
                arrays.
            noise: `[B, n]` float32. Noise of the policy;
                None for a deterministic actor. Defaults to `None`.

        Returns:
            The policy's actions `[B, ...]`, and the same in the form of the
            environment (shifted or clipped to its space).
        """
        if self.state:
            outputs = self._recurrent_outputs(observation, noise)
        else:
            outputs = self._runner(observation, noise)
        if self._with_log_prob:
            self.log_prob = outputs.pop()
        if outputs[0].dtype.kind == "f":
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
        """Restores the state returned by `get_state`."""
        self.state = tuple(state["state"])
        self.begins = state["begins"]


# Compared by identity: the policy of another agent, with another recurrent
# state, may have equal fields.
@dataclasses.dataclass(frozen=True, eq=False)
class SentPolicy:
    """A policy for B environments, without its weights.

    Attributes:
        converted: bytes. The model; see `LiteRTRunner`.
        weights: int. Number of weights.
        threads: int or None. Threads of the interpreter.
        inputs: tuple of str. See `observations` of `LiteRTRunner`.
        action: tree of `ArraySpec`. Specs of the action space.
        initial_state: tuple of `[B, ...]`. State of a recurrent policy at the
            start of an episode.
        num_envs: int. B.
        batch: int. Rows that the model takes, B or more.
        with_log_prob: bool. See `PolicyActor`.
    """

    converted: bytes
    weights: int
    threads: int | None
    inputs: tuple[str, ...]
    action: Tree[ArraySpec]
    initial_state: tuple[np.ndarray, ...]
    num_envs: int
    batch: int
    with_log_prob: bool

    def actor(self) -> PolicyActor:
        """Makes the actor, in the process that uses it."""
        states = len(self.initial_state)
        runner: Any = LiteRTRunner(
            self.converted, self.weights, self.threads, self.inputs, states
        )
        if self.batch > self.num_envs:
            runner = _Repeating(runner, self.num_envs, self.batch)
        return PolicyActor(
            runner,
            self.action,
            self.initial_state,
            self.num_envs,
            self.with_log_prob,
        )


@dataclasses.dataclass(frozen=True)
class LiteRTPolicy:
    """A greedy policy for one observation at a time, as plain data.

    It can be sent to a process without TensorFlow.

    Attributes:
        policy: `SentPolicy`. The policy for a batch of one.
        weights: list of arrays. Weights of the policy.
        observation: tree of `ArraySpec`. The form of one observation.
    """

    policy: SentPolicy
    weights: list[np.ndarray]
    observation: Tree[ArraySpec]

    def __getstate__(self) -> dict[str, Any]:
        """Returns the fields without the interpreter, which is made again."""
        return {k: each for k, each in vars(self).items() if k != "_actor"}

    def begin(self) -> None:
        """Resets the state: the next observation begins an episode."""
        self._actor.begin(np.ones(1, np.bool_))

    def __call__(self, observation: Any) -> Any:
        """Returns the action for one observation, in the form of its space."""
        batch = map_leaves(
            lambda spec, array: np.asarray(array, spec.dtype, order="C")[None],
            self.observation,
            observation,
        )
        return map_leaves(
            lambda spec, array: array.astype(spec.dtype, copy=False)[0],
            self.policy.action,
            self._actor(batch)[1],
        )

    @functools.cached_property
    def _actor(self) -> PolicyActor:
        """The interpreter, made in the process that uses it."""
        actor = self.policy.actor()
        actor.set_weights(self.weights)
        return actor


class _Repeating:
    """Runs a policy with a larger batch than there are environments."""

    def __init__(self, runner: LiteRTRunner, rows: int, batch: int) -> None:
        self._runner = runner
        self._rows = rows
        self._repeats = -(-batch // rows)
        self.set_weights = runner.set_weights

    def __call__(
        self,
        observation: Any,
        noise: np.ndarray | None,
        memory: Sequence[np.ndarray] = (),
    ) -> list[np.ndarray]:
        """Repeats the rows, and returns the first rows of the outputs."""
        outputs = self._runner(
            map_leaves(self._repeated, observation),
            None if noise is None else self._repeated(noise),
            [self._repeated(each) for each in memory],
        )
        return [np.ascontiguousarray(each[: self._rows]) for each in outputs]

    def _repeated(self, array: np.ndarray) -> np.ndarray:
        """Returns [B, ...] repeated several times."""
        return np.concatenate([array] * self._repeats)
