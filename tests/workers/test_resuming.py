"""A resumed training with workers equals an uninterrupted one."""

import json

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from support.checkpointed import fit_and_close
from support.structured_envs import assert_trees_equal
from support.worker_processes import held_by
from support.workers_here import WorkersHere

EPOCHS = 3
REPLAY = {
    "capacity": 400,
    "batch_size": 8,
    "warm_up": 64,
    "steps_per_round": 32,
    "updates_per_round": 1,
    "rounds_per_epoch": 2,
    "n_step": 3,
}
ROLLOUTS = {"horizon": 16, "passes": 1, "batch_size": 32, "rounds_per_epoch": 2}
CASES = {
    "PPO": (rl.PPO, {}, {**ROLLOUTS, "scale_rewards": True}),
    "memory": (
        rl.PPO,
        {"memory": keras.layers.LSTMCell},
        {**ROLLOUTS, "batch_size": None},
    ),
    "A2C": (rl.A2C, {}, {**ROLLOUTS, "batch_size": None}),
    "DQN": (rl.DQN, {}, REPLAY),
}


class Rounds(keras.callbacks.Callback):
    """Counts rounds; ends a process, or something like it, after some."""

    def __init__(self, most=None):
        super().__init__()
        self.count = 0
        self.most = most

    def on_train_batch_end(self, batch, logs=None):
        self.count += 1
        if self.count == self.most:
            raise RuntimeError("the power is out")

    def get_state(self):
        """Remembers nothing: each process counts its own."""

    def set_state(self, state):
        pass


def trained(case, workers, folder, *callbacks, epochs=EPOCHS):
    """Trains in environments that a function makes; returns the outcome."""
    kind, given, settings = CASES[case]
    given = {key: make(4) for key, make in given.items()}
    dataset = rl.RolloutDataset if kind.on_policy else rl.ReplayDataset
    data = dataset(
        "Acrobot-v1",
        num_envs=4,
        seed=0,
        # So short that some of them end.
        env_kwargs={"max_episode_steps": 25},
        workers=workers,
        **settings,
    )
    agent = kind.for_env(data.env, hidden=(8,), seed=0, **given)
    optimizer = keras.optimizers.SGD(0.01, momentum=0.9)
    agent.compile(optimizer, run_eagerly=True)
    return fit_and_close(agent, data, folder, epochs, callbacks)


def assert_goes_on(case, make_workers, folder):
    whole_rounds = Rounds()
    whole = trained(case, make_workers(), folder / "whole", whole_rounds)
    with pytest.raises(RuntimeError, match="the power is out"):
        trained(case, make_workers(), folder / "stopped", Rounds(3))
    rounds = Rounds()
    resumed = trained(case, make_workers(), folder / "stopped", rounds)
    # It was not begun again, and there was something to go on with.
    assert rounds.count == whole_rounds.count - 2
    assert whole["history"]["episode_return"][-1] < 0
    np.testing.assert_equal(resumed, whole)
    return whole


@pytest.mark.slow
def test_it_goes_on_bit_for_bit(tmp_path):
    whole = assert_goes_on("PPO", lambda: rl.LocalWorkers(2), tmp_path)
    one = trained("PPO", None, tmp_path / "one")
    np.testing.assert_equal(one["history"], whole["history"])


@pytest.mark.parametrize(
    "case",
    [
        "A2C",
        pytest.param("memory", marks=pytest.mark.slow),
        pytest.param("DQN", marks=pytest.mark.slow),
    ],
)
def test_agents_of_all_kinds_resume(case, tmp_path):
    assert_goes_on(case, lambda: WorkersHere(2), tmp_path)


@pytest.mark.parametrize(
    "second", [None, pytest.param(4, marks=pytest.mark.slow)]
)
def test_with_other_workers_it_begins_new_episodes(second, tmp_path):
    trained("A2C", WorkersHere(2), tmp_path / "run", epochs=1)
    workers = None if second is None else WorkersHere(second)
    rounds = Rounds()
    resumed = trained("A2C", workers, tmp_path / "run", rounds)
    assert rounds.count == 4
    text = json.loads(resumed["text"])
    lengths = text[1]["collector"]["episode_lengths"]
    # The partial ones before it are not added to.
    assert {*lengths} == {25}


def test_states_may_be_given_again():
    """The restored state belongs to the dataset alone."""
    data = rl.RolloutDataset(
        "Acrobot-v1",
        num_envs=4,
        horizon=8,
        batch_size=None,
        seed=0,
        workers=WorkersHere(2),
    )
    agent = rl.PPO.for_env(
        data.env, memory=keras.layers.LSTMCell(4), hidden=(8,), seed=0
    )
    data.bind(agent)
    data.collect()
    state = data.get_state()
    expected = data.collect()
    for method in ("collect", "set_state"):
        # Also by one that takes the place of another.
        link = next(iter(held_by(data.env)))
        link.lost_before = method if method == "set_state" else None
        data.set_state(state)
        assert_trees_equal(data.collect().arrays(), expected.arrays())
    assert data.env.pool.losses == 1
