"""The traits of worker processes, and their end."""

import functools
import gc
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.workers import local_workers
from keras_rl2.workers import worker_pool
from keras_rl2.workers.local_workers import LocalTransport
from keras_rl2.workers.worker_pool import LinkLostError
from support import worker_envs
from support.datasets import episodes_of
from support.worker_envs import NumberedEnv
from support.worker_envs import Once
from support.worker_envs import ProcessEnv
from support.worker_processes import is_running
from support.worker_processes import living
from support.worker_processes import processes_of
from support.worker_processes import transport_of
from support.worker_processes import wait_until

TESTS = Path(__file__).parents[1]


def made(env=NumberedEnv, workers=None, **settings):
    data = rl.RolloutDataset(
        env,
        num_envs=4,
        horizon=16,
        passes=1,
        batch_size=None,
        seed=0,
        workers=workers or rl.LocalWorkers(2),
        **settings,
    )
    agent = rl.PPO.for_env(data.env, hidden=(8,), seed=0)
    agent.compile(keras.optimizers.SGD(0.01), run_eagerly=True)
    return agent, data


@pytest.fixture(scope="module")
def closed(tmp_path_factory):
    """An agent after a training, its closed data, and the files of workers."""
    written = tmp_path_factory.mktemp("written")
    agent, data = made(functools.partial(ProcessEnv, written))
    agent.fit(data, epochs=2, verbose=0)
    assert len(living(data)) == 2
    data.close()
    return agent, data, written


def test_workers_import_no_tensorflow(closed):
    _, data, folder = closed
    pids = {process.pid for process in processes_of(data)}
    written = [path.read_text().splitlines() for path in folder.iterdir()]
    names = {int(path.name.partition("-")[0]) for path in folder.iterdir()}
    assert names == pids
    # All environments were closed.
    assert len(written) == 4
    for modules in written:
        assert {"keras_rl2", "gymnasium", "ai_edge_litert"} <= {*modules}
        assert not {"tensorflow", "keras", "h5py"} & {*modules}


def test_close_leaves_nothing(closed):
    agent, data, _ = closed
    assert not living(data)
    # A second time, it is closed already.
    data.close()
    with pytest.raises(ValueError, match="workers that are open"):
        agent.fit(data, epochs=1, verbose=0)


def test_close_kills_processes_that_hang(monkeypatch):
    monkeypatch.setattr(worker_pool, "SECONDS_TO_CLOSE", 0.2)

    class Hangs(NumberedEnv):
        def close(self):
            worker_envs.hangs()

    _, data = made(Hangs, rl.LocalWorkers(1))
    data.close()
    assert [each.returncode for each in processes_of(data)] == [-9]


def test_worker_processes_end_with_garbage_collection():
    agent, data = made(workers=rl.LocalWorkers(1))
    agent.fit(data, epochs=1, verbose=0)
    processes = processes_of(data)
    del agent, data
    gc.collect()
    assert all(each.returncode is not None for each in processes)


def test_an_interrupted_rollout_can_be_repeated(tmp_path):
    """Ctrl-C interrupts this process within a rollout."""

    pid = os.getpid()

    def interrupts():
        os.kill(pid, signal.SIGUSR1)
        worker_envs.hangs()

    def raises(*_):
        raise KeyboardInterrupt

    fail = Once(tmp_path / "once", interrupts, step=20)
    agent, data = made(functools.partial(NumberedEnv, fail))
    before = signal.signal(signal.SIGUSR1, raises)
    try:
        agent.fit(data, epochs=1, verbose=0)
        with pytest.raises(KeyboardInterrupt):
            agent.fit(data, epochs=1, verbose=0)
        assert not living(data)
        assert agent.env_steps == 64
        history = agent.fit(data, epochs=1, verbose=0).history
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(living(data)) == 2
    assert agent.env_steps == 2 * 64
    assert np.isfinite(history["loss"]).all()
    lengths = episodes_of(data)["episode_lengths"]
    assert min(lengths) >= worker_envs.SHORTEST, lengths
    assert max(lengths) <= worker_envs.LONGEST, lengths
    data.close()
    assert not living(data)


@pytest.mark.slow
def test_processes_of_an_environment_end_with_its_worker():
    """A simulator, say, that runs in a process of its own."""

    class Simulator(NumberedEnv):
        def __init__(self):
            super().__init__()
            self.process = subprocess.Popen(["sleep", "600"])
            self.number = self.process.pid

    agent, data = made(Simulator)
    data.bind(agent)
    simulators = [int(each) for each in data.collect().observation[0][:, 0]]
    assert all(map(is_running, simulators))
    gone, _ = living(data)
    pool = data.env.pool
    pool._lose(pool._processes[0], "a test")
    assert gone.returncode == -9
    transport_of(data)._end()
    wait_until(lambda: not any(map(is_running, simulators)))


_WAITS = "import threading; threading.Event().wait()"


def test_a_process_that_does_not_start_is_named(monkeypatch):
    transport, started = LocalTransport(), []
    begin = subprocess.Popen

    def noted(*arguments, **kwargs):
        started.append(begin(*arguments, **kwargs))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", noted)
    monkeypatch.setattr(
        local_workers.fresh_python,
        "command",
        lambda module: [sys.executable, "-c", "raise SystemExit(3)"],
    )
    with pytest.raises(LinkLostError, match="exit code 3 as it started"):
        transport.start(2, 20.0)
    monkeypatch.setattr(
        local_workers.fresh_python,
        "command",
        lambda module: [sys.executable, "-c", _WAITS],
    )
    with pytest.raises(LinkLostError, match="within 0 s"):
        transport.start(2, 0.2)
    assert len(started) == 4
    assert all(each.returncode is not None for each in started)
    transport.close()


# Programs of their own, with TensorFlow in them.


@pytest.fixture
def program():
    """Starts a program of `support/worker_programs.py`."""
    started = []

    def start(name):
        process = subprocess.Popen(
            [sys.executable, TESTS / "support" / "worker_programs.py", name],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path]),
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process, lambda: json.loads(process.stdout.readline())

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def assert_nothing_left(said):
    wait_until(lambda: not any(map(is_running, said["processes"])))


@pytest.mark.slow
def test_environments_of_a_script(program):
    process, told = program("environments")
    failed = told()
    assert failed["own"] == "of this program"
    assert failed["steps"] == 0
    assert any("In step 10 of" in note for note in failed["notes"])
    said = told()
    assert len(said["processes"]) == 2
    assert process.wait(60) == 0
    assert_nothing_left(said)


@pytest.mark.slow
def test_workers_end_with_the_process_that_started_them(program):
    process, told = program("is_broken_off")
    said = told()
    assert told() == {"hangs": True}
    assert all(map(is_running, said["processes"]))
    process.kill()
    process.wait()
    assert_nothing_left(said)


@pytest.mark.slow
def test_ctrl_c(program):
    process, told = program("is_broken_off")
    said = told()
    assert [told(), told()] == [{"hangs": True}] * 2
    process.send_signal(signal.SIGINT)
    assert told() == {"interrupted": True, "living": 0, "steps": 64}
    again = told()
    assert (again["steps"], again["living"]) == (128, 2)
    assert process.wait(60) == 0
    assert_nothing_left({**said, **again})
