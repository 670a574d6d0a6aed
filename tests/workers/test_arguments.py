"""Bad arguments of workers are refused before a process is started."""

import subprocess
import sys
import threading

import gymnasium
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.workers.local_workers import LocalTransport
from support.probe_envs import CountingEnv
from support.workers_here import WorkersHere


@pytest.fixture
def no_process(monkeypatch):
    """Fails where something is started all the same."""

    def start(*args):
        raise AssertionError("a process was started")

    monkeypatch.setattr(LocalTransport, "start", start)
    monkeypatch.setattr(subprocess, "Popen", start)


@pytest.mark.usefixtures("no_process")
@pytest.mark.parametrize(
    ("workers", "arguments", "text"),
    [
        (rl.LocalWorkers, {"count": 0}, "count=0"),
        (rl.LocalWorkers, {"envs_per_worker": 0}, "envs_per_worker=0"),
        (rl.LocalWorkers, {"timeout": 0}, "timeout=0"),
        (rl.LocalWorkers, {"start_timeout": -1.0}, "start_timeout=-1.0"),
    ],
)
def test_bad_numbers_of_workers_are_refused(workers, arguments, text):
    with pytest.raises(ValueError, match=r"Expected .* Received") as caught:
        workers(**{"count": 2, **arguments})
    assert text in str(caught.value)


LOCK = threading.Lock()


@pytest.mark.usefixtures("no_process")
def test_environments_that_cannot_be_divided_or_pickled_are_refused():
    two, six = rl.LocalWorkers(2), rl.LocalWorkers(2, 3)
    lock = "cannot pickle '_thread.lock'"
    for env, arguments, text in [
        ("Acrobot-v1", {"num_envs": 3}, "multiple of the number of workers, 2"),
        ("Acrobot-v1", {"num_envs": 4, "workers": six}, "2 x 3"),
        (CountingEnv(), {}, "they make their own"),
        (CountingEnv, {"env_kwargs": {"index": 1}}, "no `env_kwargs`"),
        (CountingEnv, {"wrappers": [gymnasium.Wrapper]}, "no `wrappers`"),
        (lambda lock=LOCK: CountingEnv(lock), {}, lock),
        ("Acrobot-v1", {"wrappers": [lambda env: CountingEnv(LOCK)]}, lock),
        ("Acrobot-v1", {"horizon": 8, "sequence_length": 3}, "Received: "),
    ]:
        with pytest.raises(ValueError, match="Received: ") as caught:
            rl.RolloutDataset(env, **{"workers": two, **arguments})
        assert text in str(caught.value)
    with pytest.raises(ValueError, match="multiple of the number of workers"):
        rl.ReplayDataset("Acrobot-v1", num_envs=3, workers=two)
    with pytest.raises(ValueError, match="Received: "):
        rl.ReplayDataset("Acrobot-v1", rounds_ahead=-1, workers=two)


@pytest.mark.parametrize(
    ("count", "envs_per_worker", "num_envs", "expected"),
    [
        (2, 3, 1, 3),
        (2, 3, 6, 3),
        (4, None, 1, 1),
        (4, None, np.int64(8), 2),
    ],
)
def test_environments_of_each_worker(
    count, envs_per_worker, num_envs, expected
):
    workers = WorkersHere(count, envs_per_worker=envs_per_worker)
    env = workers.start(CountingEnv, num_envs)
    assert env.envs_per_worker == expected
    assert env.num_envs == count * expected
    env.close()


def test_without_ray_the_error_names_the_extra_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    workers = rl.RayWorkers(2)
    with pytest.raises(ImportError, match=r"keras-rl2-fit\[ray\]"):
        workers.start("CartPole-v1", 2)
