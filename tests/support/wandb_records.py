"""What Weights & Biases has written of a run without a server.

The file is a log in LevelDB's format: blocks of 32 KiB, in each of them pieces
of records behind a checksum, a length and a kind.
"""

import json
import struct
from pathlib import Path

_BLOCK = 2**15
_HEADER = struct.Struct("<IHB")
# Of the file: a name, a magic number, a version.
_BEGINNING = 7
_FULL, _LAST = 1, 4


def read(folder):
    """Returns the rows of an offline run, and its settings.

    Args:
        folder: str or path. As of `run.dir`, of a run that has finished.
    """
    # Installed where it is tested.
    from wandb.proto.wandb_internal_pb2 import Record

    (path,) = Path(folder).parent.glob("*.wandb")
    rows, settings = [], {}
    for data in _records(path.read_bytes()):
        record = Record.FromString(data)
        row = {
            _key(item): json.loads(item.value_json)
            for item in record.history.item
        }
        if row:
            rows.append(row)
        for item in record.config.update:
            settings[_key(item)] = json.loads(item.value_json)
    return rows, settings


def _key(item):
    return item.key or ".".join(item.nested_key)


def _records(data):
    """Yields the records of a log."""
    assert data[:4] == b":W&B"
    at, record = _BEGINNING, b""
    while at < len(data):
        left = _BLOCK - at % _BLOCK
        if left < _HEADER.size:
            at += left
            continue
        _, length, kind = _HEADER.unpack_from(data, at)
        at += _HEADER.size
        record += data[at : at + length]
        at += length
        if kind in (_FULL, _LAST):
            yield record
            record = b""
