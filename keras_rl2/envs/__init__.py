"""Environments: one interface over all of them, and reward scaling.

Nothing here imports TensorFlow or Keras, so that worker processes stay light.
"""

from keras_rl2.envs.adapt import as_vector_env
from keras_rl2.envs.reward_scaler import RewardScaler
from keras_rl2.envs.running_moments import RunningMoments
from keras_rl2.envs.vector_env import VectorEnvAdapter

__all__ = [
    "RewardScaler",
    "RunningMoments",
    "VectorEnvAdapter",
    "as_vector_env",
]
