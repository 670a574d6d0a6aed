"""Spaces that agents take, and their configs, by whomever written."""

import json

import numpy as np
import pytest
from gymnasium import spaces

from keras_rl2.spaces.space_configs import as_space
from keras_rl2.spaces.space_configs import space_from_config
from keras_rl2.spaces.space_configs import space_to_config
from keras_rl2.spaces.supported import check_action_space
from keras_rl2.spaces.supported import check_observation_space
from keras_rl2.spaces.supported import describe
from keras_rl2.spaces.supported import same_space
from support.discrete import of_32_bits
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


@pytest.mark.parametrize("space", [*SPACES, *TREES])
def test_a_config_gives_the_space_back_through_json(space):
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


def test_configs_hold_bounds_shapes_and_dtypes():
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


@pytest.mark.parametrize(
    "space",
    [
        spaces.Text(3),
        spaces.Dict({"deep": spaces.Dict({"say": spaces.Text(3)})}),
        spaces.Tuple([spaces.Sequence(spaces.Discrete(2))]),
    ],
)
def test_spaces_that_no_agent_can_use_have_no_config(space):
    with pytest.raises(ValueError, match="Expected a space"):
        space_to_config(space)


BOX = space_to_config(SPACES[0])
DISCRETE = space_to_config(SPACES[8])


@pytest.mark.parametrize(
    "config", [None, {}, {"type": "Text", "max_length": 3}]
)
def test_other_objects_than_configs_are_refused(config):
    with pytest.raises(ValueError, match=r"Expected the config.*Received"):
        space_from_config(config)


def test_observation_spaces():
    for space in SPACES:
        check_observation_space(space)
    for space in STRANGE:
        with pytest.raises(ValueError, match=r"Box .* Discrete") as caught:
            check_observation_space(space)
        assert f"observation_space={space}" in str(caught.value)


def test_errors_name_the_path_of_an_unsupported_space():
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


def test_action_spaces():
    for space in (*SPACES[:3], *SPACES[5:7], *SPACES[8:]):
        check_action_space(space)
    for space in (SPACES[3], SPACES[4], SPACES[7], *STRANGE):
        with pytest.raises(ValueError, match="MultiBinary") as caught:
            check_action_space(space)
        assert f"action_space={space}" in str(caught.value)


def test_same_space_distinguishes_all_spaces():
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
