"""The one home of the version number.

Example:

>>> import keras_rl2
>>> keras_rl2.__version__ == __version__
True
"""

__version__ = "0.2.0"
