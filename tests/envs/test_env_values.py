"""Marks and copies of environments' values, and classes that are found."""

import dataclasses

import numpy as np
import pytest
from gymnasium import spaces

from keras_rl2.envs import env_values
from keras_rl2.envs import space_draws


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
    with pytest.raises(TypeError, match="a class that is there"):
        env_values.taken(car)

    @dataclasses.dataclass
    class Other:
        place: float

    monkeypatch.setitem(globals(), "Car", Other)
    with pytest.raises(TypeError, match="one class of this name"):
        env_values.taken(car)


def test_looking_at_a_space_seeds_nothing():
    space = spaces.Tuple([spaces.Discrete(3), spaces.Discrete(4)])
    assert space_draws.read(space) == [None] * 3
    space[1].seed(0)
    kept = space_draws.read(space)
    assert [each is None for each in kept] == [True, True, False]
