"""Processes that step environments for a dataset.

Nothing here imports TensorFlow or Keras, neither in a worker nor in the
process that it works for.
"""

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
