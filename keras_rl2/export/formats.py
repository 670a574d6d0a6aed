"""The formats of exported policies, and their detection."""

import os
import textwrap
from pathlib import Path

from keras_rl2.saving.plain_files import require_file

SAVED_MODEL = "tf_saved_model"
ONNX = "onnx"
LITERT = "litert"
#: Formats whose files have a manifest, and the endings of their names.
ENDINGS = {SAVED_MODEL: "", ONNX: ".onnx", LITERT: ".tflite"}

FLOAT16, INT8 = "float16", "int8"
#: Ways to make a LiteRT file smaller.
QUANTIZATIONS = (FLOAT16, INT8)

_LONGEST_REASON = 300
# It follows the offset of the root in each LiteRT file.
_LITERT_IDENTIFIER = b"TFL3"


def format_of(path: str | os.PathLike[str]) -> str:
    """Returns the format of an exported policy, detected from its content.

    Args:
        path: str or path. A folder or a file.

    Returns:
        str: one of `ENDINGS`.

    Raises:
        FileNotFoundError: If the path does not exist.
        ValueError: If it is a folder without a SavedModel, or neither a folder
            nor a file.
    """
    path = Path(path)
    if path.is_dir():
        if not (path / "saved_model.pb").is_file():
            raise no_policy(path, "a folder without saved_model.pb")
        return SAVED_MODEL
    require_file(path)
    with path.open("rb") as file:
        begins = file.read(8)
    return LITERT if begins[4:] == _LITERT_IDENTIFIER else ONNX


def no_policy(path: str | os.PathLike[str], reason: object) -> ValueError:
    """Returns the error for a file that holds no exported policy.

    Args:
        path: str or path. The file or folder.
        reason: str or exception. The reason for the error.
    """
    text = str(reason) or type(reason).__name__
    return ValueError(
        "Expected an exported policy: a .tflite or .onnx file, or the folder "
        f"of a SavedModel. Received: {path}: "
        f"{textwrap.shorten(text, _LONGEST_REASON, placeholder=' ...')}"
    )
