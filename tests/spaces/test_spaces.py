"""Spaces that agents take, and their configs, by whomever written."""

import json

import numpy as np
import pytest
from gymnasium import spaces

from keras_rl2.spaces import space_configs
from keras_rl2.spaces.space_configs import as_space
from keras_rl2.spaces.space_configs import space_from_config
from keras_rl2.spaces.space_configs import space_to_config
from keras_rl2.spaces.supported import check_action_space
from keras_rl2.spaces.supported import check_observation_space
from keras_rl2.spaces.supported import describe
from keras_rl2.spaces.supported import same_space
from support.discrete import of_32_bits
from support.errors import raises
from support.structured_envs import HYBRID_ACTIONS
from support.structured_envs import OBSERVATIONS

SPACES = [
    spaces.Box(-1.0, 1.0, (3,), np.float32),
    spaces.Box(-np.inf, np.inf, (2, 3), np.float64),
    spaces.Box(np.float32([-4.8, -np.inf]), np.float32([4.8, np.inf])),
    spaces.Box(0, 255, (84, 84, 4), np.uint8),
    spaces.Box(np.array([0, -5]), np.array([7, 5]), dtype=np.int64),
    spaces.Box(-1.0, 1.0, (), np.float32),
    spaces.Box(0.0, 1.0, (0,), np.float32),
    spaces.Box(0, 1, (2,), np.bool_),
    spaces.Discrete(4),
    spaces.Discrete(4, start=-2),
    of_32_bits(4),
    spaces.MultiDiscrete([2, 3]),
    spaces.MultiDiscrete([2, 3], start=[1, -1]),
    spaces.MultiDiscrete([[2, 3], [4, 5]], dtype=np.int32),
    spaces.MultiBinary(5),
    spaces.MultiBinary((2, 3)),
    spaces.Dict({"a": spaces.Discrete(2)}),
    spaces.Tuple([spaces.Discrete(2)]),
]
NUMBER = spaces.Box(-1.0, 1.0, (), np.float32)
STRANGE = [
    spaces.Text(3),
    spaces.Sequence(NUMBER),
    spaces.Graph(NUMBER, None),
    spaces.Dict({}),
    spaces.Tuple([]),
    None,
    3,
]


TREES = [
    *OBSERVATIONS.values(),
    *HYBRID_ACTIONS.values(),
    spaces.Dict({"far": spaces.Box(-np.inf, np.inf, (2,))}),
    spaces.Dict([("b", spaces.Discrete(2)), ("a", spaces.Discrete(3))]),
    spaces.Dict(
        {"action_mask": spaces.MultiBinary(3), "x": spaces.Discrete(2)}
    ),
]


def test_a_config_gives_the_space_back_through_json():
    for space in (*SPACES, *TREES):
        # allow_nan=False refuses Infinity, which is not JSON.
        text = json.dumps(space_to_config(space), allow_nan=False)
        again = space_from_config(json.loads(text))
        assert type(again) is type(space), space
        assert (again.shape, again.dtype) == (space.shape, space.dtype), space
        assert again == space, space
        assert same_space(again, space), space
        assert as_space(json.loads(text)) == space, space
        assert as_space(space) is space, space
        if isinstance(space, spaces.Box):
            np.testing.assert_array_equal(again.low, space.low)
            np.testing.assert_array_equal(again.high, space.high)
        assert space_to_config(again) == json.loads(text), space


def test_what_configs_say():
    assert space_to_config(spaces.Box(0, 255, (84, 84, 4), np.uint8)) == {
        "type": "Box",
        "low": 0,
        "high": 255,
        "shape": [84, 84, 4],
        "dtype": "uint8",
    }
    config = space_to_config(spaces.Box(np.float32([0, 0]), np.float32([1, 2])))
    assert (config["low"], config["high"]) == (0.0, [1.0, 2.0])
    tree = spaces.Dict({"at": spaces.Tuple([spaces.MultiBinary(2)])})
    inner = [{"type": "MultiBinary", "shape": [2]}]
    assert space_to_config(tree) == {
        "type": "Dict",
        "spaces": {"at": {"type": "Tuple", "spaces": inner}},
    }


def test_spaces_that_no_agent_can_use_have_no_config():
    for space in (
        *STRANGE,
        spaces.Dict({1: spaces.Discrete(2)}),
        spaces.Dict({"deep": spaces.Dict({"say": spaces.Text(3)})}),
        spaces.Tuple([spaces.Sequence(spaces.Discrete(2))]),
    ):
        with pytest.raises(ValueError, match="Expected a space"):
            space_to_config(space)


BOX = space_to_config(SPACES[0])
DISCRETE = space_to_config(SPACES[8])
MULTI_DISCRETE = space_to_config(SPACES[11])
MULTI_BINARY = space_to_config(SPACES[14])
DICT = space_to_config(SPACES[16])
TUPLE = space_to_config(SPACES[17])


def nested(depth):
    value = 0
    for _ in range(depth):
        value = [value]
    return value


def tuple_of(*configs):
    return {"type": "Tuple", "spaces": [*configs]}


def dict_of(*configs):
    named = {str(i): config for i, config in enumerate(configs)}
    return {"type": "Dict", "spaces": named}


def nested_tuple(levels):
    config = DISCRETE
    for _ in range(levels):
        config = tuple_of(config)
    return config


def box(*shape, low=0.0):
    return {**BOX, "shape": [*shape], "low": low}


def refusal_of(config):
    """Returns what a config is refused with."""
    try:
        space_from_config(config)
    except ValueError as error:
        return str(error)
    return "not refused"


HOSTILE = [
    *(None, "Box", [], {}, {"type": "Dict"}, {"type": ["Box"]}),
    {"type": "builtins.eval"},
    {key: value for key, value in BOX.items() if key != "high"},
    *({**config, "extra": 1} for config in (BOX, TUPLE)),
    {**BOX, 3: 1},
    *(
        {**BOX, "low": low}
        for low in (
            *(None, "nan", float("nan"), "0", 2.0, {"a": 1}, nested(100)),
            *([0.0, 0.0], [0.0, 0.0, [0.0]], [[0.0, 0.0, 0.0]]),
        )
    ),
    *({**BOX, "dtype": d} for d in ("object", "O", "<f4", "complex64", 3)),
    {**BOX, "dtype": "uint8", "low": -1},
    {**BOX, "dtype": "int32", "low": "-inf"},
    *(
        {**BOX, "shape": shape}
        for shape in (
            *(3, [-1], [True], [3.0], [2**40], [2**20, 2**20], [1] * 40),
        )
    ),
    *({**DISCRETE, "n": n} for n in (0, True, 2.0, 10**30, [2])),
    {**DISCRETE, "start": "0"},
    {**DISCRETE, "dtype": "float32"},
    {**DISCRETE, "dtype": "int8", "n": 1000},
    {**DISCRETE, "dtype": "uint8", "start": -1},
    *(
        {**MULTI_DISCRETE, "nvec": nvec}
        for nvec in (3, [0, 3], [2, [3]], [2, "3"], [])
    ),
    {**MULTI_DISCRETE, "start": [0]},
    {**MULTI_DISCRETE, "dtype": "float32"},
    {**MULTI_DISCRETE, "nvec": nested(100), "start": nested(100)},
    *({**MULTI_BINARY, "shape": shape} for shape in ([0], [], [2**30])),
    {**MULTI_BINARY, "n": 3},
    *(
        {**DICT, "spaces": inner}
        for inner in (
            *({}, [DISCRETE], {"a": 3}, {3: DISCRETE}),
            *({"a": {**DICT, "spaces": 3}}, {"a": {**BOX, "extra": 1}}),
        )
    ),
    *({**TUPLE, "spaces": inner} for inner in ([], {"a": DISCRETE})),
    {**TUPLE, "spaces": [{**BOX, "shape": [2**24]}] * 2},
]
NAMED = [
    ({"type": "Dict"}, "the keys"),
    ({"type": "Dict", "spaces": {}}, "not empty"),
    ({"type": "Dict", "spaces": [DISCRETE]}, "a dict of spaces"),
    ({"type": "Tuple", "spaces": {"a": DISCRETE}}, "a list of spaces"),
    ({"type": "Dict", "spaces": {1: DISCRETE}}, "strings as keys"),
    ({"type": "Dict", "spaces": {"a": None}}, "type among"),
    ({"type": "Text", "max_length": 3}, "type among"),
    ({"type": "Tuple", "spaces": [box(2, low=float("nan"))]}, "numbers"),
    ({"type": "Tuple", "spaces": [box(2, low=[0.0])]}, "bounds of shape"),
    ({"type": "Tuple", "spaces": [box(2.0)]}, "integers"),
]


def test_hostile_configs_are_refused():
    for config in HOSTILE:
        assert "Received" in refusal_of(config), config
    for config, expected in NAMED:
        said = refusal_of(config)
        assert expected in said, config
        assert "Received: config=" in said, config


def test_configs_nest_at_most_16_levels():
    space = space_from_config(nested_tuple(16))
    for _ in range(16):
        (space,) = space
    assert space == spaces.Discrete(4)
    for levels in (17, 100, 5000):
        assert "at most 16 levels" in refusal_of(nested_tuple(levels))


def test_configs_have_at_most_16777216_elements_in_1024_spaces():
    for config in (
        dict_of(box(2**13, 2**13)),
        dict_of(box(2**24, 2**40)),
        dict_of(box(2**25)),
        tuple_of(*[box(2**22)] * 5),
        tuple_of(box(2**23), tuple_of(box(2**23), DISCRETE, box(1))),
        dict_of(*[box(2**20)] * 17),
        # An entry that is no shape does not hide the others.
        tuple_of(*[box(2**23)] * 3, {"type": "Box", "shape": "x"}),
        # A negative one is not taken off the rest.
        tuple_of(*[box(2**23)] * 3, box(-(2**24))),
    ):
        assert "at most 16777216 elements" in refusal_of(config), config
    for config in (
        tuple_of(*[DISCRETE] * 1025),
        dict_of(*[DISCRETE] * 1025),
        tuple_of(*[tuple_of(*[DISCRETE] * 32)] * 33),
    ):
        assert "at most 1024 spaces" in refusal_of(config)


def test_a_discrete_of_another_dtype_wants_a_gymnasium_that_has_it(monkeypatch):
    """Those before 1.3 have int64 alone."""

    class Older(spaces.Discrete):
        def __init__(self, n, seed=None, start=0):
            super().__init__(n, seed, start)

    monkeypatch.setattr(space_configs, "Discrete", Older)
    assert space_from_config(DISCRETE) == spaces.Discrete(4)
    with raises("int64, or Gymnasium 1.3 or newer", "int32"):
        space_from_config({**DISCRETE, "dtype": "int32"})


def test_observation_spaces():
    for space in SPACES:
        check_observation_space(space)
    for space in STRANGE:
        with pytest.raises(ValueError, match=r"Box .* Discrete") as caught:
            check_observation_space(space)
        assert f"observation_space={space}" in str(caught.value)


def test_what_cannot_be_used_is_named_where_it_lies():
    space = spaces.Dict(
        {
            "a": spaces.Discrete(2),
            "b": spaces.Tuple([spaces.Discrete(2), spaces.Text(3)]),
        }
    )
    for check in (check_observation_space, check_action_space):
        with pytest.raises(ValueError, match=r"Received: b\.1: Text\("):
            check(space)
    for keys in ([0, 1], ["a", 1], ["a", ""]):
        space = spaces.Dict([(key, spaces.Discrete(2)) for key in keys])
        for check in (check_observation_space, check_action_space):
            with pytest.raises(ValueError, match="strings for keys"):
                check(space)


def test_a_mask_alone_is_no_observation():
    mask = {"action_mask": spaces.Box(0, 1, (2,), np.int8)}
    check_observation_space(spaces.Dict({**mask, "a": NUMBER}))
    with pytest.raises(ValueError, match=r"beside 'action_mask'.*Received"):
        check_observation_space(spaces.Dict(mask))


def test_action_spaces():
    for space in (*SPACES[:3], *SPACES[5:7], *SPACES[8:]):
        check_action_space(space)
    for space in (SPACES[3], SPACES[4], SPACES[7], *STRANGE):
        with pytest.raises(ValueError, match="MultiBinary") as caught:
            check_action_space(space)
        assert f"action_space={space}" in str(caught.value)


def test_same_space_tells_all_of_them_apart():
    for i, one in enumerate(SPACES):
        for j, other in enumerate(SPACES):
            # Discrete(4) with int64 and int32 is the same to an agent.
            expected = i == j or {i, j} == {8, 10}
            assert same_space(one, other) == expected


def test_same_space_of_other_width_or_bounds():
    low, high = np.float64([0.1, -np.inf]), np.float64([0.3, np.inf])
    wide = spaces.Box(low, high, dtype=np.float64)
    narrow = spaces.Box(
        low.astype(np.float32), high.astype(np.float32), dtype=np.float32
    )
    assert same_space(wide, narrow)
    assert not same_space(
        spaces.Box(0.0, 1e-9, (1,)), spaces.Box(0.0, 2e-9, (1,))
    )
    assert not same_space(
        spaces.Box(0, 255, (2,), np.uint8), spaces.Box(0, 255, (2,), np.float32)
    )
    assert not same_space(
        spaces.MultiDiscrete([2, 3]), spaces.MultiDiscrete([2, 3], start=[1, 0])
    )


def test_describe_is_one_short_line():
    low = np.arange(100, dtype=np.float32)
    for space, said in (
        (spaces.Box(low, low + 1), "Box([0, 100], (100,), float32)"),
        (SPACES[1], "Box([-inf, inf], (2, 3), float64)"),
        (SPACES[12], str(SPACES[12])),
        (None, "None"),
    ):
        assert describe(space) == said
