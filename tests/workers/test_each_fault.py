"""Each fault of environments in workers: told, or done without, in time."""

import functools
import os
import time

import pytest

import keras_rl2 as rl
from keras_rl2.workers.worker_pool import SECONDS_TO_REPLACE
from support import failing_envs
from support.failing_envs import LENGTH
from support.probe_envs import EnvCrash
from support.worker_processes import is_running
from support.worker_processes import living
from support.worker_processes import wait_until

TIMEOUT = 1.0
NUM_ENVS, HORIZON = 4, 2 * LENGTH
#: What is raised here of what environments do elsewhere; None where another
#: process does it again.
FAULTS = {
    "raises": EnvCrash,
    "raises_what_cannot_be_pickled": EnvCrash,
    # Its type cannot be had; its name, text and traceback are.
    "raises_what_cannot_be_made_again": RuntimeError,
    "raises_what_is_made_of_two": failing_envs.WholeError,
    "hangs": None,
    "is_killed": None,
    "exits": None,
    "shows_another_space": ValueError,
}
# A space that differs when it is made is one more environment.
CASES = [
    (call, name)
    for call in ("make", "reset", "step")
    for name in FAULTS
    if (call, name) != ("make", "shows_another_space")
]


class Local:
    """Workers of this machine."""

    others = 0

    def __init__(self):
        self.workers = rl.LocalWorkers(2, timeout=TIMEOUT, start_timeout=20.0)

    def processes(self, data):
        return [each.pid for each in living(data)]

    def end(self):
        pass


class Ray:
    """Workers that Ray runs, of a user who has begun it.

    Each beginning of Ray leaves descriptors of its log open.
    """

    # Of all tests together: gRPC closes channels when it likes.
    others = 3

    def __init__(self):
        pytest.importorskip("ray", reason='needs Ray: pip install ".[ray]"')
        from support.ray_processes import begin

        begin()
        self.workers = rl.RayWorkers(2, timeout=TIMEOUT, start_timeout=20.0)

    def processes(self, data):
        from support.ray_processes import pids

        return pids(data.env)

    def end(self):
        import ray

        ray.shutdown()


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def started(workers, env):
    """Returns data of environments, and the seconds that starting took."""
    began = time.perf_counter()
    data = rl.RolloutDataset(
        env,
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
    return data, time.perf_counter() - began


def collect_thrice(data):
    """Collects past what had been asked for, and collected, ahead."""
    for _ in range(3):
        data.collect()


@pytest.fixture(scope="module", params=[Local, Ray])
def kind(request):
    """Workers of a kind, which have been started before."""
    made = request.param()
    started(made.workers, failing_envs.FailingEnv)[0].close()
    made.descriptors = descriptors()
    yield made
    made.end()


@pytest.mark.slow
@pytest.mark.parametrize(("call", "name"), CASES)
def test_it_is_told_or_done_without_in_time_and_leaves_nothing(
    call, name, kind, tmp_path, record_property
):
    path, fail = tmp_path / "armed", getattr(failing_envs, name)
    data, to_start = started(
        kind.workers,
        functools.partial(failing_envs.FailingOnce, call, fail, path),
    )
    processes = kind.processes(data)
    path.touch()
    if call == "make":
        os.kill(processes[0], 9)
    expected = FAULTS[name]
    began = time.perf_counter()
    if expected is None:
        trajectory = data.collect()
        assert trajectory.reward.shape == (HORIZON, NUM_ENVS)
        assert data.env.pool.losses >= 1
    else:
        with pytest.raises(expected) as caught:
            collect_thrice(data)
        assert "In worker" in "".join(caught.value.__notes__)
        del caught
    seconds = time.perf_counter() - began
    record_property("seconds", seconds)
    # What takes the place of a lost process has to start, once or twice; where
    # it hangs in that, it is given more time than where it collects, and the
    # one after it starts when that time is over.
    replacing = 0 if expected and call != "make" else 2 * to_start
    if (call, name) == ("make", "hangs"):
        replacing = max(SECONDS_TO_REPLACE, replacing) + to_start
    assert seconds < TIMEOUT + 1.0 + replacing
    assert not path.exists()
    processes += kind.processes(data) if expected is None else []
    data.close()
    wait_until(lambda: not any(map(is_running, processes)), 2.0)
    assert descriptors() <= kind.descriptors + kind.others
