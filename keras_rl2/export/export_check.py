"""Comparison of an exported policy with its agent."""

import dataclasses
import os
import sys
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from keras_rl2.basics import arguments
from keras_rl2.collecting.policy_actor import Actions
from keras_rl2.data.evaluation import EvaluationDataset
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.export.policy_file import PolicyFile
from keras_rl2.policies.actors import ActorSnapshot
from keras_rl2.policies.policy import Policy
from keras_rl2.spaces.supported import check_same
from keras_rl2.spaces.supported import space_tree
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import leaves

# Differences by the order of operations, and by weights in 16 bits.
_TOLERANCES = {None: 1e-4, "float16": 1e-2}


@dataclasses.dataclass(frozen=True)
class ExportCheck:
    """The result of comparing an exported policy with its agent.

    Attributes:
        manifest: dict. The manifest of the file.
        observations: int. Number of observations on which both acted.
        difference: float. The largest difference of continuous actions.
        disagreements: float. The share of observations with other discrete
            actions.
        episode_return: float. Mean return of the agent.
        file_episode_return: float. That of the file, with the same seeds.
        tolerance: float or None. Largest `difference` and `disagreements` that
            pass; None if the file is judged by its return.
        loss: float. Largest relative drop in return that passes.

    Example:

    >>> import tempfile
    >>> import keras_rl2 as rl
    >>> path = tempfile.mkdtemp() + "/policy.tflite"
    >>> agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)
    >>> agent.export(path, format="litert")
    >>> check = agent.check_export(path, "CartPole-v1", episodes=2)
    >>> check.passed, check.disagreements, check.lost
    (True, 0.0, 0.0)
    """

    manifest: dict[str, Any] = dataclasses.field(repr=False)
    observations: int
    difference: float
    disagreements: float
    episode_return: float
    file_episode_return: float
    tolerance: float | None
    loss: float

    @property
    def lost(self) -> float:
        """Relative drop of the file's return below the agent's."""
        less = self.episode_return - self.file_episode_return
        return less / max(abs(self.episode_return), 1e-9)

    @property
    def passed(self) -> bool:
        """Whether the file acts as the agent does."""
        if self.tolerance is None:
            return self.lost <= self.loss
        worst = max(self.difference, self.disagreements)
        # Not negated, so that NaN does not pass.
        return bool(worst <= self.tolerance)


def check_export(
    policy: Policy,
    filepath: str | os.PathLike[str],
    env: GivenEnv,
    *,
    tolerance: float | None,
    loss: float,
    **playing: Any,
) -> ExportCheck:
    """Compares an exported policy with another; see `Agent.check_export`."""
    agent = policy.agent
    agent.check_loaded()
    arguments.check_path(filepath=filepath)
    given = arguments.present(tolerance=tolerance, loss=loss)
    arguments.check_in_range(
        **{k: (each, 0, sys.maxsize) for k, each in given.items()}
    )
    file = PolicyFile(filepath, trusted=True)
    check_same(
        str(filepath),
        observation=(file.observation_space, policy.acting.observation_space),
        action=(file.action_space, policy.action_space),
    )
    dataset = EvaluationDataset(
        env, deterministic=file.deterministic, **playing
    )
    player: Any = _FileActor(file, policy, dataset.env.num_envs)
    watched = _Compared(
        policy, player, dataset.env.num_envs, file.deterministic
    )
    ours = dataset.play(agent, watched)
    theirs = dataset.play(agent, player)
    if tolerance is None:
        tolerance = _TOLERANCES.get(file.manifest["quantization"])
    return ExportCheck(
        manifest=file.manifest,
        observations=watched.observations,
        difference=watched.difference,
        disagreements=watched.disagreed / max(watched.observations, 1),
        episode_return=ours["episode_return"],
        file_episode_return=theirs["episode_return"],
        tolerance=tolerance,
        loss=loss,
    )


class _FileActor:
    """Acts by a file, by the interface of `PolicyActor`."""

    def __init__(self, file: PolicyFile, policy: Policy, num_envs: int) -> None:
        self._file = file
        self._policy = policy.acting
        self._initial = file.initial_state(num_envs)
        self._state = file.initial_state(num_envs)

    def begin(self, envs: npt.NDArray[Any]) -> None:
        """Begins episodes, `[B]`, with the file's initial recurrent state."""
        for each, initial in zip(self._state, self._initial, strict=True):
            each[envs] = initial[envs]

    def __call__(
        self,
        observation: Tree[np.ndarray],
        noise: npt.NDArray[Any] | None = None,
    ) -> Actions:
        """Returns the environment's actions, whole and by their first part."""
        batch, _ = self._policy.as_batch(observation)
        action, state = self._file.act(batch, self._state, noise)
        self._state = tuple(map(np.array, state))
        return leaves(action)[0], action


class _Compared(ActorSnapshot):
    """Acts by the agent, and compares each action with that of the file."""

    def __init__(
        self,
        policy: Policy,
        file: _FileActor,
        num_envs: int,
        deterministic: bool,
    ) -> None:
        super().__init__(policy, num_envs, deterministic)
        self._file = file
        self._spaces = leaves(space_tree(policy.action_space))
        self.observations = 0
        self.disagreed = 0
        self.difference = 0.0

    def __call__(
        self,
        observation: Tree[np.ndarray],
        noise: npt.NDArray[Any] | None = None,
    ) -> Actions:
        """Runs both, and returns the agent's action."""
        # A GPU may compute in TF32, the file computes in float32.
        with tf.device("/CPU:0"):
            own, action = super().__call__(observation, noise)
        _, other = self._file(observation, noise)
        same = np.ones(self.num_envs, np.bool_)
        for space, ours, theirs in zip(
            self._spaces, leaves(action), leaves(other), strict=True
        ):
            if isinstance(space, gymnasium.spaces.Box):
                worst = np.max(np.abs(ours.astype(np.float64) - theirs))
                self.difference = float(np.maximum(self.difference, worst))
            else:
                equal = np.equal(ours, theirs)
                same &= equal.reshape(self.num_envs, -1).all(axis=-1)
        self.observations += self.num_envs
        self.disagreed += int((~same).sum())
        return own, action

    def begin(self, envs: npt.NDArray[Any]) -> None:
        """Begins episodes in both."""
        super().begin(envs)
        self._file.begin(envs)
