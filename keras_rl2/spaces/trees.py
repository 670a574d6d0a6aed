"""Trees of arrays: an array, or a dict or tuple of trees.

An observation is a tree, and all functions between an environment and the
network map over its leaves. Most often the tree is one array; then these
functions cost no more than a comparison of types.

Not `keras.tree`: Keras brings a backend with it, and environments and workers
do without.
"""

import operator
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any
from typing import TypeAlias
from typing import TypeVar
from typing import Union

LeafT = TypeVar("LeafT")

Tree: TypeAlias = Union[
    LeafT, "Mapping[str, Tree[LeafT]]", "tuple[Tree[LeafT], ...]"
]
"""A leaf, or a dict or tuple of trees."""


def map_leaves(function: Callable[..., Any], tree: object, *others: Any) -> Any:
    """Applies a function to each leaf.

    Example:

    >>> map_leaves(lambda a, b: a + b, {"x": 1, "y": (2, 3)},
    ...            {"x": 10, "y": (20, 30)})
    {'x': 11, 'y': (22, 33)}
    """
    if isinstance(tree, Mapping):
        return {
            key: map_leaves(
                function, tree[key], *(each[key] for each in others)
            )
            for key in tree
        }
    if isinstance(tree, tuple):
        return tuple(
            map_leaves(function, *branches)
            for branches in zip(tree, *others, strict=True)
        )
    return function(tree, *others)


def leaves(tree: object) -> list[Any]:
    """Returns the leaves in order: keys of a dict alphabetically.

    Example:

    >>> leaves({"b": 1, "a": (2, {"c": 3})})
    [2, 3, 1]
    """
    return [leaf for _, leaf in named_leaves(tree)]


def named_leaves(tree: object, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yields each leaf with its path, in the order of `leaves`.

    Yields:
        Keys and positions with dots between them, and the leaf; the path of a
        tree that is one leaf is `path` itself.

    Example:

    >>> dict(named_leaves({"b": 1, "a": (2, {"c": 3})}))
    {'a.0': 2, 'a.1.c': 3, 'b': 1}
    """
    if isinstance(tree, Mapping):
        branches = sorted(tree.items(), key=operator.itemgetter(0))
    elif isinstance(tree, tuple):
        branches = [*enumerate(tree)]
    else:
        yield path, tree
        return
    for name, branch in branches:
        yield from named_leaves(branch, f"{path}.{name}" if path else str(name))


def with_leaves(tree: object, replacing: Iterable[Any]) -> Any:
    """Returns a tree of the same shape with other leaves.

    Example:

    >>> with_leaves({"b": 1, "a": (2, 3)}, [10, 20, 30])
    {'a': (10, 20), 'b': 30}
    """
    rest = iter(replacing)
    if isinstance(tree, Mapping):
        return {key: with_leaves(tree[key], rest) for key in sorted(tree)}
    if isinstance(tree, tuple):
        return tuple([with_leaves(each, rest) for each in tree])
    return next(rest)


def is_leaf(tree: object) -> bool:
    """Returns whether a tree is a single leaf."""
    return not isinstance(tree, (Mapping, tuple))
