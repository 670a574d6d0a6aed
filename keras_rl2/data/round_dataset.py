"""The round: collect some steps, then make some updates from them."""

import abc
from collections import deque
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf


class RoundDataset(abc.ABC):
    """What rollout and replay datasets share: handing rounds to `fit`.

    A round is begun by `refresh()`, on the main thread (so that an error of
    the environment keeps its type and Ctrl-C works), and handed over by a
    generator that only gives what is ready. Nothing is read ahead: asking for
    a batch before the round was refreshed is an error, not stale data.

    Args:
        rounds_per_epoch: int. Rounds of one Keras epoch.
    """

    steps_per_round: int
    updates_per_round: int
    elements_per_round: int

    def __init__(self, rounds_per_epoch: int) -> None:
        self.rounds_per_epoch = rounds_per_epoch
        self.agent: Any = None
        self._ready: deque[Callable[[], dict[str, np.ndarray]]] = deque()

    @property
    def steps_per_epoch(self) -> int:
        """Updates of one Keras epoch."""
        return self.rounds_per_epoch * self.updates_per_round

    @abc.abstractmethod
    def bind(self, agent: Any) -> None:
        """Ties the dataset to the agent that acts and prepares."""

    @abc.abstractmethod
    def refresh(self) -> None:
        """Collects the next round with the agent's present weights."""

    @abc.abstractmethod
    def logs(self) -> dict[str, float]:
        """Returns what the last rounds say about training, for the logs."""

    @abc.abstractmethod
    def _element_spec(self) -> dict[str, tf.TensorSpec]:
        """Returns shapes and dtypes of one element: stacked minibatches."""

    def begin(self) -> None:
        """Drops what an earlier `fit` left over."""
        self._ready.clear()

    def as_dataset(self, agent: Any) -> tf.data.Dataset:
        """Returns the minibatches as a plain `tf.data.Dataset`.

        For people who map it, look into it, or feed it to a `keras.Model` of
        their own, with `keras_rl2.callbacks.RolloutRefresh` among its
        callbacks; or call `refresh()` before each round.

        Args:
            agent: `keras_rl2.Agent`. Acts and prepares.

        Returns:
            An endless `tf.data.Dataset` of dicts of minibatches `[batch, ...]`.
        """
        options = tf.data.Options()
        options.experimental_optimization.inject_prefetch = False
        return self.as_rounds(agent).unbatch().with_options(options)

    def as_rounds(self, agent: Any) -> tf.data.Dataset:
        """Returns the same, with the minibatches of an element stacked.

        Args:
            agent: `keras_rl2.Agent`. Acts and prepares.

        Returns:
            An endless `tf.data.Dataset` of dicts `[minibatches, batch, ...]`,
            `elements_per_round` of them to a round.
        """
        self.bind(agent)
        options = tf.data.Options()
        options.experimental_optimization.inject_prefetch = False
        options.autotune.enabled = False
        dataset = tf.data.Dataset.from_generator(
            self._elements, output_signature=self._element_spec()
        )
        return dataset.with_options(options)

    def _elements(self) -> Iterator[dict[str, np.ndarray]]:
        """Hands over what is ready."""
        while True:
            if not self._ready:
                raise RuntimeError(
                    "A batch was asked for before the round was refreshed. "
                    "Expected `keras_rl2.callbacks.RolloutRefresh` among the "
                    "callbacks of `fit`, or a call of `refresh()` before each "
                    f"{self.updates_per_round} batches."
                )
            yield self._ready.popleft()()
