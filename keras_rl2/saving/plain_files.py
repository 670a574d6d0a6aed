"""Files of plain data, of which sizes are checked before they are read."""

import json
import os
from pathlib import Path
from typing import Any

#: More than any file of settings needs.
MOST_BYTES = 2**20


def require_file(path: str | os.PathLike[str]) -> int:
    """Raises an error for a path that is not a file: a folder, device or pipe.

    Args:
        path: str or path.

    Returns:
        int: its size in bytes.

    Raises:
        FileNotFoundError: If it does not exist.
        ValueError: If it is no file.
    """
    size = os.stat(path).st_size
    if not os.path.isfile(path):
        raise ValueError(f"Expected a file. Received: {path}, which is none")
    return size


def read_json(
    path: str | os.PathLike[str], most_bytes: int = MOST_BYTES
) -> Any:
    """Reads a file of JSON.

    Args:
        path: str or path.
        most_bytes: int. How large it may be. Defaults to `2**20`.

    Returns:
        Its content, as plain data.

    Raises:
        FileNotFoundError: If it does not exist.
        ValueError: If it is no file, a larger one, or no JSON.

    Example:

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "preset.json")
    >>> _ = path.write_text('{"num_envs": 8}')
    >>> read_json(path)
    {'num_envs': 8}
    """
    size = require_file(path)
    if size > most_bytes:
        raise ValueError(
            f"Expected a file of at most {most_bytes:,} bytes. Received: "
            f"{path}, of {size:,}"
        )
    return parse_json(Path(path).read_bytes(), str(path))


def parse_json(content: bytes, name: str) -> Any:
    """Parses JSON.

    Args:
        content: bytes.
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
