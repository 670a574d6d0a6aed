"""Where `fit` may be called, and that it is called once at a time."""

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import tensorflow as tf

if TYPE_CHECKING:
    from keras_rl2.agents.agent import Agent

_lock = threading.Lock()
# By identity, and not in the agents: a lock can be neither copied nor saved.
_fitted: set[int] = set()


@contextlib.contextmanager
def fit_alone(agent: "Agent") -> Iterator[None]:
    """Refuses `fit` where it would not train, or train what another one does.

    Args:
        agent: `keras_rl2.Agent`. What is trained.

    Yields:
        None. Within, no other `fit` of the agent begins.

    Raises:
        RuntimeError: If another one has begun and not ended.
        ValueError: If it is called within a scope of `tf.distribute`, or of a
            `tf.function`.
    """
    _refuse_graph(agent)
    _refuse_scope()
    with _lock:
        if id(agent) in _fitted:
            raise RuntimeError(
                "Expected one `fit` of an agent at a time: what two train in "
                "turns is neither's. Received: `fit` of "
                f"{type(agent).__name__} while another one of it runs"
            )
        _fitted.add(id(agent))
    try:
        yield
    finally:
        _fitted.discard(id(agent))


def _refuse_graph(agent: "Agent") -> None:
    """Refuses to train while a function is traced, which calls nothing."""
    if tf.executing_eagerly():
        return
    error = ValueError(
        "Expected `fit` outside of a `tf.function`, which it makes of each "
        f"round by itself. Received: `fit` of {type(agent).__name__} within one"
    )
    # TensorFlow's own name, for errors that are not about the user's code: it
    # would put a traceback into the message.
    vars(error).update(ag_pass_through=True)
    raise error


def _refuse_scope() -> None:
    """Refuses to train within a scope of `tf.distribute`.

    Raises:
        ValueError: If there is one.
    """
    if tf.distribute.has_strategy():
        raise ValueError(
            "Expected `fit` after the `strategy.scope()` in which the agent "
            "was made, which it enters where it needs to. Received: `fit` "
            f"within one of {type(tf.distribute.get_strategy()).__name__}"
        )
