"""Processes of workers die and hang; what is learned from is whole."""

import collections
import functools
import gc
import logging
import os
import random
import threading
import time

import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.envs import WorkerError
from keras_rl2.workers.worker_pool import MOST_LOSSES
from support import worker_envs
from support.watched_workers import HORIZON
from support.watched_workers import NUM_ENVS
from support.watched_workers import Watch
from support.watched_workers import made
from support.worker_envs import Always
from support.worker_envs import MadeInFewProcesses
from support.worker_envs import NumberedEnv
from support.worker_envs import Once
from support.worker_processes import folder_of
from support.worker_processes import kill
from support.worker_processes import living
from support.worker_processes import processes_of
from support.worker_processes import wait_until
from support.workers_here import WorkersHere
from support.workers_here import lose


@pytest.fixture(scope="module")
def after_a_kill():
    """A training of which one process was killed after the first round."""
    agent, data = made()
    watch = Watch(data, agent)
    agent.fit(data, epochs=1, verbose=0)
    kill(living(data)[0])
    agent.fit(data, epochs=2, verbose=0)
    yield agent, data, watch
    data.close()


def test_one_that_is_killed_between_rounds_is_replaced(after_a_kill):
    agent, data, watch = after_a_kill
    assert (watch.rollouts, watch.gaps) == (3, 2)
    assert data.env.pool.losses == 1
    assert len(living(data)) == 2
    assert agent.env_steps == 3 * HORIZON * NUM_ENVS
    watch.assert_statistics()


def test_nothing_is_kept_of_processes_that_are_lost(after_a_kill):
    """Neither their memory nor, with the system, that they have ended."""
    _, data, _ = after_a_kill
    assert len(processes_of(data)) == 3
    assert all(
        each.returncode is not None
        for each in processes_of(data)
        if each not in living(data)
    )
    names = {path.name for path in folder_of(data).glob("from-*")}
    assert {name.split("-")[1] for name in names} == {"1", "2"}


@pytest.mark.parametrize(
    ("how", "workers"),
    [
        (worker_envs.dies, rl.LocalWorkers(2)),
        (worker_envs.hangs, rl.LocalWorkers(2, timeout=1.0)),
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
    assert ("did not answer 'collect' within 1 s" in line) == (
        how is worker_envs.hangs
    )
    watch.assert_statistics()


@pytest.mark.parametrize(
    "is_killed", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_replay_does_not_cross_a_gap(is_killed, tmp_path):
    workers = rl.LocalWorkers(2) if is_killed else WorkersHere(tmp_path)
    agent, data = made(workers=workers, kind=rl.DQN)
    data.bind(agent)
    watch = Watch(data, agent)
    data.refresh()
    if is_killed:
        kill(living(data)[1])
    else:
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
    data.close()


@pytest.mark.slow
def test_what_always_dies_is_an_error(closing):
    agent, data = closing(
        functools.partial(NumberedEnv, Always(worker_envs.dies, step=3))
    )
    with pytest.raises(WorkerError, match=f"{MOST_LOSSES + 1} times"):
        agent.fit(data, epochs=1, verbose=0)
    assert not living(data)
    assert not folder_of(data).exists()
    assert agent.env_steps == 0
    # Of one of them, while the other one may have died as often but once.
    assert MOST_LOSSES < data.env.pool.losses <= 2 * MOST_LOSSES + 1


def processes(folder, count):
    """Makes a folder for `MadeInFewProcesses` that can be made in so many."""
    folder.mkdir()
    allow(folder, count)
    return folder


def allow(folder, count):
    for index in range(count):
        (folder / str(index)).touch()


def test_one_that_cannot_be_replaced_leaves_its_share(closing, tmp_path):
    folder = processes(tmp_path / "made", 2)
    agent, data = closing(functools.partial(MadeInFewProcesses, folder))
    data.bind(agent)
    watch = Watch(data, agent)
    data.refresh()
    gone, left = living(data)
    kill(gone)
    for _ in range(2):
        data.refresh()
    assert (watch.rollouts, watch.gaps) == (3, 2)
    assert living(data) == [left]
    # That one is replaced with all that it holds.
    allow(folder, 1)
    kill(left)
    data.refresh()
    assert watch.gaps == 2 + NUM_ENVS
    assert len(living(data)) == 1
    watch.assert_statistics()


@pytest.mark.parametrize(
    "how",
    [
        worker_envs.dies,
        pytest.param(worker_envs.hangs, marks=pytest.mark.slow),
    ],
)
def test_too_few_are_an_error_within_ten_seconds(how, closing, tmp_path):
    folder = processes(tmp_path / "made", 2)
    # The other one is at something that takes longer.
    agent, data = closing(
        functools.partial(MadeInFewProcesses, folder, how, seconds=0.01),
        rl.LocalWorkers(2, min_workers=2),
        horizon=2000,
    )
    data.bind(agent)
    kill(living(data)[0])
    began = time.monotonic()
    with pytest.raises(WorkerError, match="at least 2 workers"):
        data.collect()
    assert time.monotonic() - began < 10.0
    assert not living(data)
    assert not folder_of(data).exists()


def test_one_that_dies_as_it_is_made_first_is_made_again(closing, tmp_path):
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


def test_what_can_never_be_made_is_an_error(tmp_path):
    folder = processes(tmp_path / "made", 0)
    with pytest.raises(WorkerError, match="at least 1 workers"):
        made(functools.partial(MadeInFewProcesses, folder), rl.LocalWorkers(1))


class Faulty(NumberedEnv):
    """Fails in each environment, in one of its calls."""

    def __init__(self, call, fail):
        if call == "make":
            fail()
        super().__init__(Always(fail, step=5) if call == "step" else None)
        self._reset = fail if call == "reset" else lambda: None

    def reset(self, *, seed=None, options=None):
        self._reset()
        return super().reset(seed=seed, options=options)


class Growing(NumberedEnv):
    """Shows observations of another shape than its space, after a while."""

    def _observation(self):
        observation = super()._observation()
        return observation if self.steps < 5 else np.append(observation, 0.0)


_UNSENT = "TwoArgumentsError: cannot be sent"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "fail", "kind", "text"),
    [
        (
            "reset",
            worker_envs.raises_what_cannot_be_sent,
            RuntimeError,
            _UNSENT,
        ),
        ("make", worker_envs.raises, worker_envs.WorkerEnvCrash, "crash"),
        ("step", worker_envs.hangs, WorkerError, f"{MOST_LOSSES + 1} times"),
        ("space", None, ValueError, "shape"),
    ],
)
def test_no_fault_leaves_anything(call, fail, kind, text, caplog):
    def run(env, limit):
        data = None
        try:
            agent, data = made(env, rl.LocalWorkers(2, timeout=limit))
            agent.fit(data, epochs=1, verbose=0)
        finally:
            if data is not None:
                data.close()
                assert not living(data)
                assert not folder_of(data).exists()

    def descriptors():
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    # What TensorFlow and multiprocessing make once and for all.
    run(NumberedEnv, 20.0)
    before = descriptors()
    env = Growing if fail is None else functools.partial(Faulty, call, fail)
    with (
        caplog.at_level(logging.WARNING),
        pytest.raises(kind, match=text) as caught,
    ):
        run(env, 1.0 if fail is worker_envs.hangs else 20.0)
    if fail is worker_envs.hangs:
        assert "did not answer 'collect' within 1 s" in caplog.text
    del caught
    assert descriptors() <= before


@pytest.mark.slow
def test_twenty_kills(closing):
    """Of random workers, at any time, by somebody else."""
    agent, data = closing(functools.partial(NumberedEnv, seconds=0.002))
    watch = Watch(data, agent)
    pool, random_one = data.env.pool, random.Random(0)
    seconds, over = collections.deque(), threading.Event()

    def kill_twenty():
        for count in range(1, 21):
            over.wait(random_one.uniform(0.0, 0.4))
            wait_until(lambda: over.is_set() or living(data))
            if over.is_set():
                return
            kill(random_one.choice(living(data)))
            began = time.monotonic()
            wait_until(lambda c=count: pool.losses >= c or over.is_set())
            before = watch.rollouts
            wait_until(lambda b=before: watch.rollouts > b or over.is_set())
            seconds.append(time.monotonic() - began)

    killer = threading.Thread(target=kill_twenty)
    data.bind(agent)
    data.refresh()
    killer.start()
    epochs = 1
    try:
        while killer.is_alive():
            agent.fit(data, epochs=1, verbose=0)
            epochs += 1
    finally:
        over.set()
        killer.join()
    assert pool.losses == len(seconds) == 20
    assert watch.rollouts == epochs
    assert 20 <= watch.gaps <= 40
    assert len(living(data)) == 2
    watch.assert_statistics()
    print(f"20 kills, until the next rollout: {np.round(seconds, 2)}")
