import json

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from keras_rl2.spaces.space_configs import space_from_config
from keras_rl2.spaces.space_configs import space_to_config
from keras_rl2.spaces.supported import check_action_space
from keras_rl2.spaces.supported import check_observation_space
from keras_rl2.spaces.supported import describe
from keras_rl2.spaces.supported import same_space
from support.discrete import of_32_bits

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


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_config_gives_the_space_back_through_json(space):
    # allow_nan=False refuses Infinity, which is not JSON.
    text = json.dumps(space_to_config(space), allow_nan=False)
    again = space_from_config(json.loads(text))
    assert type(again) is type(space)
    assert (again.shape, again.dtype) == (space.shape, space.dtype)
    assert again == space
    assert same_space(again, space)
    if isinstance(space, spaces.Box):
        np.testing.assert_array_equal(again.low, space.low)
        np.testing.assert_array_equal(again.high, space.high)
    assert space_to_config(again) == space_to_config(space)


def test_configs_of_environments_of_gymnasium():
    for name in ("CartPole-v1", "Pendulum-v1", "Acrobot-v1"):
        env = gymnasium.make(name)
        for space in (env.observation_space, env.action_space):
            assert space_from_config(space_to_config(space)) == space


def test_equal_bounds_become_one_number():
    assert space_to_config(spaces.Box(0, 255, (84, 84, 4), np.uint8)) == {
        "type": "Box",
        "low": 0,
        "high": 255,
        "shape": [84, 84, 4],
        "dtype": "uint8",
    }
    config = space_to_config(spaces.Box(np.float32([0, 0]), np.float32([1, 2])))
    assert (config["low"], config["high"]) == (0.0, [1.0, 2.0])


def test_what_has_no_config():
    for space in STRANGE:
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


def nested_tuple(depth):
    config = DISCRETE
    for _ in range(depth):
        config = {"type": "Tuple", "spaces": [config]}
    return config


@pytest.mark.parametrize(
    "config",
    [
        None,
        "Box",
        [],
        {},
        {"type": "Dict"},
        {"type": ["Box"]},
        {"type": "builtins.eval"},
        {**BOX, "extra": 1},
        {key: value for key, value in BOX.items() if key != "high"},
        {**BOX, 3: 1},
        {**BOX, "low": None},
        {**BOX, "low": "nan"},
        {**BOX, "low": float("nan")},
        {**BOX, "low": "0"},
        {**BOX, "low": [0.0, 0.0]},
        {**BOX, "low": [0.0, 0.0, [0.0]]},
        {**BOX, "low": [[0.0, 0.0, 0.0]]},
        {**BOX, "low": 2.0},
        {**BOX, "low": {"a": 1}},
        {**BOX, "dtype": "object"},
        {**BOX, "dtype": "O"},
        {**BOX, "dtype": "<f4"},
        {**BOX, "dtype": "complex64"},
        {**BOX, "dtype": 3},
        {**BOX, "shape": 3},
        {**BOX, "shape": [-1]},
        {**BOX, "shape": [True]},
        {**BOX, "shape": [3.0]},
        {**BOX, "shape": [2**40]},
        {**BOX, "shape": [2**20, 2**20]},
        {**BOX, "shape": [1] * 40},
        {**BOX, "dtype": "uint8", "low": -1},
        {**BOX, "dtype": "int32", "low": "-inf"},
        {**DISCRETE, "n": 0},
        {**DISCRETE, "n": True},
        {**DISCRETE, "n": 2.0},
        {**DISCRETE, "n": 10**30},
        {**DISCRETE, "n": [2]},
        {**DISCRETE, "start": "0"},
        {**DISCRETE, "dtype": "float32"},
        {**DISCRETE, "dtype": "int8", "n": 1000},
        {**DISCRETE, "dtype": "uint8", "start": -1},
        {**MULTI_DISCRETE, "nvec": 3},
        {**MULTI_DISCRETE, "nvec": [0, 3]},
        {**MULTI_DISCRETE, "nvec": [2, [3]]},
        {**MULTI_DISCRETE, "nvec": [2, "3"]},
        {**MULTI_DISCRETE, "nvec": []},
        {**MULTI_DISCRETE, "start": [0]},
        {**MULTI_DISCRETE, "dtype": "float32"},
        {**MULTI_DISCRETE, "nvec": nested(100), "start": nested(100)},
        {**BOX, "low": nested(100)},
        {**MULTI_BINARY, "shape": [0]},
        {**MULTI_BINARY, "shape": []},
        {**MULTI_BINARY, "shape": [2**30]},
        {**MULTI_BINARY, "n": 3},
        {**DICT, "spaces": {}},
        {**DICT, "spaces": [DISCRETE]},
        {**DICT, "spaces": {"a": 3}},
        {**DICT, "spaces": {3: DISCRETE}},
        {**DICT, "spaces": {"a": {**DICT, "spaces": 3}}},
        {**DICT, "spaces": {"a": {**BOX, "extra": 1}}},
        {**TUPLE, "spaces": []},
        {**TUPLE, "spaces": {"a": DISCRETE}},
        {**TUPLE, "extra": 1},
        {**TUPLE, "spaces": [{**BOX, "shape": [2**24]}] * 2},
        nested_tuple(100),
    ],
    ids=lambda config: str(config)[:80],
)
def test_hostile_configs_are_refused(config):
    with pytest.raises(ValueError, match="Received"):
        space_from_config(config)


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
    assert (
        describe(spaces.Box(low, low + 1)) == "Box([0, 100], (100,), float32)"
    )
    assert describe(SPACES[1]) == "Box([-inf, inf], (2, 3), float64)"
    assert describe(SPACES[6]) == str(SPACES[6])
    assert describe(SPACES[12]) == str(SPACES[12])
    assert describe(None) == "None"
