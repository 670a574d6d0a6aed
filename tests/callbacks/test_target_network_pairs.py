"""Which network follows which, and what of it."""

import keras
import numpy as np
import pytest

from keras_rl2.callbacks import TargetNetworkSync
from support import golden
from support.errors import raises
from support.sync_models import MODES
from support.sync_models import ONES
from support.sync_models import Counter
from support.sync_models import Paired
from support.sync_models import TwoTargets
from support.sync_models import compiled
from support.sync_models import fit
from support.sync_models import linear
from support.sync_models import value


def test_networks_by_name():
    for arguments in (
        {},
        {"target": "target"},
        {"source": "network"},
        {"target": "target", "source": "network"},
    ):
        model = compiled(Counter())
        fit(model, TargetNetworkSync(every=3, **arguments))
        assert value(model.target) == 3, arguments


def test_networks_themselves():
    model, outside = compiled(Counter()), linear()
    fit(model, TargetNetworkSync(every=2, target=outside, source=model.target))
    assert value(model.target) == value(outside) == 0
    sync = TargetNetworkSync(every=2, target=outside, source=model.network)
    fit(model, sync)
    assert (value(model.target), value(outside)) == (0, 10)


def test_pairs_of_the_model():
    model = compiled(Paired())
    fit(model, TargetNetworkSync())
    # In the order given: the first follows what the second was before.
    assert [value(model.other), value(model.target)] == [4, 5]
    # Arguments come before pairs.
    model = compiled(Paired())
    fit(model, TargetNetworkSync(target="target", source="network"))
    assert [value(model.other), value(model.target)] == [0, 5]


class Normalized(keras.Model):
    """Statistics, a weight of integers, and a part that is frozen."""

    def __init__(self):
        super().__init__()
        self.network, self.target = self.make(), self.make()
        self.target.trainable = False
        self.network.layers[0].trainable = False

    def make(self):
        layers = [
            keras.layers.Dense(3, name="frozen"),
            keras.layers.BatchNormalization(momentum=0.5),
            Steps(),
        ]
        return linear(2, layers, "glorot_uniform")

    def call(self, x, training=False):
        return self.network(x, training=training)


class Steps(keras.layers.Layer):
    def build(self, _):
        self.steps = self.add_weight(dtype="int32", trainable=False)

    def call(self, x, training=False):
        if training:
            self.steps.assign_add(3)
        return x


@pytest.mark.parametrize(
    ("tau", "mode"), [(1.0, "eager"), (0.5, "graph"), (0.1, "eager")]
)
def test_only_trained_weights_are_averaged(tau, mode):
    model = Normalized()
    model.compile(keras.optimizers.SGD(0.1), "mse", **MODES[mode])
    names = [w.name for w in model.network.weights]
    start = model.network.get_weights()
    x = np.random.default_rng(0).normal(size=(8, 2)).astype("float32")
    model.fit(x, x[:, :1], callbacks=[TargetNetworkSync(tau)], verbose=0)
    averaged = []
    for name, before, after, target in zip(
        names,
        start,
        model.network.get_weights(),
        model.target.get_weights(),
        strict=True,
    ):
        if np.array_equal(target, after):
            continue
        averaged.append(name)
        np.testing.assert_array_equal(
            target, before + np.float32(tau) * (after - before)
        )
    assert averaged == ([] if tau == 1.0 else ["gamma", "beta", "kernel"])
    assert int(model.target.layers[2].steps) == 3


@pytest.mark.parametrize(
    ("mode", "every"),
    [("eager", 1), pytest.param("compiled", 2, marks=pytest.mark.slow)],
)
def test_published_numbers(mode, every):
    (case,) = (c for c in golden.load_cases() if c["function"] == "polyak")
    inputs = golden.as_arrays(case["inputs"], "float32")
    model = compiled(Counter(2), keras.optimizers.SGD(0.0), **MODES[mode])
    model.optimizer.iterations.assign(every * 7 - 1)
    model.network.set_weights([inputs["param"][:, None]])
    model.target.set_weights([inputs["target"][:, None]])
    sync = TargetNetworkSync(inputs["tau"], every)
    model.fit(np.ones((1, 2)), ONES[:1], callbacks=[sync], verbose=0)
    np.testing.assert_allclose(
        model.target.get_weights()[0][:, 0],
        case["expected"]["target"],
        **case["tolerance"],
    )


# What is refused.


def test_numbers_out_of_range():
    for tau in (0.0, -0.1, 1.5, float("nan")):
        with raises("`tau`", f"tau={tau}"):
            TargetNetworkSync(tau)
    for every in (0, -1, 2.0, None):
        with raises("`every`", f"every={every}"):
            TargetNetworkSync(every=every)


def unmatched():
    return Counter(target=linear(3))


def without_pairs():
    class Empty(Counter):
        target_pairs = ()

    return Empty()


def unbuilt():
    return Counter(target=keras.Sequential([keras.layers.Dense(1)]))


def test_networks_that_do_not_fit():
    for make, arguments, expected, received in (
        (linear, {}, "`target` to be a network", "target='target'"),
        (Counter, {"target": "head"}, "`target` to be", "target='head'"),
        (Counter, {"source": "head"}, "`source` to be", "source='head'"),
        (Counter, {"target": 3}, "`target` to be a network", "target=3"),
        (Counter, {"source": "target"}, "not its own source", "as both"),
        (unmatched, {}, "pass `source`", r"\(3, 1\)\], .*\[\(1, 1\)\]"),
        (TwoTargets, {}, "pass `source`", r"\[\(1, 1\), \(1, 1\)\]"),
        (without_pairs, {}, "with target networks", r"target_pairs=\(\)"),
        (unbuilt, {}, "a built target", r"with \[\]"),
    ):
        model = compiled(make())
        before = model.get_weights()
        with raises(expected, received):
            fit(model, TargetNetworkSync(**arguments))
        np.testing.assert_equal(model.get_weights(), before)
        assert int(model.optimizer.iterations) == 0
    # Nothing counts its updates.
    with raises("compiled with an optimizer", "Counter"):
        TargetNetworkSync().set_model(Counter())
