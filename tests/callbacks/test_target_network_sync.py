"""The times of target updates, the pairs of networks, and their values."""

import gymnasium
import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.callbacks import TargetNetworkSync
from support import golden
from support.errors import raises

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
    """Defines the pairs of networks itself: a chain."""

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
    """The value of a target when its source counts the updates."""
    for update in updates:
        if update % every == 0:
            start = tau * update + (1.0 - tau) * start
    return start


# When they move.


@pytest.mark.parametrize(
    ("mode", "steps_per_execution", "every"),
    [
        ("eager", 1, 1),
        ("graph", 4, 3),
        pytest.param("compiled", 5, 5, marks=pytest.mark.slow),
    ],
)
def test_moves_are_exact(mode, steps_per_execution, every):
    model = compiled(
        TwoTargets(), steps_per_execution=steps_per_execution, **MODES[mode]
    )
    hard = TargetNetworkSync(1.0, every, "target", "network")
    soft = TargetNetworkSync(0.5, every, "other", "network")
    fit(model, hard, soft, epochs=2)
    assert value(model.network) == 10
    assert value(model.target) == followed(range(1, 11), 1.0, every)
    assert value(model.other) == followed(range(1, 11), 0.5, every)
    fit(model, hard, soft)
    assert value(model.target) == followed(range(1, 16), 1.0, every)
    assert value(model.other) == followed(range(1, 16), 0.5, every)


@pytest.mark.parametrize(
    "jit_compile", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_in_the_rounds_of_an_agent(jit_compile):
    targets, afters = [], []
    for arguments in (
        {"run_eagerly": True, "steps_per_execution": 1},
        # All four updates are one execution.
        {"jit_compile": jit_compile},
    ):
        agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)
        agent.compile(**arguments)
        target, after = keras.models.clone_model(agent.actor), []
        sync = TargetNetworkSync(every=3, target=target, source="actor")
        take = keras.callbacks.LambdaCallback(
            on_train_batch_end=lambda batch, logs, agent=agent, after=after: (
                after.append(agent.actor.get_weights())
            )
        )
        # One environment, not vectorised: no rows are spent on resets.
        rounds = rl.RolloutDataset(
            gymnasium.make("CartPole-v1"),
            horizon=64,
            passes=2,
            batch_size=32,
            seed=0,
        )
        agent.fit(rounds, callbacks=[sync, take], verbose=0)
        targets.append(target.get_weights())
        afters.append(after)
        assert not np.allclose(targets[-1][0], after[-1][0], rtol=1e-4)
    assert [*map(len, afters)] == [4, 1]
    np.testing.assert_equal(targets[0], afters[0][2])
    for ours, theirs in zip(*targets, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


# What is counted.


def test_updates_that_the_optimizer_skips_are_not_counted():
    # Accumulated gradients are one update.
    optimizer = keras.optimizers.SGD(1.0, gradient_accumulation_steps=2)
    model = compiled(Counter(), optimizer)
    fit(model, TargetNetworkSync(0.5, 3), epochs=2)
    assert value(model.network) == int(model.optimizer.iterations) == 5
    assert value(model.target) == followed(range(1, 6), 0.5, 3)
    # So is none whose gradients overflow.
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(1.0))
    model = compiled(Counter(), optimizer)
    x = ONES.copy()
    x[2:4] = np.inf
    fit(model, TargetNetworkSync(0.5, 2), x=x)
    assert value(model.network) == int(model.optimizer.iterations) == 3
    assert value(model.target) == followed(range(1, 4), 0.5, 2)


def test_a_model_may_count_its_updates_itself(tmp_path):
    model = compiled(Counted())
    fit(model, TargetNetworkSync(every=3))
    assert value(model.target) == 3
    model.save_weights(tmp_path / "model.weights.h5")

    model = Counted()
    model.build((None, 1))
    model.load_weights(tmp_path / "model.weights.h5")
    compiled(model)
    assert int(model.optimizer.iterations) == 0
    fit(model, TargetNetworkSync(every=3), x=ONES[:3])
    assert (value(model.network), value(model.target)) == (8, 6)
    # An attribute that is no variable counts nothing.
    model = compiled(Counter())
    model.updates = 7
    fit(model, TargetNetworkSync(every=3))
    assert value(model.target) == 3


# The first copy.


def test_the_first_fit_begins_with_a_copy():
    model = compiled(Counter())
    model.network.set_weights([np.full((1, 1), 40.0)])
    fit(model, TargetNetworkSync(every=100))
    assert (value(model.network), value(model.target)) == (45, 40)
    fit(model, TargetNetworkSync(every=100))
    assert value(model.target) == 40


# Several fits.


def test_a_second_fit_traces_nothing():
    model = compiled(Counter(), **MODES["graph"])
    TRACES.clear()
    for callbacks in (
        [TargetNetworkSync(every=3)],
        [TargetNetworkSync(every=3)],
        [],
        [TargetNetworkSync(every=3, target="target", source=model.network)],
    ):
        fit(model, *callbacks)
        assert len(TRACES) == 1
    fit(model, TargetNetworkSync(0.5, every=3))
    assert len(TRACES) == 2


def test_a_fit_without_it_moves_nothing():
    every = 3
    model = compiled(Counter(), **MODES["graph"])
    fit(model)
    assert value(model.target) == 0
    fit(model, TargetNetworkSync(every=every))
    assert value(model.target) == 10 - 10 % every
    fit(model)
    model.train_on_batch(ONES, ONES)
    assert value(model.target) == 10 - 10 % every
    fit(model, TargetNetworkSync(every=every))
    assert value(model.target) == 21 - 21 % every
    model.train_step((ONES, ONES))
    assert value(model.network) == 22
    assert value(model.target) == 21 - 21 % every


def test_a_fit_after_one_that_was_interrupted():
    def interrupt(batch, logs):
        raise KeyboardInterrupt

    model = compiled(Counter())
    stop = keras.callbacks.LambdaCallback(on_train_batch_end=interrupt)
    with pytest.raises(KeyboardInterrupt):
        fit(model, TargetNetworkSync(), stop)
    fit(model)
    assert (value(model.network), value(model.target)) == (6, 1)


def test_evaluating_with_it_moves_nothing():
    model = compiled(Counter())
    sync = TargetNetworkSync()
    model.evaluate(ONES, ONES, callbacks=[sync], verbose=0)
    fit(model)
    assert value(model.target) == 0


def test_the_last_one_for_a_target_counts():
    model = compiled(Counter())
    fit(model, TargetNetworkSync(), TargetNetworkSync(every=4))
    assert value(model.target) == 4
    fit(model, TargetNetworkSync(0.5, every=2))
    assert value(model.target) == followed(range(6, 11), 0.5, 2, start=4)


def test_saving_is_as_without_it(tmp_path):
    model = compiled(Counter())
    fit(model, TargetNetworkSync(every=3))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(
        tmp_path / "model.keras", custom_objects={"add_one": add_one}
    )
    assert (value(loaded.network), value(loaded.target)) == (5, 3)
    fit(loaded, TargetNetworkSync(every=3), x=ONES[:2])
    assert (value(loaded.network), value(loaded.target)) == (7, 6)
    assert value(model.target) == 3


# Which network follows which.


@pytest.mark.parametrize(
    "arguments", [{"target": "target"}, {"source": "network"}]
)
def test_networks_by_name(arguments):
    model = compiled(Counter())
    fit(model, TargetNetworkSync(every=3, **arguments))
    assert value(model.target) == 3, arguments


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
    ("tau", "mode"),
    [
        (1.0, "eager"),
        (0.1, "eager"),
        pytest.param(0.5, "graph", marks=pytest.mark.slow),
    ],
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
    [("eager", 2), pytest.param("compiled", 1, marks=pytest.mark.slow)],
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


def test_networks_that_do_not_fit():
    unbuilt = keras.Sequential([keras.layers.Dense(1)])

    class Empty(Counter):
        target_pairs = ()

    for make, arguments, expected, received in (
        (Counter, {"source": "target"}, "another network as its", "target"),
        (
            lambda: Counter(target=linear(3)),
            {},
            "weights match",
            r"\(3, 1\)\], .*\[\(1, 1\)\]",
        ),
        (TwoTargets, {}, "weights match", r"\[\(1, 1\), \(1, 1\)\]"),
        (Empty, {}, "with target networks", r"target_pairs=\(\)"),
        (lambda: Counter(target=unbuilt), {}, "a built target", r"with \[\]"),
    ):
        model = compiled(make())
        before = model.get_weights()
        with raises(expected, received):
            fit(model, TargetNetworkSync(**arguments))
        np.testing.assert_equal(model.get_weights(), before)
        assert int(model.optimizer.iterations) == 0
    with pytest.raises(AttributeError, match="'head'"):
        fit(compiled(Counter()), TargetNetworkSync(target="head"))
