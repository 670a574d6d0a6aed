"""Runs the command as `python -m keras_rl2.cli`."""

import sys

from keras_rl2.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
