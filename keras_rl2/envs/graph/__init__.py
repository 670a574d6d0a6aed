"""Environments of pure functions, which run within a graph of TensorFlow.

They know `keras.ops` and nothing else. `keras_rl2.envs.GraphVectorEnv` runs
many of them at once.
"""
