"""An exported policy, run from its file."""

import os
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from keras_rl2.basics.arguments import check_path
from keras_rl2.basics.arguments import check_positive
from keras_rl2.export import formats
from keras_rl2.export import manifest as manifests
from keras_rl2.export.runtimes import runtime_of
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.batches import as_batch
from keras_rl2.spaces.space_configs import space_from_config
from keras_rl2.spaces.supported import action_spec
from keras_rl2.spaces.supported import observation_spec
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import is_leaf
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.spaces.trees import named_leaves
from keras_rl2.spaces.trees import with_leaves


class PolicyFile:
    """An exported policy, which acts like the agent that was exported.

    Its format determines the runtime: LiteRT, which comes with keras_rl2;
    `onnxruntime`; or TensorFlow for a SavedModel. The first two import neither
    Keras nor TensorFlow. The file need not be trusted: before a SavedModel is
    loaded, its operations are compared with the list of operations that
    policies need, and an ONNX file with weights in other files raises an error.

    Args:
        path: str or path. The result of `agent.export`.
        manifest: dict or None. A manifest in place of that in the file; None
            for that in the file. Defaults to `None`.

    Attributes:
        manifest: dict. See `read_manifest`.
        format: str. `"tf_saved_model"`, `"onnx"` or `"litert"`.
        observation_space: `gymnasium.Space`. Of one observation.
        action_space: `gymnasium.Space`. Of one action.

    Raises:
        FileNotFoundError: If there is no such file.
        ImportError: If the runtime is not installed.
        ValueError: If it has no manifest, cannot be run, or would do more than
            compute actions.

    Example:

    >>> import tempfile
    >>> import keras_rl2 as rl
    >>> path = tempfile.mkdtemp() + "/policy.tflite"
    >>> agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)
    >>> agent.export(path, format="litert")
    >>> policy = PolicyFile(path)
    >>> observation = np.zeros((5, 4), "float32")
    >>> same = policy.act(observation) == agent.act(
    ...     observation, deterministic=True)
    >>> same.tolist()
    [True, True, True, True, True]
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        manifest: dict[str, Any] | None = None,
    ) -> None:
        check_path(path=path)
        self.format = formats.format_of(path)
        self.manifest = (
            manifests.read_manifest(path)
            if manifest is None
            else manifests.check(manifest, "the argument `manifest`")
        )
        self.observation_space = space_from_config(
            self.manifest["observation_space"]
        )
        self.action_space = space_from_config(self.manifest["action_space"])
        self._seen = observation_spec(self.observation_space)
        self._action = action_spec(self.action_space)
        self._paths = [path for path, _ in named_leaves(self._seen)]
        self._check_arrays(path)
        self._runtime = runtime_of(path, self.format)
        self._path = path
        for key, names in (
            ("inputs", self._runtime.inputs),
            ("outputs", self._runtime.outputs),
        ):
            described = sorted(each["name"] for each in self.manifest[key])
            if described != sorted(names):
                raise formats.no_policy(
                    path, f"{key} {names}, of a manifest with {described}"
                )

    @property
    def deterministic(self) -> bool:
        """Whether it takes the most probable action, without noise."""
        return bool(self.manifest["deterministic"])

    def initial_state(self, batch_size: int) -> tuple[npt.NDArray[Any], ...]:
        """Returns the recurrent state when an episode begins: zeros.

        Args:
            batch_size: int. Episodes, B; 1 for a single observation.

        Returns:
            tuple of `[B, ...]`, for `act`; empty if it is not recurrent.
        """
        check_positive(batch_size=batch_size)
        return tuple(
            np.zeros((batch_size, *each["shape"][1:]), each["dtype"])
            for each in self.manifest.get("states", [])
        )

    def act(
        self,
        observation: Tree[npt.ArrayLike],
        state: Sequence[Any] | None = None,
        noise: npt.ArrayLike | None = None,
    ) -> Any:
        """Chooses an action, or a batch of actions, as `Agent.act` does.

        Args:
            observation: `[...]` or `[B, ...]`. One raw observation or a batch;
                for a Dict or Tuple space a dict or tuple of these.
            state: Sequence of `[B, ...]` or None. The recurrent state: first
                `initial_state(B)`, then that from the last call; None for
                `initial_state(B)`. Defaults to `None`.
            noise: `[...]` or `[B, ...]` float32, of the distribution in the
                manifest; None if it is `deterministic`. Defaults to `None`.

        Returns:
            np.ndarray: the environment's action, or `[B, ...]`; with `state` a
            tuple of that and the state after the step.

        Raises:
            ValueError: If an observation does not fit the space, or noise is
                missing or not expected.
        """
        if (noise is None) != self.deterministic:
            raise ValueError(
                "Expected noise for a policy that was exported with "
                "`deterministic=False`, and for no other. "
                f"Received: noise={noise!r}, "
                f"deterministic={self.deterministic}"
            )
        batch, single = as_batch(self._seen, observation)
        given = dict(zip(self._paths, leaves(batch), strict=True))
        count = len(leaves(batch)[0])
        outputs = self._run(given, self._memory(state, count), noise, single)
        action = self._actions(outputs, count)
        if single:
            action = map_leaves(lambda array: array[0], action)
        if state is None:
            return action
        return action, tuple(outputs[name] for name in self._next_states())

    def _check_arrays(self, path: str | os.PathLike[str]) -> None:
        """Checks that the manifest has the arrays of the spaces."""
        given, found = self.manifest["inputs"], self.manifest["outputs"]
        paths = [path for path, _ in named_leaves(self._action)]
        states = [*range(len(self.manifest.get("states", [])))]
        noises = sum(each["role"] == "noise" for each in given)
        if (
            not {*_of_role(given, "observation", "path")} <= {*self._paths}
            or sorted(_of_role(found, "action", "path")) != sorted(paths)
            or sorted(_of_role(found, "next_state", "index")) != states
            or not {*_of_role(given, "state", "index")} <= {*states}
            or noises > (not self.deterministic)
        ):
            raise formats.no_policy(
                path, "a manifest whose arrays differ from its spaces"
            )

    def _memory(
        self, state: Sequence[Any] | None, count: int
    ) -> Sequence[npt.NDArray[Any]]:
        """Returns the recurrent state; raises an error for other shapes."""
        initial = self.initial_state(count)
        if state is None:
            return initial
        expected = [each.shape for each in initial]
        shapes = None
        if isinstance(state, Sequence):
            shapes = [np.shape(each) for each in state]
        if shapes != expected:
            received = repr(state) if shapes is None else f"shapes {shapes}"
            raise ValueError(
                f"Expected a state of arrays of shapes {expected}, like "
                f"`initial_state({count})`. Received: {received:.200}"
            )
        return [
            np.asarray(each, own.dtype)
            for each, own in zip(state, initial, strict=True)
        ]

    def _run(
        self,
        observation: Mapping[str, npt.NDArray[Any]],
        state: Sequence[npt.NDArray[Any]],
        noise: npt.ArrayLike | None,
        single: bool,
    ) -> dict[str, npt.NDArray[Any]]:
        """Runs the file with an array for each input."""
        given = {}
        for each in self.manifest["inputs"]:
            role = each["role"]
            if role == "noise":
                drawn = np.asarray(noise, np.float32)
                array = drawn[None] if single else drawn
            elif role == "state":
                array = state[each["index"]]
            else:
                array = observation[each.get("path", "")]
            given[each["name"]] = np.ascontiguousarray(array)
        try:
            found = self._runtime(given)
        except Exception as error:
            raise formats.no_policy(self._path, error) from error
        return found

    def _actions(
        self, outputs: Mapping[str, npt.NDArray[Any]], count: int
    ) -> Any:
        """Returns the action in the form of its space: tree, and dtypes."""
        by_path = {
            each.get("path", ""): outputs[each["name"]]
            for each in self.manifest["outputs"]
            if each["role"] == "action"
        }
        arrays = [by_path[path] for path, _ in named_leaves(self._action)]
        action = (
            arrays[0]
            if is_leaf(self._action)
            else with_leaves(self._action, arrays)
        )

        def cast(spec: ArraySpec, array: npt.NDArray[Any]) -> Any:
            shape = (count, *spec.shape)
            if array.shape != shape or array.dtype.kind not in "biuf":
                raise formats.no_policy(
                    self._path,
                    f"an action {array.dtype}{[*array.shape]}, not {shape}",
                )
            return array.astype(spec.dtype, copy=False)

        return map_leaves(cast, self._action, action)

    def _next_states(self) -> list[str]:
        """Returns the names of the outputs for the next state, in order."""
        by_index = {
            each["index"]: each["name"]
            for each in self.manifest["outputs"]
            if each["role"] == "next_state"
        }
        return [name for _, name in sorted(by_index.items())]


def _of_role(
    arrays: Sequence[Mapping[str, Any]], role: str, key: str
) -> list[Any]:
    """Returns the paths, or numbers of states, of arrays with a role."""
    default = "" if key == "path" else None
    return [each.get(key, default) for each in arrays if each["role"] == role]
