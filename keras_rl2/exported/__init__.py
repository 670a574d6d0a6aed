"""Exported policies: what a file says of itself, and how it is run.

Needs neither Keras nor TensorFlow, but for a SavedModel: what is here runs
where a policy is used, not where it was trained.
"""

from keras_rl2.exported.manifest import read_manifest
from keras_rl2.exported.policy_file import PolicyFile

__all__ = ["PolicyFile", "read_manifest"]
