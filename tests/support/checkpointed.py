"""Runs with checkpoints, and processes that are killed.

As a program, `python checkpointed.py CASE DIRECTORY KILLS`, it has one child
after another train, and each but the last of a run killed at a random event:
an environment's step or a call that writes. The final outcome of the runs
is compared with that of an uninterrupted child.
"""

import functools
import json
import os
import random
import signal
import sys
import threading
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf

import keras_rl2 as rl
from keras_rl2.envs import VectorEnvAdapter
from keras_rl2.saving import plain_data

EPOCHS = 6
# What writes a checkpoint, in turn.
WRITING = ("fsync", "replace", "rename", "mkdir", "rmdir", "unlink")


def rollouts(env_id="CartPole-v1", **settings):
    sizes = {"num_envs": 2, "horizon": 16, "passes": 2, "batch_size": 16}
    return rl.RolloutDataset(
        env_id, rounds_per_epoch=2, seed=0, **sizes, **settings
    )


def replay(env_id, **settings):
    # Smaller than what is stored, so that the oldest are overwritten.
    sizes = {"capacity": 300, "batch_size": 16, "warm_up": 64}
    return rl.ReplayDataset(
        env_id, rounds_per_epoch=2, seed=0, **sizes, **settings
    )


def ppo():
    agent = rl.PPO.for_env(
        "CartPole-v1", hidden=(8,), normalize_observations=True, seed=0
    )
    return agent, rollouts(scale_rewards=True)


def recurrent_ppo():
    agent = rl.PPO.for_env(
        "CartPole-v1", hidden=(8,), memory=keras.layers.LSTMCell(8), seed=0
    )
    return agent, rollouts()


def dqn():
    agent = rl.DQN.for_env("CartPole-v1", hidden=(8,), double=True, seed=0)
    data = replay("CartPole-v1", prioritized=True, n_step=3, num_envs=2)
    return agent, data


def sac():
    agent = rl.SAC.for_env("Pendulum-v1", hidden=(8,), seed=0)
    return agent, replay("Pendulum-v1")


def td3():
    agent = rl.TD3.for_env("Pendulum-v1", hidden=(8,), seed=0)
    return agent, replay("Pendulum-v1")


def cql():
    generator, count = np.random.default_rng(0), 200
    recorded = {
        "observations": generator.normal(size=(count, 4)).astype(np.float32),
        "actions": generator.integers(2, size=count),
        "rewards": generator.normal(size=count),
        "terminations": generator.random(count) < 0.05,
        "truncations": np.zeros(count, np.bool_),
    }
    agent = rl.CQL.for_env("CartPole-v1", hidden=(8,), seed=0)
    data = rl.OfflineDataset(
        recorded, batch_size=16, updates_per_epoch=100, seed=0
    )
    return agent, data


def graph():
    env = rl.envs.GraphVectorEnv("CartPole-v1", num_envs=2)
    return rl.PPO.for_env(env, hidden=(8,), seed=0), rollouts(env)


CASES = {
    "PPO": ppo,
    "RecurrentPPO": recurrent_ppo,
    "DQN": dqn,
    "SAC": sac,
    "CQL": cql,
}


def outcome_of(agent, data, history):
    """Returns the whole outcome of a training, except times."""
    state = agent.get_state()
    # Keras counts models of a process in their names.
    del state["paths"]
    # Apart: two random generators are never equal.
    text, arrays = plain_data.to_json([state, data.get_state()])
    return {
        "text": json.dumps(text),
        "arrays": arrays,
        "epoch": list(history.epoch),
        "history": {
            key: values
            for key, values in history.history.items()
            if "per_second" not in key
        },
    }


def wait_for_checkpoint():
    """Waits for one that is being written beside training."""
    for thread in threading.enumerate():
        if thread.name.startswith("checkpoint"):
            thread.join()


def fit_and_close(agent, data, folder, epochs, callbacks):
    """Trains with a checkpoint each epoch; returns the outcome."""
    checkpoint = rl.callbacks.Checkpoint(folder, every_steps=1)
    try:
        history = agent.fit(
            data, epochs=epochs, callbacks=[*callbacks, checkpoint], verbose=0
        )
        return outcome_of(agent, data, history)
    finally:
        if hasattr(data, "close"):
            data.close()


def counted(at_event):
    """Has `at_event` called before each step, round, draw and writing call."""
    one_at_a_time = threading.RLock()

    process = os.getpid()

    def telling(function):
        def call(*args, **kwargs):
            if os.getpid() != process:
                # Environments are tried in their own processes.
                return function(*args, **kwargs)
            with one_at_a_time:
                at_event()
                return function(*args, **kwargs)

        return call

    for owner, names in (
        (os, WRITING),
        (VectorEnvAdapter, ["step"]),
        (rl.RolloutDataset, ["collect", "prepare"]),
        (rl.ReplayDataset, ["collect", "prepare"]),
        (rl.OfflineDataset, ["sample"]),
    ):
        for name in names:
            setattr(owner, name, telling(getattr(owner, name)))


def train(case, directory, events):
    """Trains to the end, or is killed at one of its events."""
    left = [events]

    def count():
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    counted(count)
    outcome = fit_and_close(*made(case), directory, EPOCHS, ())
    taken, arrays = plain_data.to_json(outcome)
    np.savez(directory / "outcome.npz", **arrays)
    (directory / "outcome.json").write_text(json.dumps(taken))
    (directory / "events").write_text(str(events - left[0]))


def made(case):
    """Makes an agent and its data."""
    agent, data = {**CASES, "Graph": graph}[case]()
    # Compiling would take longer than all else.
    agent.compile(jit_compile=False)
    return agent, data


def child(work, directory, *arguments):
    """Works in a process of its own; says whether it came to an end."""
    directory.mkdir(parents=True, exist_ok=True)
    process = os.fork()
    if process:
        _, status = os.waitpid(process, 0)
        if os.WIFSIGNALED(status):
            assert os.WTERMSIG(status) == signal.SIGKILL, status
            return False
        assert os.WEXITSTATUS(status) == 0, status
        return True
    code = 1
    try:
        # To optimize a graph takes longer than to run it so few times.
        tf.config.optimizer.set_experimental_options(
            {"disable_meta_optimizer": True}
        )
        work(directory, *arguments)
        code = 0
    finally:
        sys.stderr.flush()
        os._exit(code)


def different(first, second):
    """Names the differences between two outcomes."""
    texts = [(each / "outcome.json").read_text() for each in (first, second)]
    named = ["outcome.json"] * (texts[0] != texts[1])
    with (
        np.load(first / "outcome.npz") as one,
        np.load(second / "outcome.npz") as other,
    ):
        if one.files != other.files:
            return [*named, "arrays"]
        for name in one.files:
            if one[name].tobytes() != other[name].tobytes():
                named.append(name)
    return named


def main(case, directory, kills):
    generator = random.Random(case)
    train_case = functools.partial(train, case)
    whole = directory / "whole"
    assert child(train_case, whole, 0)
    events = abs(int((whole / "events").read_text()))
    per_epoch = events // EPOCHS
    killed, differing, finished = 0, [], 0
    while killed < kills or not finished:
        stopped = directory / f"run-{finished}"
        # Up to three epochs further: some lives reach no checkpoint.
        at = generator.randint(1, 3 * per_epoch) if killed < kills else 0
        if child(train_case, stopped, at):
            differing += different(whole, stopped)
            finished += 1
        else:
            killed += 1
    print(
        json.dumps(
            {"kills": killed, "finished": finished, "different": differing}
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:]))
