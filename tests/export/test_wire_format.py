"""Protocol buffers are read as they are written, or refused."""

import pytest

from keras_rl2.export.wire_format import fields


def test_values_of_each_kind():
    message = bytes([0x08, 0x05, 0x11, *range(8), 0x1D, *range(4), 0x22, 1, 9])
    assert [*fields(message)] == [
        (1, 5),
        (2, bytes(range(8))),
        (3, bytes(range(4))),
        (4, b"\x09"),
    ]


def test_the_largest_number():
    assert [*fields(bytes([0x08, *[0xFF] * 9, 0x01]))] == [(1, 2**64 - 1)]


def test_malformed_messages_are_refused():
    for message, words in [
        ([0x08], "not all of one"),
        ([0x08, 0x80], "not all of one"),
        ([0x12, 3, 0, 0], "not all of one"),
        ([0x11, *range(7)], "not all of one"),
        ([0x08, *[0x80] * 10, 0x01], "more than 64 bits"),
        ([0x0B], "a field of kind 3"),
    ]:
        with pytest.raises(ValueError, match=words):
            list(fields(bytes(message)))
