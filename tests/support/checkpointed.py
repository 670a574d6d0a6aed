"""Runs with checkpoints: what they are of, and processes that are killed.

As a program, `python checkpointed.py CASE DIRECTORY KILLS`, it has one child
after another train, and each but the last of a run killed at a random event:
an environment's step or a call that writes. What the runs come to in the end
is compared with that of a child that nobody killed.
"""

import csv
import json
import os
import random
import signal
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

import keras_rl2 as rl
from keras_rl2 import plain_data
from keras_rl2.cli import main as command_line
from keras_rl2.cli.run_folder import RunFolder
from keras_rl2.envs import VectorEnvAdapter

EPOCHS = 6
COMMAND = "command"
SMALL = [
    "--set",
    "networks.hidden=[8]",
    "dataset.warm_up=64",
    "dataset.steps_per_round=16",
    "dataset.updates_per_round=4",
    "dataset.batch_size=8",
    "dataset.rounds_per_epoch=4",
]
# What writes a checkpoint, in turn.
WRITING = ("fsync", "replace", "rename", "mkdir", "rmdir", "unlink")


def rollouts(env_id="CartPole-v1", **settings):
    defaults = {"num_envs": 2, "horizon": 16, "passes": 2, "batch_size": 16}
    return rl.RolloutDataset(
        env_id, rounds_per_epoch=2, seed=0, **{**defaults, **settings}
    )


def replay(env_id, **settings):
    # Smaller than what is stored, so that the oldest are overwritten.
    defaults = {"capacity": 300, "batch_size": 16, "warm_up": 64}
    return rl.ReplayDataset(
        env_id, rounds_per_epoch=2, seed=0, **{**defaults, **settings}
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


def a2c():
    agent = rl.A2C.for_env("Acrobot-v1", hidden=(8,), seed=0)
    return agent, rollouts("Acrobot-v1", passes=1, batch_size=None)


def reinforce():
    agent = rl.REINFORCE.for_env("CartPole-v1", hidden=(8,), seed=0)
    return agent, rollouts(horizon=200)


def dqn():
    agent = rl.DQN.for_env("CartPole-v1", hidden=(8,), double=True, seed=0)
    data = replay("CartPole-v1", prioritized=True, n_step=3, num_envs=2)
    return agent, data


def recurrent_dqn():
    agent = rl.DQN.for_env(
        "CartPole-v1", hidden=(8,), memory=keras.layers.LSTMCell(8), seed=0
    )
    return agent, replay("CartPole-v1", capacity=600, batch_size=4, warm_up=128)


def sac():
    agent = rl.SAC.for_env("Pendulum-v1", hidden=(8,), seed=0)
    return agent, replay("Pendulum-v1")


def td3():
    agent = rl.TD3.for_env("Pendulum-v1", hidden=(8,), seed=0)
    return agent, replay("Pendulum-v1")


def cql(**settings):
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
        recorded, batch_size=16, updates_per_epoch=100, seed=0, **settings
    )
    return agent, data


def streamed_cql():
    # Some tens of rows at a time.
    return cql(memory_limit=4000)


CASES = {
    "PPO": ppo,
    "RecurrentPPO": recurrent_ppo,
    "A2C": a2c,
    "REINFORCE": reinforce,
    "DQN": dqn,
    "RecurrentDQN": recurrent_dqn,
    "SAC": sac,
    "TD3": td3,
    "CQL": cql,
    "StreamedCQL": streamed_cql,
}


def outcome_of(agent, data, history):
    """Returns all that a training has come to, but what the clock says."""
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


def train(case, directory, events):
    """Trains to the end, or is killed at one of its events."""
    left = [events]

    def count():
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(function):
        def call(*args, **kwargs):
            count()
            return function(*args, **kwargs)

        return call

    for name in WRITING:
        setattr(os, name, counted(getattr(os, name)))
    if case == COMMAND:
        VectorEnvAdapter.step = counted(VectorEnvAdapter.step)
        outcome = outcome_of_command(directory)
    else:
        outcome = outcome_of_fit(case, directory, counted)
    taken, arrays = plain_data.to_json(outcome)
    np.savez(directory / "outcome.npz", **arrays)
    (directory / "outcome.json").write_text(json.dumps(taken))
    return events - left[0]


def outcome_of_fit(case, directory, counted):
    """Trains by `fit`."""
    agent, data = CASES[case]()
    # Compiling would take longer than all else.
    agent.compile(jit_compile=False)
    # Of the class: what an instance has is copied with it.
    if hasattr(data, "env"):
        type(data.env).step = counted(type(data.env).step)
    else:
        type(data).sample = counted(type(data).sample)
    checkpoint = rl.callbacks.Checkpoint(directory, every_steps=1)
    history = agent.fit(data, epochs=EPOCHS, callbacks=[checkpoint], verbose=0)
    return outcome_of(agent, data, history)


def outcome_of_command(directory):
    """Trains by `keras-rl2 train`, or goes on with `--resume`."""
    folder = directory / "DQN-CartPole-v1" / "seed-0"
    begun = RunFolder(folder).holds_training
    options = ["--resume"] if begun else ["--overwrite", *SMALL]
    status = command_line.main(
        [
            *("train", "dqn", "CartPole-v1", "--logdir", str(directory)),
            *("--steps", "600", "--checkpoint", "64", "--evaluate", "200"),
            *options,
        ]
    )
    assert status == 0
    agents = [rl.load(folder / name) for name in ("agent.keras", "best.keras")]
    with (folder / "progress.csv").open() as file:
        rows = [*csv.DictReader(file)]
    return {
        "weights": [each.get_weights() for each in agents],
        "slots": [v.numpy() for v in agents[0].optimizer.variables],
        "best": json.loads((folder / "best.json").read_text()),
        "rows": [
            {k: v for k, v in row.items() if "per_second" not in k}
            for row in rows
        ],
    }


def child(case, directory, events):
    """Trains in a process of its own; says whether it came to an end."""
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
        used = train(case, directory, events)
        (directory / "events").write_text(str(used))
        code = 0
    finally:
        sys.stderr.flush()
        os._exit(code)


def different(first, second):
    """Names what differs between two outcomes."""
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
    whole = directory / "whole"
    assert child(case, whole, 0)
    events = -int((whole / "events").read_text() or 0)
    per_epoch = abs(events) // EPOCHS
    counted, differing, finished, run = 0, [], 0, 0
    while counted < kills or not finished:
        stopped = directory / f"run-{run}"
        # Up to three epochs further: some lives reach no checkpoint.
        last = finished and counted >= kills
        at = 0 if last else generator.randint(1, 3 * per_epoch)
        if child(case, stopped, at):
            differing += different(whole, stopped)
            finished += 1
            run += 1
        else:
            counted += 1
    print(
        json.dumps(
            {"kills": counted, "finished": finished, "different": differing}
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
