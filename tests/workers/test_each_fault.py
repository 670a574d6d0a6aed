"""Each fault of environments, with local workers and those of Ray."""

import functools
import os
import signal

import pytest

import keras_rl2 as rl
from support import failing_envs
from support.failing_envs import LENGTH
from support.probe_envs import EnvCrash
from support.worker_processes import is_running
from support.worker_processes import living
from support.worker_processes import wait_until

NUM_ENVS, HORIZON = 4, 2 * LENGTH
#: In which call environments do what, and what is raised here of it; None where
#: another process does it again.
FAULTS = [
    ("make", "raises", EnvCrash),
    ("make", "is_killed", None),
    ("reset", "raises_what_cannot_be_pickled", EnvCrash),
    # Its type cannot be had; its name, text and traceback are.
    ("step", "raises_what_cannot_be_made_again", RuntimeError),
    ("step", "raises_what_is_made_of_two", failing_envs.WholeError),
    ("step", "hangs", None),
    ("reset", "exits", None),
    ("step", "shows_another_space", ValueError),
]


@pytest.fixture(scope="module", params=["local", "ray"])
def workers(request):
    """Returns workers of a kind, and a function that lists their processes."""
    # Longer than a rollout takes on any machine.
    timeout = 10.0
    if request.param == "local":
        yield (
            rl.LocalWorkers(2, timeout=timeout),
            lambda data: [each.pid for each in living(data)],
        )
        return
    ray = pytest.importorskip("ray", reason='needs Ray: pip install ".[ray]"')
    from support import ray_processes

    ray_processes.begin()
    yield (
        rl.RayWorkers(2, timeout=timeout),
        lambda data: ray_processes.pids(data.env),
    )
    ray.shutdown()


def collect_thrice(data):
    """Collects beyond the rounds that were requested ahead."""
    for _ in range(3):
        data.collect()


@pytest.mark.slow
@pytest.mark.parametrize(("call", "name", "expected"), FAULTS)
def test_fault_is_raised_here_or_done_without(
    call, name, expected, workers, tmp_path
):
    path, (workers, processes_of) = tmp_path / "armed", workers
    fail = getattr(failing_envs, name)
    data = rl.RolloutDataset(
        functools.partial(failing_envs.FailingOnce, call, fail, path),
        num_envs=NUM_ENVS,
        horizon=HORIZON,
        passes=1,
        batch_size=None,
        seed=0,
        workers=workers,
    )
    agent = rl.PPO.for_env(data.env, hidden=(4,), seed=0)
    agent.compile(run_eagerly=True)
    data.bind(agent)
    data.collect()
    processes = processes_of(data)
    path.touch()
    if call == "make":
        os.kill(processes[0], signal.SIGKILL)
    if expected is None:
        trajectory = data.collect()
        assert trajectory.reward.shape == (HORIZON, NUM_ENVS)
        assert data.env.pool.losses >= 1
        processes += processes_of(data)
    else:
        with pytest.raises(expected) as caught:
            collect_thrice(data)
        assert "In worker" in "".join(caught.value.__notes__)
    assert not path.exists()
    data.close()
    wait_until(lambda: not any(map(is_running, processes)))
