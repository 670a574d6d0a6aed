"""The archive that a saved agent is."""

import zipfile
from typing import Any
from typing import Self

from keras_rl2.files.plain_archives import check_members
from keras_rl2.files.plain_files import parse_json
from keras_rl2.files.plain_files import require_file
from keras_rl2.files.sealing import is_sealed

_CONFIG = "config.json"
_METADATA = "metadata.json"
_WEIGHTS = "model.weights.h5"
# A network of a thousand layers.
_MOST_CONFIG_BYTES = 2**22
_MOST_METADATA_BYTES = 2**16


class Archive:
    """The members of a `.keras` file, of no other names and of sane sizes.

    Args:
        path: str. The file.

    Raises:
        ValueError: If it is no such archive.
        zipfile.BadZipFile: If it is none at all.
    """

    def __init__(self, path: str) -> None:
        size = require_file(path)
        self._file = open(path, "rb")  # noqa: SIM115
        try:
            is_sealed(self._file)
            self._zip = zipfile.ZipFile(self._file)
            _check_members(self._zip.infolist(), size)
        except zipfile.BadZipFile as error:
            self._file.close()
            raise ValueError(
                f"not a .keras file, or not all of one ({error})"
            ) from error
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()
        self._file.close()

    def config(self) -> Any:
        """Returns the config of the agent, as plain data."""
        return parse_json(self._zip.read(_CONFIG), _CONFIG)

    def weights(self) -> bytes:
        """Returns the file of weights."""
        return self._zip.read(_WEIGHTS)


def _check_members(members: list[zipfile.ZipInfo], size: int) -> None:
    """Raises an error for members that Keras does not write."""
    names = sorted(member.filename for member in members)
    expected = sorted((_CONFIG, _METADATA, _WEIGHTS))
    if names != expected:
        shown = ", ".join(map(repr, names[:5]))
        raise ValueError(
            f"an archive with {len(names)} members, {shown}, in the place of "
            f"{', '.join(expected)}"
        )
    most = {_CONFIG: _MOST_CONFIG_BYTES, _METADATA: _MOST_METADATA_BYTES}
    check_members(members, size, most)
