"""The round: collect some steps, then make some updates from them."""

import abc
import contextlib
import weakref
from collections import deque
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any
from typing import cast

import numpy as np
import tensorflow as tf

from keras_rl2.basics.outliers import Outliers
from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.stopwatch import Stopwatch
from keras_rl2.policies.agent_protocols import CollectingAgent
from keras_rl2.replay.ring import StateLog
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import map_leaves

# Arrays of a whole round, some of them together under a name.
Round = Mapping[str, Tree[np.ndarray]]


class RoundDataset(abc.ABC):
    """What rollout and replay datasets share: handing rounds to `fit`.

    A round is begun by `refresh()`, on the main thread (so that an error of
    the environment keeps its type and Ctrl-C works), and handed over by a
    generator that only gives what is ready. Nothing is read ahead: asking for
    a batch before the round was refreshed is an error, not stale data.

    Args:
        rounds_per_epoch: int. Rounds of one Keras epoch.

    Attributes:
        stopwatch: `keras_rl2.basics.stopwatch.Stopwatch` or None. Is told what
            a round is at; None, the default, where nobody measures.

    Example:

    >>> import keras_rl2 as rl
    >>> rollouts = rl.RolloutDataset("CartPole-v1", horizon=32, batch_size=16)
    >>> isinstance(rollouts, RoundDataset)
    True
    >>> rollouts.bind(rl.A2C.for_env(rollouts.env, hidden=(8,), seed=0))
    >>> rollouts.refresh()
    >>> "episode_return" in rollouts.logs()
    True
    """

    steps_per_round: int
    updates_per_round: int
    batch_size: int

    def __init__(self, rounds_per_epoch: int) -> None:
        self.rounds_per_epoch = rounds_per_epoch
        self.agent: CollectingAgent | None = None
        self.stopwatch: Stopwatch | None = None
        self._gives_trajectories = False
        self._ready: deque[Round] = deque()

    @property
    def steps_per_epoch(self) -> int:
        """Updates of one Keras epoch."""
        return self.rounds_per_epoch * self.updates_per_round

    @property
    def steps_before_first_round(self) -> int:
        """Steps that are still to be taken before there are any updates."""
        return 0

    @property
    def fewest_steps_per_round(self) -> int:
        """Steps that a round has at least."""
        return self.steps_per_round

    @abc.abstractmethod
    def bind(self, agent: CollectingAgent) -> None:
        """Ties the dataset to an agent, checking that the two fit.

        Args:
            agent: `keras_rl2.Agent`. Acts and learns.
        """

    @abc.abstractmethod
    def refresh(self) -> None:
        """Collects the next round with the agent's present weights."""

    @abc.abstractmethod
    def logs(self) -> dict[str, float]:
        """Returns what the last rounds say about training, for the logs."""

    @property
    def outliers(self) -> dict[str, Outliers]:
        """What running statistics did not follow, by its key in the logs."""
        found: Mapping[str, Outliers] = getattr(self.agent, "outliers", {})
        return dict(found)

    @abc.abstractmethod
    def _element_spec(self) -> dict[str, Any]:
        """Returns shapes and dtypes of one element, a whole round."""

    @abc.abstractmethod
    def get_state(self, log: StateLog | None = None) -> dict[str, Any]:
        """Returns all that later rounds depend on, as plain data.

        Args:
            log: `StateLog` or None. Where a replay adds what it has stored
                since it last did, which is not returned then. Defaults to
                `None`.
        """

    @abc.abstractmethod
    def set_state(
        self, state: dict[str, Any], log: StateLog | None = None
    ) -> None:
        """Takes back what `get_state` gave, in a dataset bound to an agent.

        Args:
            state: dict, as returned by `get_state`.
            log: `StateLog` or None. As of `get_state`. Defaults to `None`.
        """

    def settings(self) -> dict[str, Any]:
        """Returns the numbers that rounds are made with, for people."""
        # All of them are plain attributes, those of a subclass too.
        return {
            name: value
            for name, value in vars(self).items()
            if not name.startswith("_") and np.isscalar(value)
        }

    def own_settings(self) -> dict[str, Any]:
        """Returns what the algorithm chose, since nothing else was given."""
        return {}

    @abc.abstractmethod
    def close(self) -> None:
        """Closes environments, where it has some."""

    def shielded(self) -> contextlib.AbstractContextManager[None]:
        """Keeps signals from processes of environments, where it has some."""
        return contextlib.nullcontext()

    def begin(self) -> None:
        """Drops what an earlier `fit` left over."""
        self._ready.clear()
        self.stopwatch = None

    def hand_over(self) -> Round:
        """Hands over the round that is ready, once.

        Returns:
            dict of arrays, as an element of `as_rounds`.

        Raises:
            RuntimeError: If `refresh` has not been called since the last one.
        """
        if not self._ready:
            raise RuntimeError(
                "A batch was asked for before the round was refreshed. "
                "Expected `keras_rl2.callbacks.RolloutRefresh` among the "
                "callbacks of `fit`, or a call of `refresh()` before each "
                f"{self.updates_per_round} batches."
            )
        return self._ready.popleft()

    def as_dataset(self, agent: CollectingAgent) -> tf.data.Dataset:
        """Returns the minibatches as a plain `tf.data.Dataset`.

        For people who map it, look into it, or feed it to a `keras.Model` of
        their own, with `keras_rl2.callbacks.RolloutRefresh` among its
        callbacks; or call `refresh()` before each round.

        Args:
            agent: `keras_rl2.Agent`, or what can do as much (see
                `agent_protocols`). Acts and prepares.

        Returns:
            An endless `tf.data.Dataset` of dicts of minibatches `[batch, ...]`.
        """
        rounds = self.as_rounds(agent)

        def minibatches(one_round: dict[str, Any]) -> tf.data.Dataset:
            return tf.data.Dataset.range(self.updates_per_round).map(
                lambda index: minibatch(one_round, index)
            )

        return _in_step(rounds.flat_map(minibatches))

    def as_rounds(
        self, agent: CollectingAgent, trajectories: bool = False
    ) -> tf.data.Dataset:
        """Returns whole rounds, their minibatches not yet taken together.

        Args:
            agent: `keras_rl2.Agent`, or what can do as much (see
                `agent_protocols`). Acts and prepares.
            trajectories: bool. Whether the round is given as it was
                collected, packed and not prepared. Defaults to `False`.

        Returns:
            An endless `tf.data.Dataset` of dicts: `samples` of `[N, ...]`,
            `rows` `[updates, batch]` of each minibatch, and their `weight`;
            or `batches` of `[updates, batch, ...]`; see `minibatch`.
        """
        self.bind(agent)
        if trajectories != self._gives_trajectories:
            self._gives_trajectories = trajectories
            self._ready.clear()
        dataset = tf.data.Dataset.from_generator(
            _endless(weakref.WeakMethod(self.hand_over)),
            output_signature=self._element_spec(),
        )
        # TensorFlow keeps the function for as long as the process lives: it
        # must not keep the agent with it. What is made of a dataset keeps it.
        cast(Any, dataset).rounds = self
        return _in_step(dataset)


def minibatch(
    one_round: dict[str, Any], index: Tensor | int
) -> dict[str, Tensor]:
    """Takes one minibatch out of a round, in the graph.

    Args:
        one_round: dict. Either `batches`, a dict of `[updates, batch, ...]`;
            or `samples`, a dict of `[N, ...]`, with the `rows`
            `[updates, batch]` of each minibatch and what they count, `weight`.
        index: scalar int. Which minibatch.

    Returns:
        dict of `[batch, ...]`, with `weight` in it.

    Example:

    >>> one_round = {
    ...     "samples": {"reward": tf.constant([1.0, 2.0, 3.0, 4.0])},
    ...     "rows": tf.constant([[2, 0], [1, 3]]),
    ...     "weight": tf.ones((2, 2))}
    >>> minibatch(one_round, 0)["reward"].numpy().tolist()
    [3.0, 1.0]
    """
    if "batches" in one_round:
        taken: dict[str, Tensor] = map_leaves(
            lambda each: each[index], one_round["batches"]
        )
        return taken
    rows = one_round["rows"][index]
    batch: dict[str, Tensor] = map_leaves(
        lambda each: tf.gather(each, rows), one_round["samples"]
    )
    batch["weight"] = one_round["weight"][index]
    return batch


def _endless(
    hand_over: weakref.WeakMethod[Callable[[], Round]],
) -> Callable[[], Iterator[Round]]:
    """Returns a generator function that does not keep its dataset alive."""

    def elements() -> Iterator[Round]:
        while (method := hand_over()) is not None:
            element = method()
            # Else it would be kept until the next one is asked for.
            del method
            yield element
            del element

    return elements


def _in_step(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Keeps `tf.data` from reading ahead of the rounds."""
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    options.autotune.enabled = False
    return dataset.with_options(options)


def tensor_specs(one: Any, *leading: int) -> Any:
    """Returns the TensorFlow specs of many of a kind.

    Args:
        one: tree of `ArraySpec`. Of one of them.
        *leading: int. Axes before its own, e.g. `updates, batch`.

    Returns:
        tree of `tf.TensorSpec`.

    Example:

    >>> tensor_specs({"reward": ArraySpec((), "float32")}, 4, 32)["reward"]
    TensorSpec(shape=(4, 32), dtype=tf.float32, name=None)
    """
    return map_leaves(
        lambda each: tf.TensorSpec((*leading, *each.shape), each.dtype), one
    )
