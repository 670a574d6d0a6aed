"""Disks that are full after so many bytes."""

import contextlib
import resource


@contextlib.contextmanager
def room_for(count):
    """Lets no file become longer than so many bytes.

    Python, HDF5 and TensorFlow meet it as they meet a full disk: a write fails
    in its midst.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def content(path):
    """Returns the bytes of a file, or of all files of a folder."""
    if not path.is_dir():
        return path.read_bytes()
    return {
        str(each.relative_to(path)): each.read_bytes()
        for each in sorted(path.rglob("*"))
        if each.is_file()
    }


def largest(path):
    """Returns how long a file is, or the longest one of a folder."""
    found = content(path)
    return max(map(len, found.values())) if path.is_dir() else len(found)


def sizes(whole, count):
    """Returns so many sizes, from 0 on, at which a file is not yet whole."""
    step = whole / count
    return [int(index * step) for index in range(count)]
