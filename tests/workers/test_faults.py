"""Processes of workers die and hang; the samples stay complete."""

import functools
import logging

import numpy as np
import pytest

import keras_rl2 as rl
from support import worker_envs
from support.watched_workers import HORIZON
from support.watched_workers import NUM_ENVS
from support.watched_workers import Watch
from support.watched_workers import made
from support.worker_envs import NumberedEnv
from support.worker_envs import Once
from support.worker_processes import kill
from support.worker_processes import living
from support.worker_processes import processes_of
from support.workers_here import WorkersHere
from support.workers_here import lose


@pytest.mark.slow
def test_one_that_is_killed_between_rounds_is_replaced(closing):
    agent, data = closing()
    watch = Watch(data, agent)
    agent.fit(data, epochs=1, verbose=0)
    kill(living(data)[0])
    agent.fit(data, epochs=2, verbose=0)
    assert (watch.rollouts, watch.gaps) == (3, 2)
    assert data.env.pool.losses == 1
    assert agent.env_steps == 3 * HORIZON * NUM_ENVS
    watch.assert_statistics()
    # Nor does the system remember that it ended.
    gone = [each for each in processes_of(data) if each not in living(data)]
    assert (len(gone), len(living(data))) == (1, 2)
    assert gone[0].returncode is not None


@pytest.mark.parametrize(
    ("how", "workers"),
    [
        (worker_envs.dies, rl.LocalWorkers(2)),
        pytest.param(
            worker_envs.hangs,
            rl.LocalWorkers(2, timeout=5.0),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["dies", "hangs"],
)
def test_one_that_is_lost_in_a_rollout_is_replaced(
    how, workers, closing, tmp_path, caplog
):
    fail = Once(tmp_path / "once", how, step=HORIZON + 9)
    agent, data = closing(functools.partial(NumberedEnv, fail), workers)
    data.bind(agent)
    watch = Watch(data, agent)
    with caplog.at_level(logging.WARNING):
        for _ in range(4):
            data.refresh()
    assert (watch.rollouts, watch.gaps) == (4, 2)
    assert len(living(data)) == 2
    [line] = [each for each in caplog.messages if "is replaced" in each]
    assert ("did not answer 'collect' within 5 s" in line) == (
        how is worker_envs.hangs
    )
    watch.assert_statistics()


def test_replay_does_not_cross_a_gap():
    agent, data = made(workers=WorkersHere(2), kind=rl.DQN)
    data.bind(agent)
    watch = Watch(data, agent)
    data.refresh()
    lose(data, 1)
    # The next rollout may have been collected ahead.
    for _ in range(2):
        data.refresh()
    assert watch.gaps == 2
    batch = data.sample(2000)
    observation, following = batch["observation"], batch["next_observation"]
    np.testing.assert_array_equal(observation[:, :2], following[:, :2])
    # Windows are shorter where episodes were cut, and their rewards as many.
    span = following[:, 2] - observation[:, 2]
    assert {*span.tolist()} == {1.0, 2.0, 3.0}
    # Those that were cut are bootstrapped from, as after a truncation.
    ends = batch["discount"] > 0
    np.testing.assert_allclose(
        batch["discount"][ends], agent.gamma ** span[ends], rtol=1e-6
    )
    watch.assert_statistics()


@pytest.mark.slow
def test_a_worker_that_dies_at_its_start_is_replaced(closing, tmp_path):
    killer = Once(tmp_path / "once", worker_envs.dies, step=0)

    def make():
        env = NumberedEnv()
        killer(env)
        return env

    agent, data = closing(make)
    data.bind(agent)
    data.collect()
    assert data.env.pool.losses == 1
    assert len(living(data)) == 2
