"""The formats of exported policies, and how to tell a file's."""

import os
from pathlib import Path

SAVED_MODEL = "tf_saved_model"
ONNX = "onnx"
LITERT = "litert"
#: Formats whose files say what they hold, and how their names end.
ENDINGS = {SAVED_MODEL: "", ONNX: ".onnx", LITERT: ".tflite"}

# Of every file of LiteRT, after the offset of its root.
_LITERT_IDENTIFIER = b"TFL3"


def format_of(path: str | os.PathLike[str]) -> str:
    """Tells the format of an exported policy, by what is there.

    Args:
        path: str or path. A folder or a file.

    Returns:
        str: one of `ENDINGS`.

    Raises:
        FileNotFoundError: If there is nothing.
        ValueError: If it is a folder that holds no SavedModel.
    """
    path = Path(path)
    if path.is_dir():
        if not (path / "saved_model.pb").is_file():
            raise ValueError(
                "Expected an exported policy: a .tflite or .onnx file, or the "
                f"folder of a SavedModel. Received: {path}, a folder without "
                "saved_model.pb"
            )
        return SAVED_MODEL
    with path.open("rb") as file:
        begins = file.read(8)
    return LITERT if begins[4:] == _LITERT_IDENTIFIER else ONNX
