"""Target networks: copies that follow the networks being trained.

Everything here runs in the graph, as a part of an update: many updates may be
one call of TensorFlow.
"""

import contextlib
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

import keras
import tensorflow as tf

from keras_rl2.basics import replicas
from keras_rl2.basics.arguments import check_in_range
from keras_rl2.basics.arguments import check_positive
from keras_rl2.basics.shapes import Tensor


class TargetUpdate:
    """How one target follows its source: each `every` updates by `tau`.

    target = tau * source + (1 - tau) * target, for trainable weights of floats
    (of a source that is not frozen). All others, such as the moving statistics
    of BatchNormalization, are copied.

    Example:

    >>> import keras
    >>> network = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    >>> target = keras.models.clone_model(network)
    >>> move = TargetUpdate(target, network.weights, tau=1.0, every=2)
    >>> move.after_update(before=0, after=1)
    >>> bool(target.weights[0].numpy() == network.weights[0].numpy())
    False
    >>> move.after_update(before=1, after=2)
    >>> bool(target.weights[0].numpy() == network.weights[0].numpy())
    True

    Reference:
        [Mnih et al., 2015](https://doi.org/10.1038/nature14236): a copy every
        so many updates.
        [Lillicrap et al., 2016](https://arxiv.org/abs/1509.02971): a small
        `tau` at each update.
    """

    def __init__(
        self,
        target: keras.Model,
        source: list[keras.Variable],
        tau: float,
        every: int,
    ) -> None:
        check_sync(tau, every)
        self.target = target
        self.tau = float(tau)
        self.every = int(every)
        self._weights = []
        # All that a trace depends on.
        self.settings: tuple[Any, ...] = self.tau, self.every
        for ours, theirs in zip(target.weights, source, strict=True):
            # A target's weights are often frozen: the source decides whether
            # they are averaged.
            moves = theirs.trainable and tf.as_dtype(theirs.dtype).is_floating
            averaged = bool(tau < 1.0 and moves)
            self._weights.append((ours, theirs, averaged))
            self.settings += id(ours), id(theirs), averaged

    def copy(self) -> None:
        """Makes the target equal to its source."""
        for target, source, _ in self._weights:
            target.assign(source.value)

    def move(self) -> None:
        """Moves the target by its `tau`, whether or not it is due."""
        self._move(self.tau)

    def after_update(
        self, before: Tensor, after: Tensor, enabled: Tensor | None = None
    ) -> None:
        """Moves the target if an update has made it due."""
        due = after // self.every > before // self.every
        if enabled is not None:
            due = tf.logical_and(due, enabled)
        if self.every == 1 and self.tau < 1.0:
            # Nearly always due: a share of 0 is cheaper than a branch.
            self._move(self.tau * tf.cast(due, "float32"), due)
        else:
            tf.cond(due, self.move, lambda: None)

    def _move(self, share: Tensor | float, due: Tensor | None = None) -> None:
        """Moves all weights by a share of the way, and copies those due."""
        for target, source, averaged in self._weights:
            variable, new = target.value, tf.cast(source.value, target.dtype)
            if averaged:
                # Values of a source that are not finite do not reach targets
                # that are not due.
                step = tf.math.multiply_no_nan(
                    new - variable, tf.cast(share, target.dtype)
                )
                variable.assign_add(step)
            elif due is None:
                variable.assign(new)
            else:
                variable.assign(tf.where(due, new, variable))


class TargetNetworks:
    """The target networks of an agent, and their present updates.

    By default they follow by the agent's `tau` and `target_every`. Other
    updates can be set, for example by a `TargetNetworkSync` callback.
    """

    def __init__(self) -> None:
        self._own: list[TargetUpdate] = []
        self._asked: dict[int, TargetUpdate] = {}

    def follow(self, updates: Iterable[TargetUpdate]) -> None:
        """Sets the updates that apply by default."""
        self._own = list(updates)

    def freeze(self) -> None:
        """Keeps all targets from being trained."""
        for update in self._own:
            update.target.trainable = False

    def ask(self, updates: Iterable[TargetUpdate]) -> None:
        """Sets other moves until `forget`; targets left out stay unchanged."""
        self._asked |= {id(update.target): update for update in updates}

    def forget(self) -> None:
        """Returns to the default moves."""
        self._asked = {}

    @property
    def present(self) -> list[TargetUpdate]:
        """The moves in force."""
        return list(self._asked.values()) or self._own

    @property
    def settings(self) -> tuple[tuple[Any, ...], ...]:
        """The settings of each move in force, on which a trace depends."""
        return tuple(each.settings for each in self.present)

    def copy(self) -> None:
        """Makes all targets equal to their sources."""
        for update in self.present:
            update.copy()

    def begin(self, updates: keras.Variable) -> None:
        """Makes all targets equal to their sources before the first update.

        The weights of the sources may have been set in the meantime.
        """
        if int(updates.numpy()) == 0:
            self.copy()

    @contextlib.contextmanager
    def moving(self, updates: keras.Variable) -> Iterator[None]:
        """Moves the targets that the update within makes due, in the graph."""
        if not self.present:
            yield
            return
        with tf.init_scope():
            # Outside of the graph, when it is traced: no check is needed at
            # each of a million updates.
            self.begin(updates)
        before = tf.cast(tf.convert_to_tensor(updates), "int64")
        yield
        after = tf.cast(tf.convert_to_tensor(updates), "int64")

        def move() -> None:
            for update in self.present:
                update.after_update(before, after)

        replicas.once(move)


def check_sync(tau: Any, every: Any, name: str = "every") -> None:
    """Raises unless `tau` and `every` are valid for a target network."""
    check_in_range(tau=(tau, 1e-12, 1.0))
    check_positive(**{name: every})
