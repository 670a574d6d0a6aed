"""Processes that step environments for a dataset.

Nothing here imports TensorFlow or Keras, neither in a worker nor in the
process that it works for.
"""
