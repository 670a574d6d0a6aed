"""Policies converted for the LiteRT interpreter, kept for the next alike."""

import hashlib
import itertools
from typing import Any

import tensorflow as tf

# Weights are inputs, so that one is a few kilobytes.
_MOST_KEPT = 64
_kept: dict[str, bytes] = {}

# Floats that the interpreter can hold and turn into others, but not compute
# with. The converter finds that out after writing pages of errors to stderr,
# where no logger can stop them.
_NOT_COMPUTED: dict[int, str] = {
    dtype.as_datatype_enum: dtype.name
    for dtype in (tf.float16, tf.bfloat16, tf.float64)
}
_COMPUTING_NOTHING = {"Cast", "Const", "Placeholder"}


def convert(function: Any) -> bytes:
    """Converts a traced function.

    Args:
        function: `tf.function` with an input signature.

    Returns:
        bytes. The model, for an interpreter.

    Raises:
        ValueError: If it computes in a dtype that the interpreter has no
            operations for, which is found out before the converter is tried.
    """
    concrete = function.get_concrete_function()
    dtype = _dtype_not_computed(concrete.graph.as_graph_def())
    if dtype is not None:
        raise ValueError(f"it computes in {dtype}")
    converter = tf.lite.TFLiteConverter.from_concrete_functions(
        [concrete], function
    )
    converted: bytes = converter.convert()
    return converted


def _dtype_not_computed(graph: Any) -> str | None:
    """Returns the dtype of an operation that the interpreter has not got."""
    bodies = [graph.node, *(body.node_def for body in graph.library.function)]
    for node in itertools.chain.from_iterable(bodies):
        if node.op in _COMPUTING_NOTHING:
            continue
        for attribute in node.attr.values():
            if attribute.type in _NOT_COMPUTED:
                return _NOT_COMPUTED[attribute.type]
    return None


def find(key: str | None) -> bytes | None:
    """Returns the conversion that was kept for graphs alike, if any.

    Args:
        key: str or None. As of `fingerprint`.

    Returns:
        bytes, or None where there is none.
    """
    return None if key is None else _kept.get(key)


def keep(key: str | None, converted: bytes) -> None:
    """Keeps a conversion that was found to act as its graph does.

    Converting takes a tenth of a second and checking it up to as long, a third
    of what a short `fit` takes. A search over hyper-parameters, several seeds
    in one process or a second agent would pay it each time.

    Args:
        key: str or None. As of `fingerprint`; with None it is not kept.
        converted: bytes. The model.
    """
    if key is None:
        return
    while len(_kept) >= _MOST_KEPT:
        del _kept[next(iter(_kept))]
    _kept[key] = converted


def fingerprint(function: Any) -> str | None:
    """Returns what graphs have in common that compute the same.

    All of the graph is in it but for the names of operations, which are
    those of the agent and differ from one to the next.

    Args:
        function: `tf.function` with an input signature.

    Returns:
        str; or None where the graph reads something that is not among its
        inputs, a variable say: its value is part of the conversion.

    Example:

    >>> def adding(number):
    ...     specs = [tf.TensorSpec((2,), name="x")]
    ...     return tf.function(lambda x: x + number, input_signature=specs)
    >>> fingerprint(adding(1.0)) == fingerprint(adding(1.0))
    True
    >>> fingerprint(adding(1.0)) == fingerprint(adding(2.0))
    False
    """
    concrete = function.get_concrete_function()
    if concrete.captured_inputs:
        return None
    graph = concrete.graph.as_graph_def()
    numbers = {node.name: str(index) for index, node in enumerate(graph.node)}
    digest = hashlib.sha256()
    for node in graph.node:
        if node.op != "Placeholder":
            node.name = numbers[node.name]
        for index, name in enumerate(node.input):
            node.input[index] = _renamed(name, numbers)
    outputs = [_renamed(output.name, numbers) for output in concrete.outputs]
    digest.update(graph.SerializeToString(deterministic=True))
    digest.update(repr(outputs).encode())
    return digest.hexdigest()


def _renamed(name: str, numbers: dict[str, str]) -> str:
    """Returns the name of a tensor with its operation's number for a name."""
    control = "^" if name.startswith("^") else ""
    operation, _, output = name.removeprefix("^").partition(":")
    return f"{control}{numbers[operation]}:{output or 0}"
