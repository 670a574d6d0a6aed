"""The command `keras-rl2`; `python -m keras_rl2.cli` is the same.

One file per command: `add_arguments` says what it takes and `run` does it.
Nothing heavy is imported before `run`, so that `--help` comes at once.
"""
