"""Policies converted for the LiteRT interpreter, in a cache."""

import hashlib
import itertools
from typing import Any

import tensorflow as tf

# Weights are inputs, so that a conversion has only a few kilobytes.
_MOST_KEPT = 64
_kept: dict[str, bytes] = {}

# Floats that the interpreter can hold and convert, but not compute with. The
# converter fails on them only after writing pages of errors to stderr, where
# no logger can stop them.
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
            operations for, which is checked before the converter is run.
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
    """Returns the dtype of an operation that the interpreter lacks, if any."""
    bodies = [graph.node, *(body.node_def for body in graph.library.function)]
    for node in itertools.chain.from_iterable(bodies):
        if node.op in _COMPUTING_NOTHING:
            continue
        for attribute in node.attr.values():
            if attribute.type in _NOT_COMPUTED:
                return _NOT_COMPUTED[attribute.type]
    return None


def find(key: str | None) -> bytes | None:
    """Returns the cached conversion of an equal graph, if any.

    Args:
        key: str or None. See `fingerprint`.

    Returns:
        bytes, or None where there is none.
    """
    return None if key is None else _kept.get(key)


def keep(key: str | None, converted: bytes) -> None:
    """Keeps a conversion that was checked to act like its graph.

    Converting takes a tenth of a second and checking it up to as long, a third
    of the time of a short `fit`. A search over hyper-parameters, several seeds
    in one process or a second agent would need it each time.

    Args:
        key: str or None. See `fingerprint`; with None it is not kept.
        converted: bytes. The model.
    """
    if key is None:
        return
    while len(_kept) >= _MOST_KEPT:
        del _kept[next(iter(_kept))]
    _kept[key] = converted


def fingerprint(function: Any) -> str | None:
    """Returns a key that is the same for graphs with the same computation.

    It covers the whole graph except for the names of operations, which come
    from the agent and differ between agents.

    Args:
        function: `tf.function` with an input signature.

    Returns:
        str; or None where the graph reads a value that is not among its
        inputs, e.g. a variable: the value is part of the conversion.

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
    """Returns the name of a tensor with the operation's name as a number."""
    control = "^" if name.startswith("^") else ""
    operation, _, output = name.removeprefix("^").partition(":")
    return f"{control}{numbers[operation]}:{output or 0}"
