"""Comparison of an exported policy with its agent."""

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from keras_rl2.basics.arguments import check_in_range
from keras_rl2.collecting.policy_actor import Actions
from keras_rl2.collecting.policy_actor import PolicyActor
from keras_rl2.data.evaluation import EvaluationDataset
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.export.export_manifest import manifest_of
from keras_rl2.export.formats import format_of
from keras_rl2.export.manifest import has_manifest
from keras_rl2.export.policy_file import PolicyFile
from keras_rl2.export.runtimes import runtime_of
from keras_rl2.policies.policy import ModelPolicy
from keras_rl2.spaces.supported import action_spec
from keras_rl2.spaces.supported import check_same
from keras_rl2.spaces.supported import same_space
from keras_rl2.spaces.supported import space_tree
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves

# Tolerated differences of an action: by the order of operations, and by weights
# in 16 bits.
_TOLERANCES = {None: 1e-4, "float16": 1e-2}
# Upper bound of `loss` and `tolerance`, which are shares and differences.
_MOST = 1e9


@dataclasses.dataclass(frozen=True)
class ExportCheck:
    """The result of comparing an exported policy with its agent.

    Attributes:
        manifest: dict. The manifest of the file.
        observations: int. Number of observations on which both acted.
        difference: float. The largest difference of a number of an action;
            0.0 for discrete actions.
        disagreements: float. The share of observations with different discrete
            actions; 0.0 for continuous ones.
        episode_return: float. Mean return of the agent.
        file_episode_return: float. Mean return of the file, in environments
            with the same seeds.
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
    agent: ModelPolicy,
    filepath: str | os.PathLike[str],
    env: GivenEnv,
    *,
    tolerance: float | None,
    loss: float,
    **kwargs: Any,
) -> ExportCheck:
    """Plays an exported policy against its agent; see `Agent.check_export`.

    Args:
        agent: `ModelPolicy`. The agent that was exported.
        filepath: str or path. The exported file or folder.
        env: An environment or id string.
        tolerance: float or None. See `Agent.check_export`.
        loss: float. See `Agent.check_export`.
        **kwargs: Arguments of an `EvaluationDataset`, but `deterministic`.

    Returns:
        `ExportCheck`.

    Raises:
        ValueError: If the file is of another agent or environment.
    """
    check_in_range(loss=(loss, 0.0, _MOST))
    if tolerance is not None:
        check_in_range(tolerance=(tolerance, 0.0, _MOST))
    file = _open(agent, filepath)
    for own, other in (
        (agent.observation_space, file.observation_space),
        (agent.action_space, file.action_space),
    ):
        if not same_space(own, other):
            raise ValueError(
                f"Expected the export of an agent with the space {own}. "
                f"Received: {filepath}, of {file.manifest['algorithm']} with "
                f"{other}"
            )
    dataset = EvaluationDataset(env, deterministic=file.deterministic, **kwargs)
    check_same(
        type(agent).__name__,
        observation=(agent.observation_space, dataset.env.observation_space),
        action=(agent.action_space, dataset.env.action_space),
    )
    count = dataset.env.num_envs
    watched = _Compared(agent, file, count)
    ours = dataset.play(agent, watched)
    theirs = dataset.play(agent, _file_actor(file, count))
    quantization = file.manifest.get("quantization")
    if tolerance is None:
        tolerance = _TOLERANCES.get(quantization)
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


def _open(agent: ModelPolicy, filepath: str | os.PathLike[str]) -> PolicyFile:
    """Opens a file; describes one of an earlier release by the agent."""
    if has_manifest(filepath):
        return PolicyFile(filepath)
    runtime = runtime_of(filepath, format_of(filepath))
    deterministic = "noise" not in runtime.inputs
    names = runtime.inputs, runtime.outputs
    return PolicyFile(filepath, manifest_of(agent, names, deterministic))


class _FunctionRunner:
    """Runs the agent's policy by TensorFlow, as `act` does."""

    def __init__(self, agent: ModelPolicy, deterministic: bool) -> None:
        self._function = agent.policy_function(deterministic)

    def set_weights(self, weights: list[npt.NDArray[Any]]) -> None:
        """Does nothing: the function uses the agent's weights."""

    def __call__(
        self,
        observation: Tree[np.ndarray],
        noise: npt.NDArray[Any] | None,
        memory: Sequence[npt.NDArray[Any]] = (),
    ) -> list[npt.NDArray[Any]]:
        """Calls the function."""
        given = [*leaves(observation), *([] if noise is None else [noise])]
        return [each.numpy() for each in self._function(*given, *memory)]


class _FileRunner:
    """Runs a file by the interface of the agent's policy."""

    def __init__(self, file: PolicyFile) -> None:
        self._file = file

    def set_weights(self, weights: list[npt.NDArray[Any]]) -> None:
        """Does nothing: the weights are in the file."""

    def __call__(
        self,
        observation: Tree[np.ndarray],
        noise: npt.NDArray[Any] | None,
        memory: Sequence[npt.NDArray[Any]] = (),
    ) -> list[npt.NDArray[Any]]:
        """Returns the environment's actions, and the state."""
        if not memory:
            action = self._file.act(observation, noise=noise)
            return _as_outputs(action)
        begins, *state = memory
        # A file has no input for the begin of episodes: zeros are the state.
        state = [
            np.where(np.reshape(begins, (-1, *[1] * (each.ndim - 1))), 0, each)
            for each in state
        ]
        action, after = self._file.act(observation, state, noise)
        return [*_as_outputs(action), *after]


def _as_outputs(action: Tree[np.ndarray]) -> list[npt.NDArray[Any]]:
    """Returns an action in the order of a policy's outputs."""
    arrays = leaves(action)
    return [arrays[0], *arrays]


def _file_actor(file: PolicyFile, num_envs: int) -> PolicyActor:
    """Returns an actor that runs a file, with its state."""
    return PolicyActor(
        _FileRunner(file),
        action_spec(file.action_space),
        file.initial_state(num_envs),
        num_envs,
        gives_numbers=False,
    )


class _Compared(PolicyActor):
    """Acts by the agent, and compares each action with that of the file."""

    def __init__(
        self, agent: ModelPolicy, file: PolicyFile, num_envs: int
    ) -> None:
        spec = action_spec(agent.action_space)
        runner = _FunctionRunner(agent, file.deterministic)
        super().__init__(
            runner, spec, agent.initial_state(num_envs), num_envs, False
        )
        self._other = _file_actor(file, num_envs)
        self._spec = spec
        self._spaces = leaves(space_tree(agent.action_space))
        self.observations = 0
        self.disagreed = 0
        self.difference = 0.0

    def __call__(
        self,
        observation: Tree[np.ndarray],
        noise: npt.NDArray[Any] | None = None,
    ) -> Actions:
        """Runs both, and returns the agent's action."""
        own, action = super().__call__(observation, noise)
        _, other = self._other(observation, noise)
        self._compare(action, other)
        action = map_leaves(
            lambda one, array: array.astype(one.dtype, copy=False),
            self._spec,
            action,
        )
        return own, action

    def begin(self, envs: npt.NDArray[Any]) -> None:
        """Begins episodes in both."""
        super().begin(envs)
        self._other.begin(envs)

    def _compare(
        self, action: Tree[np.ndarray], other: Tree[np.ndarray]
    ) -> None:
        """Updates the largest difference and the disagreements."""
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
