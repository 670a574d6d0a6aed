"""Stepping environments with a policy, and recording the trajectories.

Nothing here imports TensorFlow or Keras: processes that only step environments
need only this package and `keras_rl2.envs`.
"""
