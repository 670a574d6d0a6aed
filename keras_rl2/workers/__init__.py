"""Processes that step environments for a dataset.

Nothing here imports TensorFlow or Keras, neither in a worker nor in the
process that it works for.
"""

from typing import TYPE_CHECKING

from keras_rl2.basics.lazy import lazy

if TYPE_CHECKING:
    from keras_rl2.workers.local_workers import LocalWorkers
    from keras_rl2.workers.ray_workers import RayWorkers
    from keras_rl2.workers.worker_collector import WorkerCollector
    from keras_rl2.workers.worker_env import WorkerEnv
    from keras_rl2.workers.workers import Workers

__all__ = [
    "LocalWorkers",
    "RayWorkers",
    "WorkerCollector",
    "WorkerEnv",
    "Workers",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "LocalWorkers": "keras_rl2.workers.local_workers",
        "RayWorkers": "keras_rl2.workers.ray_workers",
        "WorkerCollector": "keras_rl2.workers.worker_collector",
        "WorkerEnv": "keras_rl2.workers.worker_env",
        "Workers": "keras_rl2.workers.workers",
    },
)
