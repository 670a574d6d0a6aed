"""Files of plain data."""

import json
import os
from pathlib import Path
from typing import Any


def require_file(path: str | os.PathLike[str]) -> None:
    """Raises an error for a path that is not a file: a folder, device or pipe.

    Args:
        path: str or path.

    Raises:
        FileNotFoundError: If it does not exist.
        ValueError: If it is no file.
    """
    os.stat(path)
    if not os.path.isfile(path):
        raise ValueError(f"Expected a file. Received: {path}, which is none")


def read_json(path: str | os.PathLike[str]) -> Any:
    """Reads a file of JSON.

    Args:
        path: str or path.

    Returns:
        Its content, as plain data.

    Raises:
        FileNotFoundError: If it does not exist.
        ValueError: If it is no file, or no JSON.

    Example:

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "preset.json")
    >>> _ = path.write_text('{"num_envs": 8}')
    >>> read_json(path)
    {'num_envs': 8}
    """
    require_file(path)
    return parse_json(Path(path).read_bytes(), str(path))


def parse_json(content: bytes | str, name: str) -> Any:
    """Parses JSON.

    Args:
        content: bytes or str.
        name: str. Origin of the content, for messages.

    Returns:
        Its content, as plain data.

    Raises:
        ValueError: If it is no JSON, or nested too deep.
    """
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name}: not JSON: {error}") from error
