"""Rounds are handed to TensorFlow as they are, by `fit` and outside of it."""

import keras
import numpy as np
import pytest

from keras_rl2.data.round_dataset import minibatches
from keras_rl2.spaces.trees import named_leaves
from support.agents import EITHER_DATASET
from support.agents import make_agent
from support.agents import make_env


def made(name, **compile_arguments):
    """Makes an agent and a dataset for it."""
    case, env = EITHER_DATASET[name], make_env(EITHER_DATASET[name].pair)
    agent = make_agent(case, env, compile_arguments=compile_arguments)
    return agent, case.make_dataset(env)


@pytest.mark.parametrize("name", EITHER_DATASET)
def test_rounds_have_the_shapes_and_dtypes_of_their_element_spec(name):
    """`tf.data` would cast an array to its spec, which hides a mismatch."""
    agent, dataset = made(name)
    elements = dataset.as_dataset(agent).element_spec
    dataset.refresh()
    given = {
        path: (each.shape[1:], each.dtype.name)
        for path, each in named_leaves(minibatches(dataset.hand_over()))
    }
    assert given == {
        path: (tuple(each.shape), each.dtype.name)
        for path, each in named_leaves(elements)
    }


def test_a_loop_of_the_user_trains_as_fit_does():
    trained, dataset = made("PPO")
    trained.fit(dataset, epochs=2, verbose=0)

    by_hand, dataset = made("PPO")
    by_hand.fit(dataset, epochs=1, verbose=0)
    for _ in range(dataset.rounds_per_epoch):
        samples = dataset.prepare(dataset.collect())
        by_hand.train_function(iter((samples,)))
    np.testing.assert_equal(by_hand.get_weights(), trained.get_weights())


def test_a_round_is_handed_over_once():
    agent, dataset = made("PPO")
    dataset.bind(agent)
    dataset.refresh()
    dataset.hand_over()
    with pytest.raises(RuntimeError, match="before the round was refreshed"):
        dataset.hand_over()


class Kept(keras.callbacks.Callback):
    """Keeps the batches that it was told of."""

    def __init__(self):
        super().__init__()
        self.told = []

    def on_train_batch_begin(self, batch, logs=None):
        self.told.append((batch, logs))

    def on_train_batch_end(self, batch, logs=None):
        self.told.append((batch, logs))


@pytest.mark.parametrize(
    ("eagerly", "verbose"),
    [(True, 1), pytest.param(False, 0, marks=pytest.mark.slow)],
)
def test_callbacks_receive_python_numbers(eagerly, verbose, capsys):
    agent, dataset = made("PPO", run_eagerly=eagerly)
    kept = Kept()
    history = agent.fit(dataset, epochs=2, callbacks=[kept], verbose=verbose)
    begins, ends = kept.told[::2], kept.told[1::2]
    assert begins == [(batch, {}) for batch, _ in begins]
    assert len(ends) == len(begins) > 0
    for _, logs in ends:
        assert {"loss", "entropy"} <= set(logs)
        assert list(logs) == sorted(logs)
        assert all(type(each) is float for each in logs.values())
    assert kept.model is agent
    assert agent.history is history
    assert history.epoch == [0, 1]
    assert kept.params == {
        "verbose": verbose,
        "epochs": 2,
        "steps": dataset.steps_per_epoch,
    }
    assert ("Epoch 2/2" in capsys.readouterr().out) == bool(verbose)
