"""The manifest of an exported policy, within its file.

In a SavedModel it is a file in `assets.extra`, the folder for files of others;
in an ONNX file an entry of `metadata_props`; in a LiteRT file an associated
file, a zip archive that is appended to the model. Other programs that load the
model are not affected.
"""

import json
import math
import os
import zipfile
from pathlib import Path
from typing import Any

from keras_rl2.basics.arguments import check_path
from keras_rl2.export import formats
from keras_rl2.export.onnx_model import OnnxModel
from keras_rl2.files.plain_files import MOST_BYTES
from keras_rl2.files.plain_files import parse_json
from keras_rl2.files.plain_files import read_json

#: Name of the manifest within each format.
NAME = "keras_rl2.json"
#: Kind of manifest, and its newest version that this release supports.
KIND, NEWEST = "keras_rl2 policy", 1
# Types of the entries that are needed to run a policy.
_REQUIRED: dict[str, type | tuple[type, ...]] = {
    "algorithm": str,
    "deterministic": bool,
    "observation_space": dict,
    "action_space": dict,
    "inputs": list,
    "outputs": list,
}
# Roles of arrays.
_ROLES = {
    "inputs": ("observation", "noise", "state"),
    "outputs": ("action", "next_state"),
}
_NUMBERED = ("state", "next_state")
_DTYPES = frozenset(
    [
        *("bool", "float16", "float32", "float64"),
        *("int8", "int16", "int32", "int64"),
        *("uint8", "uint16", "uint32", "uint64"),
    ]
)
# As for spaces: a few bytes could ask for any amount of memory.
_MOST_AXES, _MOST_ELEMENTS = 32, 2**24
# The earliest date of zip archives: equal manifests make equal files.
_FIRST_DATE = (1980, 1, 1, 0, 0, 0)


def read_manifest(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the manifest of an exported policy.

    Reading it needs the standard library only.

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
    check_path(path=path)
    format = formats.format_of(path)
    content = _READERS[format](Path(path))
    if content is None:
        raise ValueError(
            "Expected an exported policy with a manifest, as "
            "`agent.export` of keras_rl2 0.2 or later writes. "
            f"Received: {path}, which has none"
        )
    return check(content, str(path))


def has_manifest(path: str | os.PathLike[str]) -> bool:
    """Returns whether an exported policy holds a manifest, valid or not.

    Args:
        path: str or path. See `read_manifest`.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is damaged, or not an exported policy.
    """
    return _READERS[formats.format_of(path)](Path(path)) is not None


def check(manifest: object, name: str) -> dict[str, Any]:
    """Checks that a manifest is valid.

    Args:
        manifest: plain data.
        name: str. Its origin, for error messages.

    Returns:
        dict: the same.

    Raises:
        ValueError: If it is not a manifest of a supported version.
    """
    if not isinstance(manifest, dict) or manifest.get("kind") != KIND:
        raise ValueError(
            f"Expected a manifest of kind {KIND!r}. Received: {name}, with one "
            "of another kind"
        )
    version = manifest.get("version")
    if version not in range(1, NEWEST + 1):
        raise ValueError(
            f"Expected a manifest of a version up to {NEWEST}: it may have "
            f"been written by a newer release of keras_rl2. Received: {name}, "
            f"of version {version!r}"
        )
    for key, kind in _REQUIRED.items():
        if not isinstance(manifest.get(key), kind):
            raise ValueError(
                f"Expected a manifest with {key!r}. Received: {name}, where it "
                f"is {manifest.get(key)!r}"
            )
    for key, roles in _ROLES.items():
        for each in manifest[key]:
            _check_array(each, roles, f"{name}: {key}")
    states = manifest.get("states", [])
    if not isinstance(states, list):
        raise ValueError(
            f"Expected a manifest with a list of states. Received: {name}: "
            f"{states!r:.200}"
        )
    for each in states:
        _check_array(
            {"name": "", "role": "state", **_dict(each)}, ("state",), name
        )
    for each in [*manifest["inputs"], *manifest["outputs"]]:
        known = range(len(states))
        if each["role"] in _NUMBERED and each.get("index") not in known:
            raise ValueError(
                f"Expected the number of a state. Received: {name}: {each}"
            )
    return manifest


def _dict(value: object) -> dict[str, Any]:
    """Returns a dict, and an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def _check_array(each: object, roles: tuple[str, ...], where: str) -> None:
    """Checks the description of an array that is to be allocated."""
    each = _dict(each)
    shape, name = each.get("shape"), each.get("name")
    if (
        not isinstance(name, str)
        or not isinstance(each.get("path", ""), str)
        or each.get("role") not in roles
        or each.get("dtype") not in _DTYPES
        or not isinstance(shape, list)
        or not 1 <= len(shape) <= _MOST_AXES
        or not all(type(size) is int and size > 0 for size in shape[1:])
        or math.prod(shape[1:]) > _MOST_ELEMENTS
    ):
        raise ValueError(
            "Expected name, role, dtype and shape of an array. "
            f"Received: {where}: {each!r:.200}"
        )


def write_manifest(
    path: str | os.PathLike[str], format: str, manifest: dict[str, Any]
) -> None:
    """Adds a manifest to an exported policy.

    Args:
        path: str or path. The file or folder.
        format: str. Its format, one of `formats.ENDINGS`.
        manifest: dict of plain data.
    """
    text = json.dumps(manifest, indent=1)
    _WRITERS[format](Path(path), text)


def _read_saved_model(path: Path) -> Any:
    """Returns the content of the file in `assets.extra`; None without one."""
    file = path / "assets.extra" / NAME
    return read_json(file) if file.exists() else None


def _write_saved_model(path: Path, text: str) -> None:
    """Writes a file in `assets.extra`."""
    folder = path / "assets.extra"
    folder.mkdir(exist_ok=True)
    (folder / NAME).write_text(text, encoding="utf-8")


def _read_litert(path: Path) -> Any:
    """Returns the content of the appended archive; None without one."""
    if not zipfile.is_zipfile(path):
        return None
    try:
        with zipfile.ZipFile(path) as archive, archive.open(NAME) as file:
            content = file.read(MOST_BYTES + 1)
    except KeyError:
        return None
    # Errors of any type: unknown compression, a password, damaged data.
    except Exception as error:
        reason = f"a damaged archive: {error}"
        raise formats.no_policy(path, reason) from error
    if len(content) > MOST_BYTES:
        raise ValueError(
            f"Expected a manifest of at most {MOST_BYTES:,} bytes. Received: "
            f"{path}, with a larger one"
        )
    return parse_json(content, str(path))


def _write_litert(path: Path, text: str) -> None:
    """Appends an archive to the model, as LiteRT does for associated files."""
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            zipfile.ZipInfo(NAME, _FIRST_DATE), text, zipfile.ZIP_DEFLATED
        )


def _read_onnx(path: Path) -> Any:
    """Returns an entry of the metadata; None without one."""
    text = OnnxModel(path).metadata.get(NAME)
    return None if text is None else parse_json(text, str(path))


def _write_onnx(path: Path, text: str) -> None:
    """Adds an entry to the metadata."""
    import onnx

    model = onnx.load(path)
    kept = {each.key: each.value for each in model.metadata_props}
    onnx.helper.set_model_props(model, {**kept, NAME: text})
    onnx.save(model, path)


_READERS = {
    formats.SAVED_MODEL: _read_saved_model,
    formats.LITERT: _read_litert,
    formats.ONNX: _read_onnx,
}
_WRITERS = {
    formats.SAVED_MODEL: _write_saved_model,
    formats.LITERT: _write_litert,
    formats.ONNX: _write_onnx,
}
