"""Loading agents from files of unknown origin.

    agent = keras_rl2.load("cartpole.keras")

A file is looked at from outside to inside, and nothing is taken for granted
that has not been looked at: `archive` is the zip and its seal, `config` what
is to be made, `weights` the numbers, and `budget` sees to it that nothing is
made that the numbers are not for.
"""

from keras_rl2.loading.loader import load

__all__ = ["load"]
