"""What cannot work is refused in words, and leaves no process."""

import subprocess
import threading

import gymnasium
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.workers.local_transport import LocalTransport
from support.probe_envs import CountingEnv
from support.workers_here import WorkersHere


@pytest.fixture(autouse=True)
def no_process(monkeypatch):
    """Fails where something is started all the same."""

    def start(*args):
        raise AssertionError("a process was started")

    monkeypatch.setattr(LocalTransport, "start", start)
    monkeypatch.setattr(subprocess, "Popen", start)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"count": 0}, "count=0"),
        ({"count": 1.5}, "count=1.5"),
        ({"count": 2, "envs_per_worker": 0}, "envs_per_worker=0"),
        ({"count": 2, "min_workers": 0}, "min_workers=0"),
        ({"count": 2, "min_workers": 3}, "min_workers=3"),
        ({"count": 2, "timeout": 0}, "timeout=0"),
        ({"count": 2, "timeout": float("nan")}, "timeout=nan"),
        ({"count": 2, "start_timeout": -1.0}, "start_timeout=-1.0"),
    ],
    ids=str,
)
def test_numbers_out_of_bounds(arguments, text):
    with pytest.raises(ValueError, match=r"Expected .* Received: .*") as caught:
        rl.LocalWorkers(**arguments)
    assert text in str(caught.value)


LOCK = threading.Lock()


def holds(lock):
    return lambda: CountingEnv(lock)


@pytest.mark.parametrize("dataset", [rl.RolloutDataset, rl.ReplayDataset])
@pytest.mark.parametrize(
    ("env", "arguments", "text"),
    [
        ("Acrobot-v1", {"num_envs": 3}, "multiple of the number of workers, 2"),
        (
            "Acrobot-v1",
            {"num_envs": 4, "workers": rl.LocalWorkers(2, 3)},
            "2 x 3",
        ),
        (CountingEnv(), {}, "they make their own"),
        (
            gymnasium.vector.SyncVectorEnv([CountingEnv]),
            {},
            "they make their own",
        ),
        (CountingEnv, {"env_kwargs": {"index": 1}}, "no `env_kwargs`"),
        (CountingEnv, {"wrappers": [gymnasium.Wrapper]}, "no `wrappers`"),
        ("Acrobot-v1", {"step_timeout": 1.0}, "step_timeout=1.0"),
        (holds(LOCK), {}, "cannot pickle '_thread.lock'"),
        (
            "Acrobot-v1",
            {"wrappers": [lambda env: CountingEnv(LOCK)]},
            "cannot pickle '_thread.lock'",
        ),
    ],
    ids=[
        "not a multiple",
        "other numbers",
        "an environment",
        "a vector environment",
        "arguments of a function",
        "wrappers of a function",
        "step_timeout",
        "function not to be sent",
        "wrapper not to be sent",
    ],
)
def test_what_cannot_be_shared_out_or_sent(dataset, env, arguments, text):
    arguments = {"workers": rl.LocalWorkers(2), **arguments}
    with pytest.raises(ValueError, match="Received: ") as caught:
        dataset(env, **arguments)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("dataset", "arguments"),
    [
        (rl.RolloutDataset, {"horizon": 8, "sequence_length": 3}),
        (rl.ReplayDataset, {"rounds_ahead": -1}),
        (rl.RolloutDataset, {"on_env_error": "ignore"}),
    ],
)
def test_settings_that_need_no_environment_to_be_refused(dataset, arguments):
    with pytest.raises(ValueError, match="Received: "):
        dataset("Acrobot-v1", workers=rl.LocalWorkers(2), **arguments)


@pytest.mark.parametrize(
    ("count", "envs_per_worker", "num_envs", "expected"),
    [(2, 3, 1, 3), (2, 3, 6, 3), (4, None, 1, 1), (4, None, np.int64(8), 2)],
)
def test_environments_of_each_worker(
    count, envs_per_worker, num_envs, expected, tmp_path
):
    workers = WorkersHere(tmp_path, count, envs_per_worker=envs_per_worker)
    env = workers.start(CountingEnv, num_envs)
    assert env.envs_per_worker == expected
    assert env.num_envs == count * expected
    env.close()
