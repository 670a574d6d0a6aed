"""The manifest of an exported policy, within its file.

In a SavedModel it is a file in `assets.extra`, the folder for files of others;
in an ONNX file an entry of `metadata_props`; in a LiteRT file an associated
file, a zip archive that is appended to the model. Other programs that load the
model are not affected.
"""

import json
import os
import zipfile
from pathlib import Path
from typing import Any

from keras_rl2.basics.arguments import check_path
from keras_rl2.export import formats
from keras_rl2.export.runtimes import onnx_session
from keras_rl2.saving.plain_files import parse_json
from keras_rl2.saving.plain_files import read_json

#: Name of the manifest within each format.
NAME = "keras_rl2.json"
#: Kind of manifest, and its newest version that this release supports.
KIND, NEWEST = "keras_rl2 policy", 1
# The entries that are needed to run a policy.
_REQUIRED = (
    *("algorithm", "deterministic", "observation_space", "action_space"),
    *("inputs", "outputs", "states"),
)
# The earliest date of zip archives: equal manifests make equal files.
_FIRST_DATE = (1980, 1, 1, 0, 0, 0)


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
    check_path(path=path)
    format = formats.format_of(path)
    content = _READERS[format](Path(path))
    if content is None:
        raise ValueError(
            "Expected an exported policy with a manifest, as "
            "`agent.export` of keras_rl2 0.2 or later writes. "
            f"Received: {path}, which has none"
        )
    return _check(content, path)


def _check(manifest: Any, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns a manifest; raises an error for one that cannot be used."""
    if not isinstance(manifest, dict) or manifest.get("kind") != KIND:
        raise ValueError(
            f"Expected a manifest of kind {KIND!r}. Received: {path}, with one "
            "of another kind"
        )
    version = manifest.get("version")
    if version != NEWEST:
        raise ValueError(
            f"Expected a manifest of version {NEWEST}: it may have been "
            "written by a newer release of keras_rl2. Received: "
            f"{path}, of version {version!r}"
        )
    missing = [key for key in _REQUIRED if key not in manifest]
    if missing:
        raise ValueError(
            f"Expected a manifest with {', '.join(_REQUIRED)}. Received: "
            f"{path}, without {', '.join(missing)}"
        )
    return manifest


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
    with zipfile.ZipFile(path) as archive:
        if NAME not in archive.namelist():
            return None
        return parse_json(archive.read(NAME), str(path))


def _write_litert(path: Path, text: str) -> None:
    """Appends an archive to the model, as LiteRT does for associated files."""
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            zipfile.ZipInfo(NAME, _FIRST_DATE), text, zipfile.ZIP_DEFLATED
        )


def _read_onnx(path: Path) -> Any:
    """Returns an entry of the metadata; None without one."""
    try:
        session = onnx_session(str(path))
    except ImportError:
        raise
    except Exception as error:
        raise formats.no_policy(path, error) from error
    text = session.get_modelmeta().custom_metadata_map.get(NAME)
    return None if text is None else parse_json(text.encode(), str(path))


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
