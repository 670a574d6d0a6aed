"""Trees of arrays: dicts and tuples, nested as deep as one likes."""

import collections
import types

import numpy as np
import pytest

from keras_rl2.spaces import trees
from keras_rl2.spaces.array_spec import ArraySpec

TREE = {"b": 1, "a": (2, {"d": 4, "c": 3}), "e": {"f": (5,)}}


@pytest.mark.parametrize("leaf", [3, np.zeros(2), ArraySpec((), "int32"), [1]])
def test_objects_other_than_dict_and_tuple_are_leaves(leaf):
    assert trees.is_leaf(leaf)
    assert trees.leaves(leaf) == [leaf]
    assert trees.with_leaves(leaf, ["other"]) == "other"
    assert trees.map_leaves(lambda each: (each,), leaf) == (leaf,)
    [(path, found)] = trees.named_leaves(leaf)
    assert (path, found is leaf) == ("", True)


def test_leaves_are_in_the_order_of_their_keys():
    assert not trees.is_leaf(TREE)
    assert trees.leaves(TREE) == [2, 3, 4, 1, 5]
    assert dict(trees.named_leaves(TREE)) == {
        "a.0": 2,
        "a.1.c": 3,
        "a.1.d": 4,
        "b": 1,
        "e.f.0": 5,
    }
    assert next(trees.named_leaves(TREE, "own")) == ("own.a.0", 2)


def test_the_order_in_which_a_dict_was_made_is_of_no_account():
    other = {"e": {"f": (5,)}, "a": (2, {"c": 3, "d": 4}), "b": 1}
    assert [*trees.named_leaves(other)] == [*trees.named_leaves(TREE)]


def test_map_leaves_goes_by_keys_and_positions():
    other = {"e": {"f": (50,)}, "a": (20, {"c": 30, "d": 40}), "b": 10}
    assert trees.map_leaves(lambda *each: sum(each), TREE, other, other) == {
        "b": 21,
        "a": (42, {"d": 84, "c": 63}),
        "e": {"f": (105,)},
    }


@pytest.mark.parametrize(
    "make", [dict, collections.OrderedDict, types.MappingProxyType]
)
def test_any_mapping_is_a_branch(make):
    tree = make({"b": 1, "a": 2})
    assert trees.leaves(tree) == [2, 1]
    assert trees.map_leaves(str, tree) == {"a": "2", "b": "1"}
    assert trees.with_leaves(tree, [20, 10]) == {"a": 20, "b": 10}


def test_map_leaves_of_trees_that_differ():
    with pytest.raises(KeyError, match="b"):
        trees.map_leaves(lambda *each: each, {"a": 1, "b": 2}, {"a": 1})
    with pytest.raises(ValueError, match="zip"):
        trees.map_leaves(lambda *each: each, (1, 2), (1, 2, 3))


def test_with_leaves_undoes_leaves():
    again = trees.with_leaves(TREE, trees.leaves(TREE))
    assert again == TREE
    assert again is not TREE


def test_empty_branches_have_no_leaves():
    tree = {"a": (), "b": {}}
    assert trees.leaves(tree) == []
    assert trees.map_leaves(str, tree) == tree
    assert trees.with_leaves(tree, []) == tree
