"""Models that count their updates, for tests of `TargetNetworkSync`."""

import keras
import numpy as np

MODES = {
    "graph": {"jit_compile": False},
    "compiled": {"jit_compile": True},
    "eager": {"run_eagerly": True},
}
ONES = np.ones((5, 1), "float32")
TRACES = []


def linear(inputs=1, layers=(), kernel="zeros"):
    head = keras.layers.Dense(1, use_bias=False, kernel_initializer=kernel)
    return keras.Sequential([keras.Input((inputs,)), *layers, head])


def add_one(target, output):
    """A loss whose gradient is -1 for inputs of 1."""
    return -output


@keras.saving.register_keras_serializable("tests")
class Counter(keras.Model):
    """Its only weight of `network` is the number of its updates."""

    def __init__(self, inputs=1, target=None, **kwargs):
        super().__init__(**kwargs)
        self.network = linear(inputs)
        self.target = target or linear(inputs)
        self.target.trainable = False

    def call(self, x):
        return self.network(x)

    def train_step(self, data):
        TRACES.append(self)
        return super().train_step(data)


class TwoTargets(Counter):
    def __init__(self):
        super().__init__()
        self.other = linear()
        self.other.trainable = False


class Counted(Counter):
    """Counts its updates itself."""

    def __init__(self):
        super().__init__()
        self.updates = self.add_weight(dtype="int64", trainable=False)

    def train_step(self, data):
        logs = super().train_step(data)
        self.updates.assign_add(1)
        return logs


class Paired(TwoTargets):
    """Says itself what follows what: a chain."""

    @property
    def target_pairs(self):
        return [(self.other, self.target), (self.target, self.network)]


def compiled(model, optimizer=None, **kwargs):
    # Five updates take less time than the tracing of one.
    kwargs = kwargs or MODES["eager"]
    optimizer = optimizer or keras.optimizers.SGD(1.0)
    model.compile(optimizer, add_one, **kwargs)
    return model


def fit(model, *callbacks, epochs=1, x=ONES):
    arguments = {"batch_size": 1, "verbose": 0, "shuffle": False}
    model.fit(x, x, epochs=epochs, callbacks=list(callbacks), **arguments)


def value(network):
    return network.get_weights()[-1].item()


def followed(updates, tau=1.0, every=1, start=0.0):
    """What a target is when its source counts the updates."""
    for update in updates:
        if update % every == 0:
            start = tau * update + (1.0 - tau) * start
    return start
