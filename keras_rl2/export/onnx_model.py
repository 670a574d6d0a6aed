"""An ONNX file, read without running anything or reading other files."""

from collections.abc import Iterator
from pathlib import Path

from keras_rl2.export import formats
from keras_rl2.export.wire_format import Value
from keras_rl2.export.wire_format import fields
from keras_rl2.files.plain_files import read_bytes

# More than a protocol buffer can hold.
_MOST_BYTES = 2**31
_MOST_LEVELS = 64
# A network of a thousand layers; all numbers of a weight are one field.
_MOST_FIELDS = 2**19

# Fields of ONNX messages that hold other messages, down to weights.
_WITHIN = {
    "model": {7: "graph", 14: "entry", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {
        **{5: "tensor", 10: "tensor", 22: "sparse", 23: "sparse"},
        **{6: "graph", 11: "graph"},
    },
    "sparse": {1: "tensor", 2: "tensor"},
}
# Fields of a tensor that is in another file.
_EXTERNAL_DATA, _LOCATION = 13, 14


class OnnxModel:
    """The content of an ONNX file, checked to have all weights in it.

    A file could name other files of any path for its weights, and loading it
    would read them.

    Args:
        path: Path.

    Attributes:
        content: bytes. The file.
        metadata: dict from str to bytes. Entries of `metadata_props`.

    Raises:
        ValueError: If it is not an ONNX file, or has weights in others.
    """

    def __init__(self, path: Path) -> None:
        self.content = read_bytes(path, _MOST_BYTES)
        self.metadata: dict[str, bytes] = {}
        self._fields_left = _MOST_FIELDS
        try:
            if "graph" not in self._look_into("model", self.content, 0):
                raise ValueError("no graph is in it")
        except ValueError as error:
            raise formats.no_policy(path, error) from error

    def _look_into(self, kind: str, message: bytes, level: int) -> set[str]:
        """Walks through a message; returns the kinds of messages in it."""
        if level > _MOST_LEVELS:
            raise ValueError(f"graphs more than {_MOST_LEVELS} levels deep")
        found = set()
        for number, value in self._fields(message):
            inner = _WITHIN[kind].get(number)
            if inner is None:
                continue
            if isinstance(value, int):
                raise ValueError(f"a number where a {inner} should be")
            if inner == "tensor":
                self._refuse_external(value)
            elif inner == "entry":
                self._add(value)
            else:
                self._look_into(inner, value, level + 1)
            found.add(inner)
        return found

    def _refuse_external(self, tensor: bytes) -> None:
        """Raises an error for weights in other files."""
        for number, value in self._fields(tensor):
            if number == _EXTERNAL_DATA or (number == _LOCATION and value != 0):
                raise ValueError("weights in other files, which are not read")

    def _add(self, entry: bytes) -> None:
        """Adds an entry to the metadata."""
        parts = dict(self._fields(entry))
        key, value = parts.get(1, b""), parts.get(2, b"")
        if isinstance(key, bytes) and isinstance(value, bytes):
            self.metadata[key.decode(errors="replace")] = value

    def _fields(self, message: bytes) -> Iterator[tuple[int, Value]]:
        """Reads the fields of a message, up to a limit for the whole file."""
        for field in fields(message):
            self._fields_left -= 1
            if self._fields_left < 0:
                raise ValueError(f"more than {_MOST_FIELDS:,} fields")
            yield field
