"""Small untrusted files, read without following links.

A path of unknown origin may be an endless device, a pipe without a writer, or
gigabytes of brackets.
"""

import json
import os
import stat
import zipfile
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

#: More than any file of settings needs.
MOST_BYTES = 2**20
# Each nested network adds five levels to Keras' config.
_MOST_LEVELS = 100


def require_file(path: str | os.PathLike[str]) -> int:
    """Raises an error for a path that is not a file: a folder, device or pipe.

    Args:
        path: str or path.

    Returns:
        int: its size in bytes.

    Raises:
        FileNotFoundError: If it does not exist.
        ValueError: If it is no file.

    Example:

    >>> require_file("/dev/zero")
    Traceback (most recent call last):
    ...
    ValueError: Expected a file. Received: /dev/zero, which is a device
    """
    status = os.stat(path)
    if stat.S_ISREG(status.st_mode):
        return status.st_size
    kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a device"
    kind = "a pipe" if stat.S_ISFIFO(status.st_mode) else kind
    raise ValueError(f"Expected a file. Received: {path}, which is {kind}")


def read_bytes(
    path: str | os.PathLike[str], most_bytes: int = MOST_BYTES
) -> bytes:
    """Reads a file, up to a maximum size.

    Args:
        path: str or path.
        most_bytes: int. How large it may be. Defaults to `2**20`.

    Returns:
        bytes: its content.

    Raises:
        FileNotFoundError: If it does not exist.
        ValueError: If it is no file, or a larger one.
    """
    size = require_file(path)
    with open(path, "rb") as file:
        # At most the file's size, since `read` allocates the requested size.
        content = file.read(min(size, most_bytes) + 1)
        # Virtual files of the system are longer than their reported size.
        while len(content) <= most_bytes and (more := file.read(MOST_BYTES)):
            content += more
    if len(content) > most_bytes:
        raise ValueError(
            f"Expected a file of at most {most_bytes:,} bytes. Received: "
            f"{path}, which has more"
        )
    return content


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
        ValueError: If it is no file, a larger one, no JSON, or nested too
            deep.

    Example:

    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp(), "preset.json")
    >>> _ = path.write_text('{"num_envs": 8}')
    >>> read_json(path)
    {'num_envs': 8}
    """
    return parse_json(read_bytes(path, most_bytes), str(path))


def parse_json(content: bytes, name: str) -> Any:
    """Parses JSON, up to a maximum depth.

    Args:
        content: bytes.
        name: str. Origin of the content, for messages.

    Returns:
        Its content, as plain data.

    Raises:
        ValueError: If it is no JSON, or nested too deep.
    """
    try:
        value = json.loads(content)
    except RecursionError:
        value = None
        levels = _MOST_LEVELS + 1
    except ValueError as error:
        raise ValueError(f"{name}: not JSON: {error}") from error
    else:
        levels = _levels(value)
    if levels > _MOST_LEVELS:
        raise ValueError(
            f"Expected JSON of at most {_MOST_LEVELS} levels. "
            f"Received: {name}, which has more"
        )
    return value


def _levels(value: object) -> int:
    """Returns the nesting depth of lists and objects."""
    levels, here = 0, [value]
    while here and levels <= _MOST_LEVELS:
        inner: list[Any] = []
        for each in here:
            if isinstance(each, dict):
                inner += each.values()
            elif isinstance(each, list):
                inner += each
        here = inner
        levels += 1
    return levels


_ENCRYPTED = 0x1
# Weights are hardly compressible.
_MOST_EXPANSION = 16


def check_members(
    members: Sequence[zipfile.ZipInfo], size: int, most: Mapping[str, int]
) -> None:
    """Raises an error for members that are not files, or too large.

    Args:
        members: Sequence of `zipfile.ZipInfo`. All members of an archive.
        size: int. Bytes of the archive itself.
        most: Mapping from names to their largest size in bytes; others may
            have sixteen times the size of the archive.

    Raises:
        ValueError: If a member does not fit, two have the same name, or members
            share bytes.

    Example:

    >>> import io
    >>> with zipfile.ZipFile(io.BytesIO(), "w") as file:
    ...     file.writestr("config.json", "{}")
    ...     check_members(file.infolist(), 200, {"config.json": 1})
    Traceback (most recent call last):
    ...
    ValueError: config.json would be 2 bytes, of 2 in the file
    """
    for member in members:
        name = member.filename
        mode = member.external_attr >> 16
        if mode and not stat.S_ISREG(mode) and stat.S_IFMT(mode):
            raise ValueError(f"{name} is no file")
        if member.flag_bits & _ENCRYPTED:
            raise ValueError(f"{name} is encrypted")
        if member.file_size > min(
            most.get(name, _MOST_EXPANSION * size),
            _MOST_EXPANSION * max(member.compress_size, 2**10),
        ):
            raise ValueError(
                f"{name} would be {member.file_size:,} bytes, of "
                f"{member.compress_size:,} in the file"
            )
    if len({member.filename for member in members}) != len(members):
        raise ValueError("an archive with two members of one name")
    if sum(member.compress_size for member in members) > size:
        raise ValueError("an archive whose members overlap")
