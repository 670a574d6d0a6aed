"""The formats of exported policies: detection, manifests, and running them.

The manifest of a SavedModel is a file in `assets.extra`, the folder for files
of others; in an ONNX file it is an entry of `metadata_props`; in a LiteRT file
an associated file, a zip archive that is appended to the model. Other programs
that load the model are not affected.
"""

import json
import os
import textwrap
import threading
import zipfile
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import contextmanager
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from keras_rl2.basics import arguments
from keras_rl2.saving.atomic_files import parse_json
from keras_rl2.saving.atomic_files import read_json
from keras_rl2.spaces.batches import as_batch
from keras_rl2.spaces.space_configs import space_from_config
from keras_rl2.spaces.supported import action_spec
from keras_rl2.spaces.supported import observation_spec
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import is_leaf
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import named_leaves
from keras_rl2.spaces.trees import with_leaves

SAVED_MODEL = "tf_saved_model"
ONNX = "onnx"
LITERT = "litert"
#: Formats whose files have a manifest, and the endings of their names.
ENDINGS = {SAVED_MODEL: "", ONNX: ".onnx", LITERT: ".tflite"}

FLOAT16, INT8 = "float16", "int8"
#: Ways to make a LiteRT file smaller.
QUANTIZATIONS = (FLOAT16, INT8)

#: From all inputs of a file to all of its outputs, by their names.
Runtime: TypeAlias = Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]

#: Name of the manifest within each format.
NAME = "keras_rl2.json"
_EXTRA = "assets.extra"
#: Kind of manifest, and its newest version that this release supports.
KIND, NEWEST = "keras_rl2 policy", 1
# The earliest date of zip archives: equal manifests make equal files.
_FIRST_DATE = (1980, 1, 1, 0, 0, 0)
_LONGEST_REASON = 300
# It follows the offset of the root in each LiteRT file.
_LITERT_IDENTIFIER = b"TFL3"
# The signature of exported policies.
_SIGNATURE = "serving_default"


def format_of(path: str | os.PathLike[str]) -> str:
    """Returns the format of an exported policy, detected from its content."""
    path = Path(path)
    if path.is_dir():
        if not (path / "saved_model.pb").is_file():
            raise no_policy(path, "a folder without saved_model.pb")
        return SAVED_MODEL
    with path.open("rb") as file:
        begins = file.read(8)
    return LITERT if begins[4:] == _LITERT_IDENTIFIER else ONNX


def no_policy(path: str | os.PathLike[str], reason: object) -> ValueError:
    """Returns the error for a file that holds no exported policy."""
    text = str(reason) or type(reason).__name__
    return ValueError(
        "Expected an exported policy: a .tflite or .onnx file, or the folder "
        f"of a SavedModel. Received: {path}: "
        f"{textwrap.shorten(text, _LONGEST_REASON, placeholder=' ...')}"
    )


@contextmanager
def _blamed_on(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turns errors of a runtime into that of a file without a policy."""
    try:
        yield
    except ImportError:
        raise
    except Exception as error:
        raise no_policy(path, error) from error


def read_manifest(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the manifest of an exported policy.

    That of an ONNX file is read by `onnxruntime`, the others by the standard
    library.

    Args:
        path: str or path. The result of `agent.export`: a `.tflite` or
            `.onnx` file, or the folder of a SavedModel.

    Returns:
        dict of plain data: `algorithm`; `keras_rl2`, `keras` and `tensorflow`,
        the versions that wrote it; `deterministic`; `quantization`, None,
        `"float16"` or `"int8"`; `observation_space` and `action_space`;
        `inputs` and `outputs`, for each array its `name` in the file, `shape`
        (None for the batch), `dtype`, `role` (`"observation"`, `"noise"`,
        `"state"`; `"action"`, `"next_state"`) and, within a Dict or Tuple,
        its `path`; and `noise`, the distributions of the noise.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it holds no manifest, like files of releases before 0.2,
            or an invalid one.

    Example:

    >>> import tempfile
    >>> import keras_rl2 as rl
    >>> path = tempfile.mkdtemp() + "/policy.tflite"
    >>> agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)
    >>> agent.export(path, format="litert")
    >>> manifest = read_manifest(path)
    >>> manifest["algorithm"], manifest["deterministic"]
    ('PPO', True)
    >>> [(each["name"], each["shape"]) for each in manifest["inputs"]]
    [('observation', [None, 4])]
    """
    arguments.check_path(path=path)
    format = format_of(path)
    content = _read(Path(path), format)
    found: dict[str, Any] = content if isinstance(content, dict) else {}
    if found.get("kind") != KIND or found.get("version") != NEWEST:
        raise ValueError(
            f"Expected a manifest of kind {KIND!r} and version {NEWEST}, as "
            "`agent.export` of keras_rl2 0.2 or later writes it. Received: "
            f"{path}, with kind {found.get('kind')!r} and version "
            f"{found.get('version')!r}"
        )
    return found


def write_manifest(path: Path, format: str, manifest: dict[str, Any]) -> None:
    """Adds a manifest to an exported policy."""
    text = json.dumps(manifest, indent=1)
    if format == SAVED_MODEL:
        folder = path / _EXTRA
        folder.mkdir(exist_ok=True)
        (folder / NAME).write_text(text, encoding="utf-8")
    elif format == LITERT:
        with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
            entry = zipfile.ZipInfo(NAME, _FIRST_DATE)
            archive.writestr(entry, text, zipfile.ZIP_DEFLATED)
    else:
        import onnx

        model = onnx.load(path)
        properties = {each.key: each.value for each in model.metadata_props}
        onnx.helper.set_model_props(model, {**properties, NAME: text})
        onnx.save(model, path)


def _read(path: Path, format: str) -> Any:
    """Returns the content of a manifest; None for a file without one."""
    text: str | bytes | None = None
    if format == SAVED_MODEL:
        file = path / _EXTRA / NAME
        return read_json(file) if file.exists() else None
    if format == ONNX:
        with _blamed_on(path):
            session = onnx_session(str(path))
        text = session.get_modelmeta().custom_metadata_map.get(NAME)
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if NAME in archive.namelist():
                text = archive.read(NAME)
    return None if text is None else parse_json(text, str(path))


def runtime_of(path: str | os.PathLike[str], format: str) -> Runtime:
    """Returns the runtime of a file."""
    runtimes = {LITERT: litert_runner, ONNX: _onnx, SAVED_MODEL: _saved_model}
    with _blamed_on(path):
        runner: Any = runtimes[format](str(path))
    return lambda inputs: runner(**inputs)


def litert_runner(path: str) -> Any:
    """Returns a runtime of a `.tflite` file."""
    from ai_edge_litert.interpreter import Interpreter

    return Interpreter(model_path=path).get_signature_runner(_SIGNATURE)


def onnx_session(path: str) -> Any:
    """Returns a runtime of an `.onnx` file."""
    import onnxruntime

    return onnxruntime.InferenceSession(
        path, providers=["CPUExecutionProvider"]
    )


def _onnx(path: str) -> Callable[..., dict[str, np.ndarray]]:
    """Returns the runtime of an `.onnx` file."""
    session = onnx_session(path)
    names = [each.name for each in session.get_outputs()]
    return lambda **inputs: dict(
        zip(names, session.run(names, inputs), strict=True)
    )


def _saved_model(path: str) -> Callable[..., dict[str, np.ndarray]]:
    """Returns the runtime of the folder of a SavedModel."""
    import tensorflow as tf

    model: Any = tf.saved_model.load(path)

    def run(**inputs: np.ndarray) -> dict[str, np.ndarray]:
        tensors = {key: tf.constant(each) for key, each in inputs.items()}
        # A signature alone does not keep the variables alive.
        found = model.signatures[_SIGNATURE](**tensors)
        return {key: each.numpy() for key, each in found.items()}

    return run


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
        arguments.check_path(path=path)
        arguments.check_flag(trusted=trusted)
        self.format = format_of(path)
        if self.format == SAVED_MODEL and not trusted:
            raise ValueError(
                "Expected `trusted=True` for a SavedModel, which is a program "
                f"that TensorFlow runs. Received: {path}, trusted={trusted}"
            )
        self.manifest = read_manifest(path)
        self.observation_space = space_from_config(
            self.manifest["observation_space"]
        )
        self.action_space = space_from_config(self.manifest["action_space"])
        self._spec = observation_spec(self.observation_space)
        self._action = action_spec(self.action_space)
        self._path = path
        self._runtime = runtime_of(path, self.format)
        # LiteRT's interpreter holds the arrays of one call.
        litert = self.format == LITERT
        self._alone: Any = threading.Lock() if litert else nullcontext()

    @property
    def deterministic(self) -> bool:
        """Whether it takes the most probable action, without noise."""
        return bool(self.manifest["deterministic"])

    def initial_state(self, batch_size: int) -> tuple[npt.NDArray[Any], ...]:
        """Returns the recurrent state when an episode begins.

        Args:
            batch_size: int. Episodes, B; 1 for a single observation.

        Returns:
            tuple of `[B, ...]`, for `act`; empty if it is not recurrent.
        """
        arguments.check_positive(batch_size=batch_size)
        return tuple(
            np.repeat(np.array([each["initial"]], each["dtype"]), batch_size, 0)
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
        batch, single = as_batch(self._spec, observation)
        memory = self.initial_state(len(leaves(batch)[0]))
        if state is not None:
            pairs = zip(state, memory, strict=True)
            memory = tuple(
                np.asarray(each, initial.dtype) for each, initial in pairs
            )
        if noise is not None:
            noise = np.asarray(noise, np.float32)[None if single else ...]
        inputs: dict[tuple[str, Any], Any] = {("noise", None): noise}
        inputs |= {("state", k): each for k, each in enumerate(memory)}
        inputs |= {("observation", k): v for k, v in named_leaves(batch)}
        outputs = self._run(inputs)
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
        inputs = {
            each["name"]: np.ascontiguousarray(by_role[_key(each)])
            for each in self.manifest["inputs"]
        }
        with _blamed_on(self._path), self._alone:
            found = self._runtime(inputs)
        return {
            _key(each): found[each["name"]] for each in self.manifest["outputs"]
        }


def _key(array: Mapping[str, Any]) -> tuple[str, Any]:
    """Returns the role of an array, and its path or number."""
    return array["role"], array.get("path", array.get("index"))
