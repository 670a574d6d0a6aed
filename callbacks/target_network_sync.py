"""Target networks that follow the networks being trained."""

from typing import Any
from typing import NamedTuple

import keras
import tensorflow as tf

from keras_rl2.basics.arguments import refusing_unknown
from keras_rl2.callbacks.run import Logs
from keras_rl2.callbacks.run import update_counter
from keras_rl2.callbacks.run import updates
from keras_rl2.updates.target_networks import TargetUpdate
from keras_rl2.updates.target_networks import check_sync


class TargetNetworkSync(keras.callbacks.Callback):
    """Updates target networks from their sources at intervals of updates.

    Each `every` updates, `target = tau * source + (1 - tau) * target`. This
    holds for trainable weights of floats (if the source is not frozen); all
    others, such as the moving statistics of BatchNormalization, are copied.

    It happens in the graph, as a part of the model's `train_step`, since many
    updates may be one call of TensorFlow: a target is updated right after the
    update at which it is due, for all values of `steps_per_execution`,
    `jit_compile` and `run_eagerly`. Updates are counted by the variable
    `updates` of the model if it has one, else by `optimizer.iterations`; a
    loaded model continues both. A `fit` that begins at 0 updates begins with a
    copy, since the weights of the source may have been set after the target
    was made.

    An agent updates its targets by its own `tau` and `target_every`; during a
    `fit` with this callback, the settings of the callback take precedence. In
    any other `keras.Model` only a `fit` with this callback updates targets:
    the addition to the model's `train_step` remains there, switched off by a
    variable. Changed settings cause a retracing, which takes a second or two
    for a small network.

    Targets are, in this order: `target` and `source` if given; the pairs of
    the model's `target_pairs`; the model's attribute `target`, with all other
    weights of the model as the source.

    Args:
        tau: float. Share of the source, over 0 and at most 1; 1 copies it.
            Defaults to `1.0`.
        every: int. Updates from one move to the next. Defaults to `1`.
        target: `keras.layers.Layer` (such as a `keras.Model`) or str, the name
            of an attribute of the model. The network to update; None for the
            model's own targets. Defaults to `None`.
        source: `keras.layers.Layer` or str. The network that `target` follows;
            None for the model's weights that are not those of `target`.
            Defaults to `None`.

    Raises:
        ValueError: If `tau` or `every` is out of range; or when `fit` begins,
            if the weights of target and source do not match.

    Example:

    >>> import keras_rl2 as rl
    >>> class QNetwork(keras.Model):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.network = keras.Sequential(
    ...             [keras.Input((4,)), keras.layers.Dense(2)])
    ...         self.target = keras.models.clone_model(self.network)
    ...         self.target.trainable = False
    ...
    ...     def call(self, observation):
    ...         return self.network(observation)
    >>> model = QNetwork()
    >>> model.compile("sgd", "mse")
    >>> observation, value = keras.ops.ones((8, 4)), keras.ops.ones((8, 2))
    >>> history = model.fit(
    ...     observation, value, batch_size=2, verbose=0,
    ...     callbacks=[rl.callbacks.TargetNetworkSync(every=4)])
    >>> float(keras.ops.max(abs(
    ...     model.target(observation) - model.network(observation))))
    0.0

    Reference:
        [Mnih et al., 2015](https://doi.org/10.1038/nature14236): a copy at
        intervals of updates.
        [Lillicrap et al., 2016](https://arxiv.org/abs/1509.02971): a small
        `tau` at each update.
    """

    @refusing_unknown
    def __init__(
        self,
        tau: float = 1.0,
        every: int = 1,
        target: keras.layers.Layer | str | None = None,
        source: keras.layers.Layer | str | None = None,
    ) -> None:
        super().__init__()
        check_sync(tau, every)
        self.tau = tau
        self.every = every
        self.target = target
        self.source = source
        self._syncs: list[_Switched] = []

    def set_model(self, model: keras.Model) -> None:
        """Sets the updates of an agent's targets, or adds them to a model."""
        target_updates = [
            TargetUpdate(target, weights, self.tau, self.every)
            for target, weights in _pairs(model, self.target, self.source)
        ]
        super().set_model(model)
        if hasattr(model, "target_networks"):
            model.target_networks.ask(target_updates)
            return
        self._syncs = _SyncedTraining.of(model).install(target_updates)

    def on_train_begin(self, logs: Logs = None) -> None:
        """Copies before the first update, and enables the updates."""
        fresh = updates(self.model) == 0
        if fresh and hasattr(self.model, "target_networks"):
            self.model.target_networks.copy()
        for sync in self._syncs:
            if fresh:
                sync.update.copy()
            sync.enabled.assign(True)

    def on_train_end(self, logs: Logs = None) -> None:
        """Restores an agent's own updates; disables those of other models."""
        if hasattr(self.model, "target_networks"):
            self.model.target_networks.forget()
        for sync in self._syncs:
            sync.enabled.assign(False)


class _Switched(NamedTuple):
    """The updates of a target in a model that has none of its own."""

    update: TargetUpdate
    enabled: tf.Variable


class _SyncedTraining:
    """Replaces the `train_step` of a model that does not update targets.

    A custom model has no other place for code after each update. There is one
    instance for each model, with all its syncs, keyed by their targets.
    """

    def __init__(self, model: keras.Model) -> None:
        self._model = model
        self._syncs: dict[int, _Switched] = {}
        self._make_train_function = model.make_train_function
        self._train_step = model.train_step
        model.make_train_function = self.make_train_function
        model.train_step = self.train_step

    @classmethod
    def of(cls, model: keras.Model) -> "_SyncedTraining":
        """Returns the instance of a model, made by the first call."""
        owner = getattr(model.train_step, "__self__", None)
        return owner if isinstance(owner, cls) else cls(model)

    def install(self, updates: list[TargetUpdate]) -> list[_Switched]:
        """Adds updates, and returns their counterparts in the graph."""
        for update in updates:
            sync = self._syncs.get(id(update.target))
            if sync is None or sync.update.settings != update.settings:
                enabled = tf.Variable(False, trainable=False)
                self._syncs[id(update.target)] = _Switched(update, enabled)
                self._model.train_function = None
        return [self._syncs[id(update.target)] for update in updates]

    def make_train_function(self, force: bool = False) -> Any:
        """Disables all syncs, since the next `fit` may be without them.

        `on_train_end` is not enough: an interrupted `fit` skips it.
        """
        for sync in self._syncs.values():
            sync.enabled.assign(False)
        return self._make_train_function(force=force)

    def train_step(self, data: Any) -> Any:
        """Makes an update from a minibatch, and due updates of targets."""
        before = _count(self._model)
        logs = self._train_step(data)
        after = _count(self._model)
        for sync in self._syncs.values():
            sync.update.after_update(before, after, sync.enabled)
        return logs


def _count(model: keras.Model) -> Any:
    """Returns the number of updates made so far as a scalar int64."""
    # Read now: a variable would change with the update.
    return tf.cast(tf.convert_to_tensor(update_counter(model)), "int64")


def _pairs(
    model: keras.Model,
    target: keras.layers.Layer | str | None,
    source: keras.layers.Layer | str | None,
) -> list[tuple[Any, list[Any]]]:
    """Returns targets, each with the weights of its source."""
    pairs = getattr(model, "target_pairs", None)
    if target is not None or source is not None or pairs is None:
        target = _layer(model, "target" if target is None else target)
        pairs = [(target, _layer(model, source))]
    # Programs that train several agents pass the callback to all of them.
    if not pairs and not hasattr(model, "target_networks"):
        raise ValueError(
            "Expected a model with target networks. "
            f"Received: {_describe(model)} with target_pairs={pairs}"
        )
    return [
        (target, _source_weights(model, target, source))
        for target, source in pairs
    ]


def _layer(model: keras.Model, value: Any) -> Any:
    """Returns a layer, passed itself or by the name of the attribute."""
    return getattr(model, value) if isinstance(value, str) else value


def _source_weights(
    model: keras.Model,
    target: keras.layers.Layer,
    source: keras.layers.Layer | None,
) -> list[Any]:
    """Returns the weights that a target follows."""
    if source is None:
        others = {id(weight) for weight in target.weights}
        others.add(id(getattr(model, "updates", None)))
        weights = [w for w in model.weights if id(w) not in others]
    else:
        weights = list(source.weights)
    shapes = [tuple(weight.shape) for weight in weights]
    target_shapes = [tuple(weight.shape) for weight in target.weights]
    if not shapes or shapes != target_shapes or source is target:
        raise ValueError(
            "Expected a built target, and another network as its source, "
            "whose weights match one by one in number and shape. Received: "
            f"target {_describe(target)} with {target_shapes}, "
            f"source with {shapes}"
        )
    return weights


def _describe(layer: keras.layers.Layer) -> str:
    """Returns a layer's class and name for error messages."""
    return f"{type(layer).__name__} {getattr(layer, 'name', '')!r}"
