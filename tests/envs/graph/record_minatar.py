"""Records the games of the package `minatar`, which tests compare with.

PYTHONPATH=tests python tests/envs/graph/record_minatar.py breakout
"""

import argparse

from support import minatar_games

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("games", nargs="+", choices=[*minatar_games.IDS])
    for game in parser.parse_args().games:
        minatar_games.make_record(game)
