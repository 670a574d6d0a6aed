"""Work that histograms of off-policy agents add to a training."""

import time

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.callbacks import TensorBoard
from keras_rl2.callbacks.diagnostic_measures import RecentSteps

pytestmark = pytest.mark.usefixtures("as_users_run")

EVERY = 10
SETS = 2
CASES = {
    "DQN": ("CartPole-v1", {}),
    "SAC": ("Pendulum-v1", {"batch_size": 256}),
    "TD3": ("Pendulum-v1", {"batch_size": 256}),
}


class Timed(TensorBoard):
    """Measures the work of each epoch, and what of it is its own.

    Of processors: seconds of the clock depend on what else is run.
    """

    def __init__(self, log_dir):
        super().__init__(log_dir, histogram_freq=EVERY)
        self.epochs, self.own, self._begun = [], [], 0.0

    def on_epoch_begin(self, epoch, logs=None):
        self._begun = time.process_time()
        super().on_epoch_begin(epoch, logs)

    def on_epoch_end(self, epoch, logs=None):
        before = time.process_time()
        super().on_epoch_end(epoch, logs)
        after = time.process_time()
        self.own.append(after - before)
        self.epochs.append(after - self._begun)


@pytest.mark.parametrize("name", CASES)
def test_a_set_every_ten_epochs_costs_two_percent_at_most(
    name, tmp_path, monkeypatch
):
    env_id, settings = CASES[name]
    replay = rl.ReplayDataset(env_id, capacity=100_000, seed=0, **settings)
    agent = getattr(rl, name).for_env(env_id, seed=0)
    agent.compile(keras.optimizers.Adam(1e-3))
    board, taking, take = Timed(tmp_path), [], RecentSteps.take

    def timed(steps, trajectory):
        before = time.process_time()
        take(steps, trajectory)
        taking.append(time.process_time() - before)

    monkeypatch.setattr(RecentSteps, "take", timed)
    # Of one round each; the first one traces, and so does the first set.
    epochs = EVERY * SETS + 1
    agent.fit(replay, epochs=epochs, callbacks=[board], verbose=0)
    own, whole = np.array(board.own[1:]), np.array(board.epochs[1:])
    due = np.arange(1, epochs) % EVERY == 0
    cost = np.median(own[due]) - np.median(own[~due]) + np.median(taking)
    ten = EVERY * np.median(whole[~due])
    print(
        f"{name}: {cost * 1e3:.1f} ms a set, {cost / ten:.2%} of {ten:.2f} s "
        "(seconds of processors)"
    )
    assert cost < 0.02 * ten
