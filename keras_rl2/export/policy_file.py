"""An exported policy, run from its file."""

import os
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from keras_rl2.basics.arguments import check_flag
from keras_rl2.basics.arguments import check_path
from keras_rl2.basics.arguments import check_positive
from keras_rl2.export import formats
from keras_rl2.spaces.batches import as_batch
from keras_rl2.spaces.space_configs import space_from_config
from keras_rl2.spaces.supported import action_spec
from keras_rl2.spaces.supported import observation_spec
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import is_leaf
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import named_leaves
from keras_rl2.spaces.trees import with_leaves


class PolicyFile:
    """An exported policy, which acts like the agent that was exported.

    Its format determines the runtime: LiteRT, which comes with keras_rl2;
    `onnxruntime`; or TensorFlow for a SavedModel. The first two import neither
    Keras nor TensorFlow. Load files that you trust: a SavedModel is a program,
    which may read and write files, and an ONNX file may name other files for
    its weights.

    Args:
        path: str or path. The result of `agent.export`.
        trusted: bool. Whether a SavedModel may be run. Defaults to `False`.

    Attributes:
        manifest: dict. See `read_manifest`.
        format: str. `"tf_saved_model"`, `"onnx"` or `"litert"`.
        observation_space: `gymnasium.Space`. Of one observation.
        action_space: `gymnasium.Space`. Of one action.

    Raises:
        FileNotFoundError: If there is no such file.
        ImportError: If the runtime is not installed.
        ValueError: If it has no manifest, cannot be run, or is a SavedModel
            that is not `trusted`.

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
        self, path: str | os.PathLike[str], *, trusted: bool = False
    ) -> None:
        check_path(path=path)
        check_flag(trusted=trusted)
        self.format = formats.format_of(path)
        if self.format == formats.SAVED_MODEL and not trusted:
            raise ValueError(
                "Expected `trusted=True` for a SavedModel, which is a program "
                f"that TensorFlow runs. Received: {path}, trusted={trusted}"
            )
        self.manifest = formats.read_manifest(path)
        self.observation_space = space_from_config(
            self.manifest["observation_space"]
        )
        self.action_space = space_from_config(self.manifest["action_space"])
        self._seen = observation_spec(self.observation_space)
        self._action = action_spec(self.action_space)
        self._path = path
        self._runtime = formats.runtime_of(path, self.format)

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
            for each in self.manifest["states"]
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
        memory = self.initial_state(len(leaves(batch)[0]))
        if state is not None:
            pairs = zip(state, memory, strict=True)
            memory = tuple(np.asarray(each, own.dtype) for each, own in pairs)
        if noise is not None:
            noise = np.asarray(noise, np.float32)[None if single else ...]
        given: dict[tuple[str, Any], Any] = {("noise", None): noise}
        given |= {("state", k): each for k, each in enumerate(memory)}
        given |= {("observation", k): v for k, v in named_leaves(batch)}
        outputs = self._run(given)
        rows = 0 if single else ...
        action = [
            outputs["action", path].astype(spec.dtype, copy=False)[rows]
            for path, spec in named_leaves(self._action)
        ]
        found = action[0]
        if not is_leaf(self._action):
            found = with_leaves(self._action, action)
        if state is None:
            return found
        return found, tuple(
            outputs["next_state", index] for index in range(len(memory))
        )

    def _run(self, by_role: Mapping[tuple[str, Any], Any]) -> dict[Any, Any]:
        """Returns the outputs by their role, and path or number."""
        given = {
            each["name"]: np.ascontiguousarray(by_role[_key(each)])
            for each in self.manifest["inputs"]
        }
        try:
            found = self._runtime(given)
        except Exception as error:
            raise formats.no_policy(self._path, error) from error
        return {
            _key(each): found[each["name"]] for each in self.manifest["outputs"]
        }


def _key(array: Mapping[str, Any]) -> tuple[str, Any]:
    """Returns the role of an array, and its path or number."""
    return array["role"], array.get("path", array.get("index"))
