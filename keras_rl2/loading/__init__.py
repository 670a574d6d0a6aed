"""Loading agents from files, and from the folders of checkpoints."""

from keras_rl2.loading.loader import load

__all__ = ["load"]
