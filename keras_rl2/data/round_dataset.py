"""The round: some steps in environments, then some updates from them."""

import abc
import contextlib
import functools
import operator
import weakref
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any
from typing import cast

import numpy as np
import tensorflow as tf

from keras_rl2.basics.inherited_arguments import Described
from keras_rl2.basics.outliers import Outliers
from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.stopwatch import Stopwatch
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.data.memory import bytes_of
from keras_rl2.policies.agent_protocols import CollectingAgent
from keras_rl2.saving.checkpoint_folder import SegmentLog
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves

# The minibatches of one call, which are copied once, take no more.
MOST_BYTES = 2**25
# Arrays of a whole round, some of them grouped under a name.
Samples = Mapping[str, Tree[np.ndarray]]


class RoundDataset(Described, abc.ABC):
    """Base of rollout and replay datasets.

    `fit` calls `collect()`, then `prepare(trajectory)`, and makes the updates
    of the round. In Keras' own loop, `refresh()` calls both on the main thread,
    so that an error of the environment keeps its type and Ctrl-C works, and a
    generator then hands over the round. Nothing is read ahead: a batch before
    the round was refreshed raises an error instead of returning stale data.

    Args:
        rounds_per_epoch: int. Rounds of one Keras epoch.

    Attributes:
        stopwatch: `keras_rl2.basics.stopwatch.Stopwatch` or None. Measures the
            parts of a round; None, the default, for no measurement.
        ready: dict or None. The round that `as_dataset` hands over next.

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
    #: `VectorEnvAdapter`; None for recorded data.
    env: Any = None

    def __init__(self, rounds_per_epoch: int) -> None:
        self.rounds_per_epoch = rounds_per_epoch
        self.agent: CollectingAgent | None = None
        self.stopwatch: Stopwatch | None = None
        self.ready: Samples | None = None
        # With 0, a call makes all updates of a round.
        self._updates_per_call = 0
        # The rest of a round that takes several calls, drawn when needed.
        self._further: Iterator[Samples] = iter(())

    @property
    def updates_per_call(self) -> int:
        """Updates that one call makes, a divisor of those of a round."""
        if self.graph_rounds() is not None:
            return self.updates_per_round
        return self._updates_per_call or self.updates_per_round

    @property
    def steps_per_epoch(self) -> int:
        """Updates of one Keras epoch."""
        return self.rounds_per_epoch * self.updates_per_round

    @property
    def steps_before_first_round(self) -> int:
        """Steps that remain before the first update."""
        return 0

    @property
    def fewest_steps_per_round(self) -> int:
        """Minimum steps of a round."""
        return self.steps_per_round

    def rounds_of_epoch(self, needed: int) -> int:
        """Returns the rounds of an epoch, in a `fit` of `needed` rounds."""
        return min(self.rounds_per_epoch, needed)

    @abc.abstractmethod
    def bind(self, agent: CollectingAgent) -> None:
        """Binds the dataset to an agent, checking that the two fit.

        Args:
            agent: `keras_rl2.Agent`. Acts and learns.
        """

    @abc.abstractmethod
    def collect(self) -> Trajectory | None:
        """Takes the steps of a round with the agent's current weights.

        Returns:
            `Trajectory`; None for recorded data.

        Raises:
            ValueError: If the dataset is not bound to an agent, or an
                observation or reward is not finite.
        """

    @abc.abstractmethod
    def prepare(self, trajectory: Trajectory | None) -> Samples:
        """Returns the samples for the updates of a round.

        Args:
            trajectory: `Trajectory` or None, as returned by `collect`.

        Returns:
            dict; see `minibatch`.
        """

    def refresh(self) -> None:
        """Collects and prepares the next round, for `as_dataset`.

        Raises:
            ValueError: See `collect`.
        """
        self.ready = self.prepare(self.collect())

    def logs(self) -> dict[str, float]:
        """Returns the metrics of the last rounds, for the logs."""
        return {key: float(each.count) for key, each in self.outliers.items()}

    @property
    def outliers(self) -> dict[str, Outliers]:
        """Outliers left out of running statistics, by their key in the logs."""
        return dict(getattr(self.agent, "outliers", {}))

    @abc.abstractmethod
    def _element_spec(self) -> dict[str, Any]:
        """Returns shapes and dtypes of `minibatches` of a round."""

    @abc.abstractmethod
    def get_state(self, log: SegmentLog | None = None) -> dict[str, Any]:
        """Returns the state that later rounds depend on, as plain data.

        Args:
            log: `SegmentLog` or None. Receives the transitions that a replay
                has stored since the last call, which are then not returned.
                Defaults to `None`.
        """

    @abc.abstractmethod
    def set_state(
        self, state: dict[str, Any], log: SegmentLog | None = None
    ) -> None:
        """Restores the state returned by `get_state`, after `bind`.

        Args:
            state: dict, as returned by `get_state`.
            log: `SegmentLog` or None. See `get_state`. Defaults to `None`.
        """

    def settings(self) -> dict[str, Any]:
        """Returns the numbers that define a round, for display."""
        # They are all plain attributes, also in subclasses.
        return {
            name: value
            for name, value in vars(self).items()
            if not name.startswith("_") and np.isscalar(value)
        }

    def own_settings(self) -> dict[str, Any]:
        """Returns the settings that the algorithm chose."""
        return {}

    def close(self) -> None:
        """Closes the environments, and ends processes that do not close."""
        if self.env is not None:
            self.env.close()

    def shielded(self) -> contextlib.AbstractContextManager[None]:
        """Shields the processes of environments, if any, from signals."""
        if self.env is None:
            return contextlib.nullcontext()
        return self.env.shielded()

    def _in_parts(self, draw: Callable[[], dict[str, Any]]) -> Samples:
        """Draws the minibatches of a call, and later those of the others."""
        calls = self.updates_per_round // self.updates_per_call
        self._further = ({"batches": draw()} for _ in range(calls))
        return next(self._further)

    def _section(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Assigns the time of a `with` block to a section of the round."""
        if self.stopwatch is None:
            return contextlib.nullcontext()
        return self.stopwatch.section(name)

    def begin(self) -> None:
        """Discards a leftover round from a previous `fit`."""
        self.ready, self._further = None, iter(())
        self.stopwatch = None

    def hand_over(self) -> Samples:
        """Returns the finished round, or the next part of it, once.

        Returns:
            dict; see `prepare`.

        Raises:
            RuntimeError: If `refresh` has not been called since the last round.
        """
        one_round, self.ready = self.ready or next(self._further, None), None
        if one_round is None:
            raise RuntimeError(
                "A batch was requested before the round was refreshed. "
                "Expected `keras_rl2.callbacks.RolloutRefresh` among the "
                "callbacks of `fit`, or a call of `refresh()` before each "
                f"{self.updates_per_round} batches."
            )
        return one_round

    def largest_return(self) -> float:
        """Returns a bound of discounted returns, or infinity for none."""
        return np.inf

    def graph_rounds(self) -> Any:
        """Returns the maker of rounds in the graph, once bound to an agent.

        Returns:
            `RoundsInGraph`, which makes rounds within the train function; None
            where environments or agent need Python.
        """
        return None

    def as_dataset(self, agent: CollectingAgent) -> tf.data.Dataset:
        """Returns the minibatches as a plain `tf.data.Dataset`.

        Use it to map or inspect the minibatches, or to train another
        `keras.Model`. Add `keras_rl2.callbacks.RolloutRefresh` to the callbacks
        of its `fit`, or call `refresh()` before each round.

        Args:
            agent: `keras_rl2.Agent`, or an object with the same methods
                (see `agent_protocols`). Acts and prepares.

        Returns:
            An endless `tf.data.Dataset` of dicts of minibatches `[batch, ...]`.
        """
        self.bind(agent)
        rounds = tf.data.Dataset.from_generator(
            _endless(weakref.WeakMethod(self.hand_over)),
            output_signature=self._element_spec(),
        )
        # TensorFlow keeps the function until the process ends, so that it must
        # not hold the agent. Datasets derived from this one hold it.
        cast(Any, rounds).rounds = self
        dataset = rounds.unbatch()
        # `tf.data` must not read ahead of the rounds.
        options = tf.data.Options()
        options.experimental_optimization.inject_prefetch = False
        options.autotune.enabled = False
        return dataset.with_options(options)


def largest_divisor(number: int, most: int) -> int:
    """Returns the largest divisor of a number that is at most `most`, or 1."""
    divisors = range(min(number, most), 1, -1)
    return next((each for each in divisors if number % each == 0), 1)


def updates_within(updates: int, spec: Mapping[str, Any], rows: int) -> int:
    """Returns the largest divisor of updates whose minibatches take 32 MiB."""
    return largest_divisor(
        updates, MOST_BYTES // (rows * bytes_of(leaves(spec)))
    )


def minibatch(
    one_round: dict[str, Any], index: Tensor | int
) -> dict[str, Tensor]:
    """Takes one minibatch out of a round, in the graph.

    Args:
        one_round: dict. Either `batches`, a dict of `[updates, batch, ...]`;
            or `samples`, a dict of `[N, ...]`, with the `rows` `[updates,
            batch]` of each minibatch and their `weight`.
        index: scalar int. Index of the minibatch.

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
        return map_leaves(operator.itemgetter(index), one_round["batches"])
    rows = one_round["rows"][index]
    batch: dict[str, Tensor] = map_leaves(
        functools.partial(tf.gather, indices=rows), one_round["samples"]
    )
    batch["weight"] = one_round["weight"][index]
    return batch


def minibatches(one_round: Samples) -> dict[str, Any]:
    """Returns the minibatches of a round, stacked.

    Returns:
        dict of `[updates, batch, ...]`.
    """
    if "batches" in one_round:
        return cast("dict[str, Any]", one_round["batches"])
    batches: dict[str, Any] = map_leaves(
        operator.itemgetter(one_round["rows"]), one_round["samples"]
    )
    return {**batches, "weight": one_round["weight"]}


def _endless(
    hand_over: weakref.WeakMethod[Callable[[], Samples]],
) -> Callable[[], Iterator[dict[str, Any]]]:
    """Returns a generator function that does not keep its dataset alive."""

    def elements() -> Iterator[dict[str, Any]]:
        while (method := hand_over()) is not None:
            element = minibatches(method())
            # Otherwise it would be kept until the next request.
            del method
            yield element
            del element

    return elements


def tensor_specs(one: Any, *leading: int) -> Any:
    """Returns the TensorFlow specs of stacked arrays.

    Example:

    >>> from keras_rl2.spaces.array_spec import ArraySpec
    >>> tensor_specs({"reward": ArraySpec((), "float32")}, 4, 32)["reward"]
    TensorSpec(shape=(4, 32), dtype=tf.float32, name=None)
    """
    return map_leaves(
        lambda each: tf.TensorSpec((*leading, *each.shape), each.dtype), one
    )
