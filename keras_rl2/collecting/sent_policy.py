"""A policy for many steps, as plain data for processes without TensorFlow."""

import dataclasses
from collections.abc import Sequence
from typing import Any
from typing import Protocol
from typing import runtime_checkable

import numpy as np

from keras_rl2.collecting.litert import LiteRTRunner
from keras_rl2.collecting.policy_actor import PolicyActor
from keras_rl2.collecting.policy_actor import PolicyRunner
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import map_leaves


# Compared by identity: the policy of another agent, with another recurrent
# state, may have equal fields.
@dataclasses.dataclass(frozen=True, eq=False)
class SentPolicy:
    """A stochastic policy for B environments, without its weights.

    Attributes:
        converted: bytes. The model; see `LiteRTRunner`.
        weights: int. Number of weights.
        inputs: tuple of str. See `observations` of `LiteRTRunner`.
        action: tree of `ArraySpec`. Specs of the action space.
        initial_state: tuple of `[B, ...]`. State of a recurrent policy at the
            start of an episode.
        num_envs: int. B.
        batch: int. Rows that the model takes, B or more.
        gives_numbers: bool. See `PolicyActor`.
        with_log_prob: bool. See `PolicyActor`.
    """

    converted: bytes
    weights: int
    inputs: tuple[str, ...]
    action: Tree[ArraySpec]
    initial_state: tuple[np.ndarray, ...]
    num_envs: int
    batch: int
    gives_numbers: bool
    with_log_prob: bool

    def actor(self) -> PolicyActor:
        """Makes the actor, in the process that uses it."""
        runner: PolicyRunner = LiteRTRunner(
            self.converted,
            self.weights,
            # With several processes, each has one core at best.
            threads=1,
            observations=self.inputs,
            states=len(self.initial_state),
        )
        if self.batch > self.num_envs:
            runner = _Repeating(runner, self.num_envs, self.batch)
        return PolicyActor(
            runner,
            self.action,
            self.initial_state,
            self.num_envs,
            self.gives_numbers,
            self.with_log_prob,
        )


@runtime_checkable
class SendingActor(Protocol):
    """An agent's policy that acts in other processes."""

    @property
    def policy(self) -> SentPolicy:
        """The policy, for the environments of one process."""

    @property
    def weights(self) -> list[np.ndarray]:
        """Values of the policy's weights."""


class _Repeating:
    """Runs a policy with a larger batch than there are environments."""

    def __init__(self, runner: PolicyRunner, rows: int, batch: int) -> None:
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
