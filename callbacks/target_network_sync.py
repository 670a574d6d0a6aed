"""Target networks that follow the networks being trained."""

from typing import Any

import keras
import tensorflow as tf

# What `fit` may run in the graph; the second is that of on-policy agents.
_UPDATING = ("train_step", "train_on_trajectory")


class TargetNetworkSync(keras.callbacks.Callback):
    """Moves target networks towards their sources every so many updates.

    Each `every` updates, `target = tau * source + (1 - tau) * target`. That
    goes for trainable weights of floats (of a source that is not frozen); all
    others, such as the moving statistics of BatchNormalization, are copied.

    The graph does it, as a part of the model's `train_step`, since many
    updates may be one call of TensorFlow: a target is moved right after the
    update that it is due at, whatever `steps_per_execution`, `jit_compile` and
    `run_eagerly` are. Updates are counted by the variable `updates` of the
    model if it has one, else by `optimizer.iterations`; both go on where a
    saved model was. A `fit` that begins at 0 updates begins with a copy, since
    the source may have been given weights after the target was made.

    Only a `fit` with this callback moves targets. What it added to the model's
    `train_step` stays there, switched off by a variable: another `fit` without
    or with the same settings traces nothing. Other settings trace again, which
    takes a second or two for a small network.

    Targets are, in this order: `target` and `source` if given; the pairs of
    the model's `target_pairs`; the model's attribute `target`, with all other
    weights of the model as the source.

    Args:
        tau: float. Share of the source, over 0 and at most 1; 1 copies it.
            Defaults to `1.0`.
        every: int. Updates from one move to the next. Defaults to `1`.
        target: `keras.layers.Layer` (a `keras.Model`, say) or str, the name of
            an attribute of the model. What follows; None for the model's own
            targets. Defaults to `None`.
        source: `keras.layers.Layer` or str. What `target` follows; None for
            the model's weights that are not those of `target`. Defaults to
            `None`.

    Raises:
        ValueError: If `tau` or `every` is out of range; or when `fit` begins,
            if the model has no such networks or their weights do not match.

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
        [Mnih et al., 2015](https://doi.org/10.1038/nature14236): a copy every
        so many updates.
        [Lillicrap et al., 2016](https://arxiv.org/abs/1509.02971): a small
        `tau` at each update.
    """

    def __init__(
        self,
        tau: float = 1.0,
        every: int = 1,
        target: Any = None,
        source: Any = None,
    ) -> None:
        super().__init__()
        if not 0.0 < tau <= 1.0:
            raise ValueError(
                "Expected `tau` to be over 0 and at most 1. "
                f"Received: tau={tau}"
            )
        if not isinstance(every, int) or every < 1:
            raise ValueError(
                "Expected `every` to be a number of updates, at least 1. "
                f"Received: every={every}"
            )
        self.tau = tau
        self.every = every
        self.target = target
        self.source = source
        self._syncs: list[_Sync] = []

    def set_model(self, model: Any) -> None:
        """Adds the moves to the model's `train_step`, once."""
        _check_counted(model)
        syncs = [
            _Sync(target, weights, self.tau, self.every)
            for target, weights in _pairs(model, self.target, self.source)
        ]
        super().set_model(model)
        self._syncs = _SyncedTraining.of(model).install(syncs)

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Switches the moves on, and copies before the first update."""
        fresh = int(_count(self.model)) == 0
        for sync in self._syncs:
            if fresh:
                sync.copy()
            sync.enabled.assign(True)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Switches the moves off."""
        for sync in self._syncs:
            sync.enabled.assign(False)


class _Sync:
    """How one target follows its source.

    Args:
        target: Layer. Moved in place.
        source: list of the variables that its weights follow.
        tau: float. Share of the source.
        every: int. Updates from one move to the next.
    """

    def __init__(
        self, target: Any, source: list[Any], tau: float, every: int
    ) -> None:
        self.target = target
        self.tau = tau
        self.every = every
        self.enabled = tf.Variable(False, trainable=False)
        # A target's weights are often frozen: whether they are averaged is
        # for the source to say.
        self.weights = [
            (ours, theirs, tau < 1.0 and _is_averaged(theirs))
            for ours, theirs in zip(target.weights, source, strict=True)
        ]

    @property
    def settings(self) -> tuple[Any, ...]:
        """All that a trace depends on."""
        weights = [(id(x), id(y), averaged) for x, y, averaged in self.weights]
        return self.tau, self.every, weights

    def copy(self) -> None:
        """Makes the target equal to its source."""
        for target, source, _ in self.weights:
            target.assign(source.value)

    def add_to_update(self, before: Any, after: Any) -> None:
        """Moves the target if an update has made it due.

        Args:
            before: scalar int64. Updates before the one just made.
            after: scalar int64. Updates by now; no more than before where
                gradients are accumulated, or were not finite.
        """
        due = after // self.every > before // self.every
        due = tf.logical_and(due, self.enabled)
        if self.every == 1 and self.tau < 1.0:
            # Nearly always due: a share of 0 is cheaper than a branch.
            self._move(self.tau * tf.cast(due, "float32"), due)
        else:
            tf.cond(due, lambda: self._move(self.tau), lambda: None)

    def _move(self, share: Any, due: Any = None) -> None:
        """Moves all weights by a share of the way; copies those that are due.

        Args:
            share: float or scalar float32. Of the way to the source.
            due: scalar bool, or None where there is no doubt. Defaults to
                `None`.
        """
        for target, source, averaged in self.weights:
            variable, new = target.value, tf.cast(source.value, target.dtype)
            if averaged:
                # A source that is not finite stays away from targets that
                # are not to be moved.
                step = tf.math.multiply_no_nan(
                    new - variable, tf.cast(share, target.dtype)
                )
                variable.assign_add(step)
            elif due is None:
                variable.assign(new)
            else:
                variable.assign(tf.where(due, new, variable))


class _SyncedTraining:
    """Stands in for the methods of a model that make updates.

    One for a model, with all its syncs: they are told apart by their targets.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._syncs: dict[int, _Sync] = {}
        self._make_train_function = model.make_train_function
        self._originals = {
            name: getattr(model, name)
            for name in _UPDATING
            if hasattr(model, name)
        }
        for name in (*self._originals, "make_train_function"):
            setattr(model, name, getattr(self, name))
        model.train_function = None

    @classmethod
    def of(cls, model: Any) -> "_SyncedTraining":
        """Returns that of the model, which is made at the first call."""
        owner = getattr(model.train_step, "__self__", None)
        return owner if isinstance(owner, cls) else cls(model)

    def install(self, syncs: list[_Sync]) -> list[_Sync]:
        """Takes syncs in, and returns those that the graph has for them."""
        for sync in syncs:
            installed = self._syncs.get(id(sync.target))
            if installed is None or installed.settings != sync.settings:
                self._syncs[id(sync.target)] = sync
                self._model.train_function = None
        return [self._syncs[id(sync.target)] for sync in syncs]

    def make_train_function(self, force: bool = False) -> Any:
        """Switches all syncs off: a `fit` begins that may be without them.

        `on_train_end` is not enough: a `fit` that was interrupted skips it.
        """
        for sync in self._syncs.values():
            sync.enabled.assign(False)
        return self._make_train_function(force=force)

    def train_step(self, data: Any) -> Any:
        """Makes an update from a minibatch, and what is due after it."""
        return self._update("train_step", data)

    def train_on_trajectory(self, arrays: Any) -> Any:
        """Makes an update from a rollout, and what is due after it."""
        return self._update("train_on_trajectory", arrays)

    def _update(self, name: str, data: Any) -> Any:
        """Calls a method of the model, then moves the targets."""
        before = _count(self._model)
        logs = self._originals[name](data)
        after = _count(self._model)
        for sync in self._syncs.values():
            sync.add_to_update(before, after)
        return logs


def _count(model: Any) -> Any:
    """Returns the number of updates made so far as a scalar int64."""
    updates = getattr(model, "updates", None)
    if not _is_variable(updates):
        updates = model.optimizer.iterations
    # Read now: a variable would change with the update.
    return tf.cast(tf.convert_to_tensor(updates), "int64")


def _check_counted(model: Any) -> None:
    """Refuses a model whose updates nothing counts."""
    if _is_variable(getattr(model, "updates", None)):
        return
    if getattr(model, "optimizer", None) is None:
        raise ValueError(
            "Expected a model that is compiled with an optimizer, or has a "
            f"variable `updates`. Received: {_describe(model)}"
        )


def _is_variable(value: Any) -> bool:
    """Says whether something is a variable."""
    return isinstance(value, keras.Variable | tf.Variable)


def _is_averaged(weight: Any) -> bool:
    """Says whether a weight is one that an average makes sense of."""
    return bool(weight.trainable and tf.as_dtype(weight.dtype).is_floating)


def _pairs(model: Any, target: Any, source: Any) -> list[tuple[Any, list[Any]]]:
    """Returns targets, each with the weights that its own ones follow."""
    pairs = getattr(model, "target_pairs", None)
    if target is not None or source is not None or pairs is None:
        target = "target" if target is None else target
        target = _layer(model, "target", target)
        if source is not None:
            source = _layer(model, "source", source)
        pairs = [(target, source)]
    if not pairs:
        raise ValueError(
            "Expected a model with target networks. "
            f"Received: {_describe(model)} with target_pairs={pairs}"
        )
    return [
        (target, _source_weights(model, target, source))
        for target, source in pairs
    ]


def _layer(model: Any, argument: str, value: Any) -> Any:
    """Returns the layer that an argument means."""
    layer = getattr(model, value, None) if isinstance(value, str) else value
    if not isinstance(layer, keras.layers.Layer):
        raise ValueError(
            f"Expected `{argument}` to be a network or the name of one among "
            "the model's attributes. "
            f"Received: {argument}={value!r} for {_describe(model)}"
        )
    return layer


def _source_weights(model: Any, target: Any, source: Any) -> list[Any]:
    """Returns a target's source, checked weight by weight."""
    if source is target:
        raise ValueError(
            "Expected a target that is not its own source. "
            f"Received: {_describe(target)} as both"
        )
    if source is None:
        others = {id(weight) for weight in target.weights}
        others.add(id(getattr(model, "updates", None)))
        weights = [w for w in model.weights if id(w) not in others]
    else:
        weights = list(source.weights)
    shapes, wanted = _shapes(weights), _shapes(target.weights)
    if not wanted or shapes != wanted:
        whose = "the model's other weights" if source is None else "the source"
        raise ValueError(
            "Expected a built target whose weights match those of its source "
            "one by one in number and shape; pass `source` to say which "
            f"network that is. Received: target {_describe(target)} with "
            f"{wanted}, {whose} with {shapes}"
        )
    return weights


def _shapes(weights: list[Any]) -> list[tuple[int, ...]]:
    """Returns the shapes of weights."""
    return [tuple(weight.shape) for weight in weights]


def _describe(layer: Any) -> str:
    """Names a layer in an error."""
    return f"{type(layer).__name__} {getattr(layer, 'name', '')!r}"
