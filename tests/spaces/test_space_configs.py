"""Spaces as plain JSON, from files that anybody may have written."""

import json

import numpy as np
import pytest
from gymnasium import spaces

from keras_rl2.spaces import space_configs
from keras_rl2.spaces.space_configs import as_space
from keras_rl2.spaces.space_configs import space_from_config
from keras_rl2.spaces.space_configs import space_to_config
from keras_rl2.spaces.supported import same_space
from support.errors import raises
from support.structured_envs import HYBRID_ACTIONS
from support.structured_envs import OBSERVATIONS

SPACES = {
    **OBSERVATIONS,
    **{f"act_{name}": space for name, space in HYBRID_ACTIONS.items()},
    "unbounded": spaces.Dict({"far": spaces.Box(-np.inf, np.inf, (2,))}),
    "unsorted": spaces.Dict(
        [("b", spaces.Discrete(2)), ("a", spaces.Discrete(3))]
    ),
    "masked": spaces.Dict(
        {"action_mask": spaces.MultiBinary(3), "x": spaces.Discrete(2)}
    ),
}
DISCRETE = space_to_config(spaces.Discrete(2))


def tuple_of(*configs):
    return {"type": "Tuple", "spaces": [*configs]}


def nested(levels, config=DISCRETE):
    """Wraps a config in so many tuples."""
    for _ in range(levels):
        config = tuple_of(config)
    return config


def box(*shape, low=0.0):
    return {
        "type": "Box",
        "low": low,
        "high": 1.0,
        "shape": [*shape],
        "dtype": "float32",
    }


@pytest.mark.parametrize("name", SPACES)
def test_trees_of_spaces_come_back_through_json(name):
    space = SPACES[name]
    text = json.dumps(space_to_config(space), allow_nan=False)
    again = space_from_config(json.loads(text))
    assert type(again) is type(space)
    assert again == space
    assert same_space(again, space)
    assert as_space(json.loads(text)) == space
    assert as_space(space) is space
    # And once more, so that nothing was lost on the way.
    assert space_to_config(again) == json.loads(text)


def test_the_config_of_a_tree_says_what_it_holds():
    space = spaces.Dict({"at": spaces.Tuple([spaces.MultiBinary(2)])})
    assert space_to_config(space) == {
        "type": "Dict",
        "spaces": {
            "at": {
                "type": "Tuple",
                "spaces": [{"type": "MultiBinary", "shape": [2]}],
            }
        },
    }


@pytest.mark.parametrize(
    "space",
    [
        spaces.Dict({1: spaces.Discrete(2)}),
        spaces.Dict({"deep": spaces.Dict({"say": spaces.Text(3)})}),
        spaces.Tuple([spaces.Sequence(spaces.Discrete(2))]),
    ],
    ids=["keys", "text", "sequence"],
)
def test_what_no_agent_can_use_has_no_config(space):
    with raises("a space of type Box", "space="):
        space_to_config(space)


@pytest.mark.parametrize("levels", [1, 16])
def test_as_deep_as_anybody_needs(levels):
    space = space_from_config(nested(levels))
    for _ in range(levels):
        (space,) = space
    assert space == spaces.Discrete(2)


@pytest.mark.parametrize("levels", [17, 100, 5000])
def test_too_deep(levels):
    with raises("at most 16 levels", "config="):
        space_from_config(nested(levels))


@pytest.mark.parametrize("shape", [(2**13, 2**13), (2**24, 2**40), (2**25,)])
def test_too_many_elements_of_one_array(shape):
    with raises("at most 16777216 elements", "config="):
        space_from_config({"type": "Dict", "spaces": {"a": box(*shape)}})


@pytest.mark.parametrize(
    "config",
    [
        tuple_of(*[box(2**22)] * 5),
        tuple_of(box(2**23), tuple_of(box(2**23), DISCRETE, box(1))),
        {"type": "Dict", "spaces": {str(i): box(2**20) for i in range(17)}},
        # An entry that is no shape does not hide the others.
        tuple_of(*[box(2**23)] * 3, {"type": "Box", "shape": "x"}),
        # A negative one is not taken off the rest.
        tuple_of(*[box(2**23)] * 3, box(-(2**24))),
    ],
    ids=["tuple", "nested", "dict", "no shape", "negative"],
)
def test_too_many_elements_of_all_arrays(config):
    with raises("at most 16777216 elements", "config="):
        space_from_config(config)


@pytest.mark.parametrize(
    "config",
    [
        tuple_of(*[DISCRETE] * 1025),
        {"type": "Dict", "spaces": {str(i): DISCRETE for i in range(1025)}},
        tuple_of(*[tuple_of(*[DISCRETE] * 32)] * 33),
    ],
    ids=["tuple", "dict", "nested"],
)
def test_too_many_spaces(config):
    with raises("at most 1024 spaces", "config="):
        space_from_config(config)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"type": "Dict"}, "the keys"),
        ({"type": "Dict", "spaces": {}, "more": 1}, "the keys"),
        ({"type": "Dict", "spaces": {}}, "not empty"),
        ({"type": "Tuple", "spaces": []}, "not empty"),
        ({"type": "Dict", "spaces": [DISCRETE]}, "a dict of spaces"),
        ({"type": "Tuple", "spaces": {"a": DISCRETE}}, "a list of spaces"),
        ({"type": "Tuple", "spaces": "ab"}, "a list of spaces"),
        ({"type": "Tuple", "spaces": None}, "a list of spaces"),
        ({"type": "Dict", "spaces": 3}, "a dict of spaces"),
        ({"type": "Dict", "spaces": {1: DISCRETE}}, "strings as keys"),
        ({"type": "Dict", "spaces": {"a": None}}, "type among"),
        ({"type": "Tuple", "spaces": [[DISCRETE]]}, "type among"),
        ({"type": "Tuple", "spaces": [{"type": ["Box"]}]}, "type among"),
        ({"type": "Text", "max_length": 3}, "type among"),
        ({"type": "Tuple", "spaces": [box(2, low=None)]}, "numbers"),
        ({"type": "Tuple", "spaces": [box(2, low=float("nan"))]}, "numbers"),
        ({"type": "Tuple", "spaces": [box(2, low=[0.0])]}, "bounds of shape"),
        ({"type": "Tuple", "spaces": [box(2.0)]}, "integers"),
    ],
)  # fmt: skip
def test_what_is_no_config(config, expected):
    with raises(expected, "config="):
        space_from_config(config)


def test_a_discrete_of_another_dtype_wants_a_gymnasium_that_has_it(monkeypatch):
    """Those before 1.3 have int64 alone."""

    class Older(spaces.Discrete):
        def __init__(self, n, seed=None, start=0):
            super().__init__(n, seed, start)

    monkeypatch.setattr(space_configs, "Discrete", Older)
    assert space_from_config(DISCRETE) == spaces.Discrete(2)
    with raises("int64, or Gymnasium 1.3 or newer", "int32"):
        space_from_config({**DISCRETE, "dtype": "int32"})
