"""The command `keras-rl2`; `python -m keras_rl2.cli` is the same.

`parser.py` has the options of all commands. There is one file per command,
whose `run` is imported only when it is called. A `run` that finds a fault
returns 1.
"""
