"""Programs that use Ray, run in processes of their own.

`python ray_programs.py NAME`: none imports TensorFlow.
"""

import os
import signal
import sys

import ray
from ray.cluster_utils import Cluster

import keras_rl2 as rl
from support.ray_processes import pids
from support.ray_processes import started_by
from support.worker_processes import is_running
from support.worker_processes import wait_until


def takes_turns():
    """Starts Ray, and workers twice; then is interrupted in a call."""

    def own(number, frame):
        raise AssertionError

    signal.signal(signal.SIGTERM, own)
    # Of a shell in the background the tests have it ignored, and what they run.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    first = rl.RayWorkers(1).start("CartPole-v1", 1)
    second = rl.RayWorkers(3).start("CartPole-v1", 3)
    processes = [*pids(first), *pids(second)]
    first.close()
    # Ray goes on for the second.
    assert len(second.pool.call_all("describe")) == 3
    second.close()
    wait_until(lambda: not any(map(is_running, processes)))
    assert signal.getsignal(signal.SIGTERM) is own

    third = rl.RayWorkers(2).start("CartPole-v1", 2)
    print(*started_by(os.getpid()), *pids(third), flush=True)
    while True:
        third.pool.call_all("describe")


def loses_a_machine():
    """Goes on where another machine has room."""
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    machines = [cluster.add_node(num_cpus=2) for _ in range(2)]
    workers = rl.RayWorkers(
        2, address=cluster.address, options={"scheduling_strategy": "SPREAD"}
    )
    env = workers.start("CartPole-v1", 2)
    try:
        before = pids(env)
        assert len(env.pool.call_all("describe")) == 2
        cluster.remove_node(machines[0])
        wait_until(lambda: sum(map(is_running, before)) < 2)
        try:
            env.pool.call_all("describe")
        except rl.envs.WorkerError as error:
            print(error, file=sys.stderr)
        assert len(env.pool.call_all("describe")) == 2
        print(env.pool.losses, len(pids(env)))
    finally:
        env.close()
        ray.shutdown()
        cluster.shutdown()


if __name__ == "__main__":
    {"takes turns": takes_turns, "loses a machine": loses_a_machine}[
        sys.argv[1]
    ]()
