"""Messages of protocol buffers, read field by field without their classes.

Each field has a number and a value, an int or bytes; whether the bytes are
text, a message or packed numbers is known from the definition of the message.
"""

from collections.abc import Iterator

Value = int | bytes

# Encodings of values: as varints, of fixed sizes, or with their length.
_VARINT, _EIGHT, _COUNTED, _FOUR = 0, 1, 2, 5
_FIXED = {_EIGHT: 8, _FOUR: 4}
_MOST_BITS = 64


def fields(message: bytes) -> Iterator[tuple[int, Value]]:
    """Reads the fields of a message, in the order of the file.

    Args:
        message: bytes.

    Yields:
        Number and value of each.

    Raises:
        ValueError: If `message` is not a valid one.

    Example:

    >>> list(fields(bytes([0x08, 0x96, 0x01, 0x12, 0x02, 0x68, 0x69])))
    [(1, 150), (2, b'hi')]
    """
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, position = _varint(message, position)
            yield number, value
            continue
        if kind == _COUNTED:
            size, position = _varint(message, position)
        elif kind in _FIXED:
            size = _FIXED[kind]
        else:
            raise ValueError(f"no protocol buffer: a field of kind {kind}")
        end = position + size
        if end > len(message):
            raise ValueError("no protocol buffer, or not all of one")
        yield number, message[position:end]
        position = end


def _varint(message: bytes, position: int) -> tuple[int, int]:
    """Returns a number of seven bits per byte, and the position after it."""
    found = 0
    for shift in range(0, _MOST_BITS, 7):
        if position == len(message):
            raise ValueError("no protocol buffer, or not all of one")
        byte = message[position]
        position += 1
        found |= (byte & 127) << shift
        if byte < 128:
            return found, position
    raise ValueError("no protocol buffer: a number of more than 64 bits")
