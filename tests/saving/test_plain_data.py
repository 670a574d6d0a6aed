"""Values come back from JSON and arrays with their types and order."""

import json
import math
from collections import Counter
from collections import OrderedDict
from collections import deque

import numpy as np
import pytest

from keras_rl2.saving import plain_data

GENERATORS = [
    np.random.PCG64,
    np.random.PCG64DXSM,
    np.random.MT19937,
    np.random.Philox,
    np.random.SFC64,
]


def round_trip(value):
    """Writes a value and reads it, by way of the text of JSON."""
    taken, arrays = plain_data.to_json(value)
    return plain_data.from_json(json.loads(json.dumps(taken)), arrays)


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, -(2**80), 0.1, -0.0, math.inf, "", "é\ud800\x00"),
        *([], [1, [2.5, None]], (), (1, (2,), [3])),
        *({}, {"a": {"b": (1,)}}, {1: "a", (2, "b"): None, None: 3}),
        *({"$array": "0"}, {"$tuple": [1], "b": 2}, {"0": 1}),
    ],
)
def test_values_and_their_kinds(value):
    again = round_trip(value)
    assert again == value
    assert type(again) is type(value), value
    assert repr(again) == repr(value)


def test_nan_comes_back():
    assert math.isnan(round_trip([math.nan])[0])


def test_order_is_kept():
    value = {"b": 1, "a": 2, 3: 0}
    assert [*round_trip(value)] == ["b", "a", 3]


@pytest.mark.parametrize(
    ("value", "as_array"),
    [
        ([0.1, -0.0, math.inf] * 100, True),
        ([1, -(2**63), 2**63 - 1] * 100, True),
        ([1, 2**80] * 100, False),
        ([1, 2.0] * 100, False),
        ([True] * 300, False),
        ([[1.0], [2.0, 3.0]] * 100, False),
    ],
)
def test_long_lists_of_numbers_are_arrays(value, as_array):
    assert repr(round_trip(value)) == repr(value)
    assert bool(plain_data.to_json(value)[1]) == as_array


@pytest.mark.parametrize("maxlen", [None, 3])
def test_deques(maxlen):
    again = round_trip(deque([1, (2,)], maxlen=maxlen))
    assert again == deque([1, (2,)])
    assert again.maxlen == maxlen


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((0, 3), np.float16),
        np.array(2, np.int8),
        np.array([True, False]),
        np.array([1 + 2j]),
        np.array(["a", "bc"]),
        np.array([b"a"]),
        np.arange(6, dtype=">u4").reshape(2, 3),
        np.array([math.nan, -0.0]),
    ],
)
def test_arrays(array):
    again = round_trip({"inner": [array]})["inner"][0]
    assert again.dtype == array.dtype
    assert again.shape == array.shape
    assert again.tobytes() == array.tobytes()


@pytest.mark.parametrize(
    "scalar", [np.float32(0.1), np.int64(-3), np.bool_(True), np.str_("a")]
)
def test_numbers_of_numpy(scalar):
    again = round_trip((scalar,))[0]
    assert again == scalar
    assert type(again) is type(scalar)


@pytest.mark.parametrize("bits", GENERATORS)
def test_generators_continue_their_random_numbers(bits):
    generator = np.random.Generator(bits(3))
    # Half of a 64-bit number is kept for the next one of 32 bits.
    generator.integers(9, size=3, dtype=np.uint32)
    again = round_trip({"random": generator})["random"]
    pair = (generator, again)
    for dtype in (np.uint32, np.float64):
        numbers = [each.random(5).astype(dtype) for each in pair]
        np.testing.assert_array_equal(*numbers)
    integers = [each.integers(9, size=5, dtype=np.uint32) for each in pair]
    np.testing.assert_array_equal(*integers)


@pytest.mark.parametrize(
    "value",
    [
        *(object(), len, b"bytes", 1j, Counter("aab"), OrderedDict(a=1)),
        *(np.array([object()]), np.zeros(1, "M8[s]"), np.ma.array([1])),
        *(np.zeros(1, [("a", int)]), np.random.RandomState(0)),
        *({"a": [(object(),)]}, {object(): 1}),
    ],
)
def test_objects_other_than_plain_data_are_refused(value):
    with pytest.raises(TypeError, match="Received"):
        plain_data.to_json(value)


@pytest.mark.parametrize("name", ["os.system", "RandomState"])
def test_no_class_is_made_by_its_name(name):
    with pytest.raises(KeyError):
        plain_data.from_json({"$generator": {"bit_generator": name}}, {})


def test_copies_share_nothing():
    value = {"a": np.zeros(2), "b": [1], "c": np.random.default_rng(0)}
    copied = plain_data.copied(value)
    value["a"][:] = 1
    value["b"].append(2)
    value["c"].random()
    np.testing.assert_array_equal(copied["a"], [0, 0])
    assert copied["b"] == [1]
    assert copied["c"].random() == np.random.default_rng(0).random()
