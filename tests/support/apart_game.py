"""A module of a game, as PettingZoo has them: `support:apart_game`."""

from support.players import Apart


def parallel_env(comes=(0, 0, 1), render_mode=None):
    game = Apart(comes)
    game.render_mode = render_mode
    return game
