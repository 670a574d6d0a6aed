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
    position, length = 0, len(message)
    while position < length:
        # Most numbers are of one byte: a call for each would take most of
        # the time that a file of many small fields can cost.
        key = message[position]
        position += 1
        if key > 127:
            key, position = _varint(message, position - 1)
        number, kind = key >> 3, key & 7
        if kind in (_VARINT, _COUNTED):
            if position < length and message[position] < 128:
                integer = message[position]
                position += 1
            else:
                integer, position = _varint(message, position)
            if kind == _VARINT:
                yield number, integer
                continue
            size = integer
        elif kind in _FIXED:
            size = _FIXED[kind]
        else:
            raise ValueError(f"no protocol buffer: a field of kind {kind}")
        end = position + size
        if end > length:
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
