"""`fit` where it would not train, or twice at a time, changes nothing."""

import threading

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_rl2 as rl


@pytest.fixture(scope="module")
def agent():
    agent = rl.PPO.for_env("CartPole-v1", hidden=(4,), seed=0)
    agent.fit(rollouts(), epochs=1, verbose=0)
    return agent


def rollouts():
    return rl.RolloutDataset("CartPole-v1", horizon=8, passes=1)


def state_of(agent):
    return agent.env_steps, [w.copy() for w in agent.get_weights()]


def assert_same(one, two):
    assert one[0] == two[0]
    np.testing.assert_equal(one[1], two[1])


class Fits(keras.callbacks.Callback):
    """Calls `fit` once more, while it runs."""

    def __init__(self, threaded):
        super().__init__()
        self.threaded = threaded
        self.raised = []

    def on_epoch_begin(self, epoch, logs=None):
        if not self.threaded:
            self._fit()
            return
        thread = threading.Thread(target=self._fit)
        thread.start()
        thread.join()

    def _fit(self):
        before = state_of(self.model)
        try:
            self.model.fit(rollouts(), epochs=1, verbose=0)
        except RuntimeError as error:
            self.raised.append(str(error))
        assert_same(before, state_of(self.model))


def test_one_at_a_time(agent):
    both, before = (
        [Fits(threaded=each) for each in (True, False)],
        agent.env_steps,
    )
    agent.fit(rollouts(), epochs=2, callbacks=both, verbose=0)
    for fits in both:
        assert len(fits.raised) == 2
        assert fits.raised[0].startswith("Expected one `fit` of an agent at a")
        assert len(fits.raised[0].splitlines()) == 1
    assert agent.env_steps > before


def test_one_that_failed_is_over(agent):
    def fails(epoch, logs):
        raise KeyError("x")

    callback = keras.callbacks.LambdaCallback(on_epoch_begin=fails)
    with pytest.raises(KeyError):
        agent.fit(rollouts(), epochs=1, callbacks=[callback], verbose=0)
    before = agent.env_steps
    agent.fit(rollouts(), epochs=1, verbose=0)
    assert agent.env_steps > before


def test_two_agents_at_once(agent):
    other = rl.A2C.for_env("CartPole-v1", hidden=(4,), seed=1)

    def fit(epoch, logs):
        other.fit(rollouts(), epochs=1, verbose=0)

    callback = keras.callbacks.LambdaCallback(on_epoch_begin=fit)
    agent.fit(rollouts(), epochs=1, callbacks=[callback], verbose=0)
    assert other.env_steps > 0


def test_fit_within_a_tf_function_is_refused(agent):
    before = state_of(agent)
    for autograph in (True, False):

        @tf.function(autograph=autograph)
        def train():
            agent.fit(rollouts(), epochs=1, verbose=0)

        with pytest.raises(ValueError, match=r"outside of a `tf\.function`"):
            train()
        assert_same(before, state_of(agent))
