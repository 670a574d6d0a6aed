"""Batches of observations, checked against their space."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import named_leaves
from keras_rl2.spaces.trees import with_leaves


def as_batch(
    spec: Tree[ArraySpec], observation: Tree[npt.ArrayLike]
) -> tuple[Any, bool]:
    """Takes one observation, or a batch, as a batch.

    Args:
        spec: tree of `ArraySpec`. Specs of one observation.
        observation: `[...]` or `[B, ...]`, a tree of array-likes of NumPy.

    Returns:
        Tree of arrays `[B, ...]`, and whether it was one observation.
    """
    if _form(spec) != _form(observation):
        raise ValueError(
            f"Expected an observation of the form {_form(spec)}. "
            f"Received: {_form(observation)}"
        )
    specs = dict(named_leaves(spec))
    arrays = [*map(_as_array, specs, specs.values(), leaves(observation))]
    # () for one observation, (B,) for a batch.
    excess = arrays[0].ndim - len(leaves(spec)[0].shape)
    count = arrays[0].shape[: max(excess, 0)][:1]
    for (path, one), array in zip(specs.items(), arrays, strict=True):
        if array.shape != (*count, *one.shape):
            raise ValueError(
                f"Expected {f'{path!r} of ' if path else ''}one observation of "
                f"shape {one.shape} or a batch {('B', *one.shape)}. "
                f"Received: shape {array.shape}"
            )
    # [...] -> [1, ...] for one observation
    batch = arrays if count else [array[None] for array in arrays]
    return with_leaves(spec, batch), not count


def _observations(path: str) -> str:
    """Returns the name of one array of observations."""
    return f"{path!r} of observations" if path else "observations"


def _as_array(
    path: str, spec: ArraySpec, values: npt.ArrayLike
) -> npt.NDArray[Any]:
    """Returns an array of the expected dtype.

    Raises for other values than numbers, and for fractions in place of
    integers.
    """
    array = np.asarray(values)
    kinds = "fiub" if np.dtype(spec.dtype).kind == "f" else "iub"
    if array.dtype.kind not in kinds:
        raise ValueError(
            f"Expected {_observations(path)} of dtype {spec.dtype}. "
            f"Received: dtype {array.dtype}"
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(
            f"Expected {_observations(path)} that are finite. Received: {array}"
        )
    return array.astype(spec.dtype, copy=False)


def _form(tree: object) -> str:
    """Describes a tree by its keys."""
    if isinstance(tree, Mapping):
        keys = sorted(tree, key=str)
        return f"{{{', '.join(f'{k!r}: {_form(tree[k])}' for k in keys)}}}"
    if isinstance(tree, tuple):
        return f"({', '.join(map(_form, tree))})"
    return "an array"
