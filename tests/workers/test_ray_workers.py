"""Workers that Ray runs; skipped where it is not installed."""

import functools
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.envs import WorkerError
from keras_rl2.saving import fresh_python
from support.worker_envs import NumberedEnv
from support.worker_envs import ProcessEnv
from support.worker_processes import is_running
from support.worker_processes import wait_until

ray = pytest.importorskip("ray", reason='needs Ray: pip install ".[ray]"')
pytestmark = pytest.mark.slow

from ray.util import placement_group  # noqa: E402
from ray.util import remove_placement_group  # noqa: E402

from support import ray_processes  # noqa: E402
from support.ray_processes import pids  # noqa: E402

TESTS = Path(__file__).parents[1]
NUM_ENVS = 4


@pytest.fixture(scope="module", autouse=True)
def ray_of_the_user():
    ray_processes.begin()
    yield
    ray.shutdown()


@pytest.fixture
def closing():
    """Makes an agent and data; closes the data, which leaves nothing."""
    opened = []

    def make(env):
        data = rl.RolloutDataset(
            env,
            num_envs=NUM_ENVS,
            seed=0,
            workers=rl.RayWorkers(2),
            horizon=16,
            passes=1,
            batch_size=None,
        )
        opened.append(data)
        agent = rl.PPO.for_env(data.env, hidden=(8,), seed=0)
        agent.compile(run_eagerly=True)
        return agent, data

    yield make
    for data in opened:
        processes = [] if data.env.pool.closed else pids(data.env)
        data.close()
        # What is killed by Ray ends a moment later.
        wait_until(lambda gone=processes: not any(map(is_running, gone)))
    assert ray.is_initialized()


def trained(workers):
    """Returns all weights and the history of a training."""
    data = rl.RolloutDataset(
        "Acrobot-v1",
        num_envs=NUM_ENVS,
        horizon=16,
        seed=0,
        workers=workers,
        passes=2,
        batch_size=16,
    )
    agent = rl.PPO.for_env(
        data.env, hidden=(8,), normalize_observations=True, seed=0
    )
    agent.compile(run_eagerly=True)
    history = agent.fit(data, epochs=2, verbose=0).history
    # A second fit goes on where the first was.
    history["loss"] += agent.fit(data, epochs=1, verbose=0).history["loss"]
    data.close()
    return agent.get_weights(), history["loss"]


def test_training_is_that_of_one_process():
    weights, losses = trained(None)
    others, other_losses = trained(rl.RayWorkers(2))
    assert losses == other_losses
    for weight, other in zip(weights, others, strict=True):
        np.testing.assert_array_equal(weight, other)


def test_workers_import_no_tensorflow(closing, tmp_path):
    agent, data = closing(functools.partial(ProcessEnv, tmp_path))
    agent.fit(data, epochs=2, verbose=0)
    processes = pids(data.env)
    data.close()
    written = [path.read_text().splitlines() for path in tmp_path.iterdir()]
    names = {int(path.name.partition("-")[0]) for path in tmp_path.iterdir()}
    assert names == {*processes}
    # All environments were closed.
    assert len(written) == NUM_ENVS
    for modules in written:
        assert {"ray", "gymnasium", "ai_edge_litert"} <= {*modules}
        assert not {"tensorflow", "keras", "h5py"} & {*modules}


def test_an_environment_that_only_the_driver_knows_is_sent():
    class OwnEnv(NumberedEnv):
        pass

    gymnasium.register("OfRay-v0", entry_point=OwnEnv)
    try:
        env = rl.RayWorkers(1).start("OfRay-v0", 1)
    finally:
        del gymnasium.registry["OfRay-v0"]
    assert env.name == "OfRay-v0"
    env.close()


def test_a_lost_ray_worker_without_free_cpus_raises():
    env = rl.RayWorkers(2).start(NumberedEnv, 2)
    env.pool._replace_seconds = 1.0
    # Waits for one of two processors, and takes the first that gets free.
    room = placement_group([{"CPU": 1}])
    try:
        os.kill(pids(env)[0], signal.SIGKILL)
        assert room.wait(20)
        with pytest.raises(WorkerError, match=r"to answer.*not start"):
            env.pool.call_all("describe")
        assert env.pool.closed
    finally:
        env.close()
        remove_placement_group(room)


def test_more_ray_workers_than_cpus_raise():
    with pytest.raises(WorkerError, match="did not start within 1 s"):
        rl.RayWorkers(3, start_timeout=1.0).start(NumberedEnv, 3)
    wait_until(lambda: ray.available_resources().get("CPU") == 2.0)
    # Less than a processor is enough for what waits.
    env = rl.RayWorkers(3, options={"num_cpus": 0.5}).start(NumberedEnv, 3)
    assert env.num_envs == 3
    env.close()


def test_an_answer_that_cannot_be_pickled_raises():
    def make():
        env = NumberedEnv()
        env.lock = threading.Lock()
        return env

    env = rl.RayWorkers(1).start(make, 1)
    try:
        with pytest.raises(TypeError, match="pickle"):
            env.pool.call_all("__getattribute__", "env")
        assert env.pool.losses == 0
    finally:
        env.close()


def run(name, folder):
    """Starts one of our programs, apart from this process' signals."""
    return subprocess.Popen(
        [sys.executable, TESTS / "support" / "ray_programs.py", name],
        cwd=folder,
        env=fresh_python.environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )


def test_a_ray_of_our_own_ends_with_us(tmp_path):
    with run("takes turns", tmp_path) as program:
        processes = list(map(int, program.stdout.readline().split()))
        # As a terminal does.
        os.killpg(program.pid, signal.SIGINT)
        _, errors = program.communicate()
    assert "KeyboardInterrupt" in errors
    assert len(processes) >= 2
    wait_until(lambda: not any(map(is_running, processes)))


def test_a_machine_that_is_lost_is_done_without(tmp_path):
    with run("loses a machine", tmp_path) as program:
        printed, errors = program.communicate()
    assert program.returncode == 0, errors[-2000:]
    assert printed.split() == ["1", "2"]
