"""Marks and copies of environments' values, and classes that are found."""

import dataclasses
import enum

import numpy as np
import pytest
from gymnasium import spaces

from keras_rl2.envs import env_state
from keras_rl2.envs import env_values


def test_a_mark_says_nothing_of_who_else_holds_an_object():
    name = "".join(["a", "b"])
    assert env_values.mark([name, name]) == env_values.mark(
        ["".join(["a", "b"]), "".join(["a", "b"])]
    )


@pytest.mark.parametrize(
    "other",
    [np.zeros((1, 2)), np.zeros(2, np.int64), np.ones(2), [0.0, 0.0]],
    ids=["shape", "dtype", "numbers", "list"],
)
def test_marks_of_what_differs_differ(other):
    assert env_values.mark(np.zeros(2)) == env_values.mark(np.zeros(2))
    assert env_values.mark(np.zeros(2)) != env_values.mark(other)


@pytest.mark.parametrize("path", ["subprocess:Popen", "pathlib:Path"])
def test_classes_that_are_more_than_their_values_are_not_made(path):
    with pytest.raises(ValueError, match="dataclass or an enumeration"):
        env_values.given({"$object": path, "content": {}})


def test_a_class_that_another_one_has_the_name_of(monkeypatch):
    @dataclasses.dataclass
    class Car:
        place: float

    car = Car(1.0)
    Car.__qualname__ = "Car"
    with pytest.raises(TypeError, match="a class that is defined"):
        env_values.taken(car)

    @dataclasses.dataclass
    class Other:
        place: float

    monkeypatch.setitem(globals(), "Car", Other)
    with pytest.raises(TypeError, match="one class of this name"):
        env_values.taken(car)


class Keys(enum.Flag):
    LEFT = enum.auto()
    UP = enum.auto()


class Plain:
    """Has attributes, and its heirs slots."""


@dataclasses.dataclass(slots=True)
class Slots(Plain):
    place: float


@dataclasses.dataclass
class Bag(dict):
    size: int = 0


@pytest.mark.parametrize("value", [Keys.UP, Keys.LEFT | Keys.UP, Keys(0)])
def test_flags_that_are_combined(value):
    assert env_values.given(env_values.taken(value)) is value


def test_slots_of_a_class_that_derives_from_one_without():
    assert env_values.given(env_values.taken(Slots(3.0))) == Slots(3.0)
    assert env_values.mark(Slots(3.0)) != env_values.mark(Slots(4.0))


def test_what_is_in_a_class_that_is_a_dict_is_not_forgotten():
    assert not env_values.is_kept(Bag(2))
    assert env_values.mark(Bag(2)) is None


def test_values_that_are_nested_too_deep():
    deep, itself = [], []
    for _ in range(3000):
        deep = [deep]
    itself.append(itself)
    assert env_values.mark(deep) is None
    assert not env_values.is_inert(itself)


def test_looking_at_a_space_seeds_nothing():
    space = spaces.Tuple([spaces.Discrete(3), spaces.Discrete(4)])
    assert env_state.read_draws(space) == [None] * 3
    space[1].seed(0)
    kept = env_state.read_draws(space)
    assert [each is None for each in kept] == [True, True, False]
