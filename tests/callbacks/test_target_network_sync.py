"""When targets move."""

import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_rl2 as rl
from keras_rl2.callbacks import TargetNetworkSync
from support.sync_models import MODES
from support.sync_models import ONES
from support.sync_models import TRACES
from support.sync_models import Counted
from support.sync_models import Counter
from support.sync_models import TwoTargets
from support.sync_models import add_one
from support.sync_models import compiled
from support.sync_models import fit
from support.sync_models import followed
from support.sync_models import value


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
    ("jit_compile", "every"),
    [(False, 3), pytest.param(True, 1, marks=pytest.mark.slow)],
)
def test_in_a_loop_over_train_step(jit_compile, every):
    model = compiled(Counter())
    callback = TargetNetworkSync(0.5, every)
    callback.set_model(model)
    callback.on_train_begin()
    step = tf.function(model.train_step, autograph=False)

    @tf.function(autograph=False, jit_compile=jit_compile)
    def run_round(x):
        def update(index):
            logs = step((x[index, None], x[index, None]))
            return logs["loss"], model.target.weights[0].value[0, 0]

        return tf.while_loop(
            lambda index, *_: index < 5,
            lambda index, *_: (index + 1, *update(index)),
            (tf.constant(1), *update(0)),
            parallel_iterations=1,
        )[2]

    seen = float(run_round(tf.constant(ONES)))
    assert seen == value(model.target) == followed(range(1, 6), 0.5, every)


def target_of_an_agent(*callbacks, **arguments):
    """Returns what a target is after four updates of a PPO."""
    agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)
    agent.compile(**arguments)
    target = keras.models.clone_model(agent.actor)
    sync = TargetNetworkSync(every=3, target=target, source="actor")
    # One environment, not vectorised: no rows are spent on resets.
    env = gymnasium.make("CartPole-v1")
    rounds = rl.RolloutDataset(env, horizon=64, passes=2, batch_size=32, seed=0)
    agent.fit(rounds, callbacks=[sync, *callbacks], verbose=0)
    return target.get_weights()


@pytest.fixture(scope="module")
def after_each_update():
    """The actor's weights after each of the four, made once."""
    snapshots = []
    take = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: snapshots.append(
            take.model.actor.get_weights()
        )
    )
    target_of_an_agent(take, steps_per_execution=1, jit_compile=False)
    assert len(snapshots) == 4
    return snapshots


@pytest.mark.parametrize(
    "arguments",
    [
        {"jit_compile": False},
        pytest.param({"jit_compile": True}, marks=pytest.mark.slow),
    ],
)
def test_in_the_rounds_of_an_agent(after_each_update, arguments):
    weights = target_of_an_agent(**arguments)
    for ours, theirs in zip(weights, after_each_update[2], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    assert not np.allclose(weights[0], after_each_update[3][0], rtol=1e-4)


def test_where_an_update_is_made_from_the_trajectory(rollouts):
    agent = rl.A2C.for_env("CartPole-v1", hidden=(8,), seed=0)
    agent.compile(jit_compile=False)
    target = keras.models.clone_model(agent.actor)
    start = agent.actor.get_weights()
    rounds = rl.RolloutDataset(
        rollouts.env, horizon=16, passes=1, batch_size=16, seed=0
    )
    sync = TargetNetworkSync(target=target, source="actor")
    agent.fit(rounds, callbacks=[sync], verbose=0)
    assert agent.round_size.from_trajectory
    assert not np.array_equal(target.get_weights()[0], start[0])
    for ours, theirs in zip(target.weights, agent.actor.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


# What is counted.


def test_a_model_may_count_its_updates_itself(tmp_path):
    model = compiled(Counted(), **MODES["graph"])
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


def test_accumulated_gradients_are_one_update():
    every = 3
    optimizer = keras.optimizers.SGD(1.0, gradient_accumulation_steps=2)
    model = compiled(Counter(), optimizer)
    fit(model, TargetNetworkSync(0.5, every), epochs=2)
    assert value(model.network) == int(model.optimizer.iterations) == 5
    assert value(model.target) == followed(range(1, 6), 0.5, every)


def test_an_update_left_out_moves_nothing():
    every = 2
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(1.0))
    model = compiled(Counter(), optimizer)
    x = ONES.copy()
    x[2:4] = np.inf
    fit(model, TargetNetworkSync(0.5, every), x=x)
    assert value(model.network) == int(model.optimizer.iterations) == 3
    assert value(model.target) == followed(range(1, 4), 0.5, every)


# The first copy.


def test_the_first_fit_begins_with_a_copy():
    model = compiled(Counter())
    model.network.set_weights([np.full((1, 1), 40.0)])
    fit(model, TargetNetworkSync(every=100))
    assert (value(model.network), value(model.target)) == (45, 40)
    fit(model, TargetNetworkSync(every=100))
    assert value(model.target) == 40


# Several fits.


def test_nothing_is_traced_again():
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

    model = compiled(Counter(), **MODES["graph"])
    stop = keras.callbacks.LambdaCallback(on_train_batch_end=interrupt)
    with pytest.raises(KeyboardInterrupt):
        fit(model, TargetNetworkSync(), stop)
    fit(model)
    assert (value(model.network), value(model.target)) == (6, 1)


def test_a_number_that_is_not_finite_stays_where_it_is():
    model = compiled(Counter())
    fit(model, TargetNetworkSync(0.5))
    model.network.set_weights([np.full((1, 1), np.inf)])
    fit(model)
    assert value(model.target) == followed(range(1, 6), 0.5)


def test_evaluating_with_it_moves_nothing():
    model = compiled(Counter(), **MODES["graph"])
    sync = TargetNetworkSync()
    model.evaluate(ONES, ONES, callbacks=[sync], verbose=0)
    fit(model)
    assert value(model.target) == 0


def test_compiling_again_keeps_it():
    model = compiled(Counter(), **MODES["graph"])
    sync = TargetNetworkSync(every=2)
    fit(model, sync)
    compiled(model, **MODES["graph"])
    fit(model, sync)
    assert value(model.target) == 9


def test_the_last_one_for_a_target_counts():
    model = compiled(Counter(), **MODES["graph"])
    fit(model, TargetNetworkSync(), TargetNetworkSync(every=4))
    assert value(model.target) == 4
    fit(model, TargetNetworkSync(0.5, every=2))
    assert value(model.target) == followed(range(6, 11), 0.5, 2, start=4)


def test_a_list_of_callbacks_may_be_used_again():
    model = compiled(Counter())
    callbacks = keras.callbacks.CallbackList(
        [TargetNetworkSync(every=3)], add_history=True, model=model
    )
    for expected in (3, 9):
        model.fit(ONES, ONES, batch_size=1, verbose=0, callbacks=callbacks)
        assert value(model.target) == expected


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
