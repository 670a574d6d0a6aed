"""A run that was stopped goes on in the environments that it was in."""

import contextlib
import functools
import os
import signal

import gymnasium
import keras
import numpy as np
import pytest

import keras_rl2 as rl
from support import failing_envs
from support.checkpointed import fit_and_close
from support.kept_envs import Masked
from support.kept_envs import Player
from support.kept_envs import Walk
from support.kept_envs import normalized_player
from support.kept_envs import normalized_walk

EPOCHS = 3
in_processes = failing_envs.in_processes


def ends_after(most):
    """Returns a callback that ends a process, or something like it."""

    def end(epoch, logs):
        if epoch + 1 == most:
            raise RuntimeError("the power is out")

    return keras.callbacks.LambdaCallback(on_epoch_end=end)


def trained(env, folder, *callbacks, epochs=EPOCHS, **settings):
    """Trains in environments that a function makes; returns the outcome."""
    data = rl.RolloutDataset(
        env() if callable(env) else env,
        horizon=7,
        passes=1,
        batch_size=None,
        seed=0,
        **settings,
    )
    agent = rl.A2C.for_env(data.env, hidden=(4,), seed=0)
    agent.compile(keras.optimizers.SGD(0.01), run_eagerly=True)
    return fit_and_close(agent, data, folder, epochs, callbacks)


def stop_and_go_on(env, folder, warning=None, **settings):
    """Returns the outcomes of a stopped and of an uninterrupted run."""
    told = (
        contextlib.nullcontext
        if warning is None
        else functools.partial(pytest.warns, UserWarning, match=warning)
    )
    with told():
        whole = trained(env, folder / "whole", **settings)
    with told(), pytest.raises(RuntimeError, match="the power is out"):
        trained(env, folder / "stopped", ends_after(2), **settings)
    epochs = []
    counts = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: epochs.append(epoch)
    )
    with told():
        resumed = trained(env, folder / "stopped", counts, **settings)
    # From the checkpoint of the first epoch.
    assert epochs == [*range(1, EPOCHS)]
    return resumed, whole


@pytest.mark.parametrize(
    "make",
    [Masked, pytest.param(normalized_walk, marks=pytest.mark.slow)],
)
def test_it_goes_on_bit_for_bit(make, tmp_path):
    resumed, whole = stop_and_go_on(lambda: make, tmp_path, num_envs=2)
    np.testing.assert_equal(resumed, whole)


def test_others_begin_new_episodes_with_a_warning(tmp_path):
    resumed, whole = stop_and_go_on(
        lambda: Player, tmp_path, r"Player has no methods `get_state"
    )
    # Trained as long, and to something else.
    assert resumed["epoch"] == whole["epoch"] == [*range(EPOCHS)]
    assert resumed["text"] != whole["text"]


def test_wrappers_keep_their_statistics_where_new_episodes_begin(tmp_path):
    counts = []
    for epochs in (2, 3):
        made = []

        def make(made=made):
            made.append(gymnasium.wrappers.NormalizeObservation(Player()))
            return made[-1]

        with pytest.warns(UserWarning, match="new episodes.* of Player is not"):
            trained(lambda make=make: make, tmp_path, epochs=epochs)
        counts.append(max(each.obs_rms.count for each in made))
    # One epoch more, of 7 steps and a reset or two.
    assert counts[0] + 7 < counts[1] <= counts[0] + 9


@pytest.mark.slow
def test_workers_begin_new_episodes_with_a_warning(tmp_path):
    resumed, whole = stop_and_go_on(
        lambda: normalized_player,
        tmp_path,
        r"Player has no methods `get_state",
        num_envs=2,
        workers=rl.LocalWorkers(2),
    )
    assert resumed["epoch"] == whole["epoch"] == [*range(EPOCHS)]


def test_a_round_is_finished_after_a_signal_to_all_processes(tmp_path):
    env = in_processes([Walk, Walk])
    step, steps = env.step, []

    def signalled_step(actions):
        steps.append(actions)
        # In the second round, of 7 steps.
        if len(steps) == 10:
            for process in env.processes:
                os.kill(process.pid, signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)
        return step(actions)

    env.step = signalled_step
    warns = functools.partial(
        pytest.warns, UserWarning, match="AsyncVectorEnv has no methods"
    )
    with warns(), pytest.raises(SystemExit):
        trained(env, tmp_path)
    assert len(steps) == 14
    epochs = []
    counts = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: epochs.append(epoch)
    )
    with warns():
        resumed = trained(in_processes([Walk, Walk]), tmp_path, counts)
    assert epochs == [2]
    assert resumed["epoch"] == [*range(EPOCHS)]


def test_processes_heed_signals_after_training(tmp_path):
    env = in_processes([Walk, Walk])
    data = rl.RolloutDataset(env, horizon=7, seed=0)
    agent = rl.A2C.for_env(env, hidden=(4,), seed=0)
    agent.compile(run_eagerly=True)
    checkpoint = rl.callbacks.Checkpoint(tmp_path, every_steps=1)
    with pytest.warns(UserWarning, match="AsyncVectorEnv has no methods"):
        agent.fit(data, callbacks=[checkpoint], verbose=0)
    told, other = env.processes
    told.terminate()
    told.join(60.0)
    code = told.exitcode
    # Python waits for those that live as it ends.
    told.kill()
    other.kill()
    assert code == -signal.SIGTERM
    data.close()


def test_a_setting_that_was_edited_is_heeded(tmp_path):
    def rewards(weight):
        make = functools.partial(Walk, weight)
        return trained(lambda: make, tmp_path, epochs=int(2 + weight))

    before = rewards(1.0)["history"]["episode_return"]
    after = rewards(5.0)["history"]["episode_return"]
    assert before[-1] == 9.0
    assert 9.0 < after[-1] <= 45.0
