"""Untrusted zip files: checks of all members before one is read.

A few bytes may claim to be gigabytes, a link, or the same bytes as ten other
members.
"""

import stat
import zipfile
from collections.abc import Mapping
from collections.abc import Sequence

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
