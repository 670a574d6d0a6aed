"""Loading agents from files of unknown origin.

    agent = keras_rl2.load("cartpole.keras")

A file is checked from outside to inside: `archive` is the zip and its seal,
`config` the classes to be made, `weights` the numbers, and `budget` keeps
variables from being larger than the numbers of the file.
"""

from keras_rl2.loading.loader import load

__all__ = ["load"]
