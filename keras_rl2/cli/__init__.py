"""The command `keras-rl2`; `python -m keras_rl2.cli` is the same.

One file per command: `add_arguments` adds its arguments, and `run` runs it.
Large packages are only imported in `run`, so that `--help` is fast.
"""
