"""The command `keras-rl2`; `python -m keras_rl2.cli` is the same.

One file per command: `add_arguments` adds its arguments, and `run` runs it.
Nothing heavy is imported before `run`, so that `--help` comes at once.
"""
