"""Looking after the processes of Ray."""

import os
from pathlib import Path

from support.worker_processes import held_by


def begin():
    """Starts Ray as a user would, who leaves the rest of the machine alone."""
    import ray

    from keras_rl2.saving import fresh_python

    ray.init(
        "local",
        num_cpus=2,
        include_dashboard=False,
        configure_logging=False,
        log_to_driver=False,
        # As a checkout that was installed on each machine.
        runtime_env={
            "env_vars": {"PYTHONPATH": fresh_python.environ()["PYTHONPATH"]}
        },
    )


def pids(env):
    """Returns the processes of the workers of an environment that live."""
    # Not everybody who looks at this file has it.
    import ray

    links = held_by(env)
    return ray.get(
        [
            link.actor.__ray_call__.remote(lambda _: os.getpid())
            for link in links
        ]
    )


def started_by(pid):
    """Returns all processes that descend from one, if that can be known."""
    children = []
    for path in Path("/proc").glob(f"{pid}/task/*/children"):
        children += map(int, path.read_text().split())
    return children + [each for child in children for each in started_by(child)]
