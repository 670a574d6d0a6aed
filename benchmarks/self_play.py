"""Tic-tac-toe and connect four learned by self-play.

    python benchmarks/self_play.py tic-tac-toe --seeds 5
    python benchmarks/self_play.py connect-four --seeds 3

trains an agent against itself alone, and then plays with its greedy policy
against others, which it has never met: a random player, and a perfect one
(tic-tac-toe) or a search of depth 4 (connect four). Each game is played from
both sides. A forbidden move would end the program.
"""

import argparse
import functools
import time

import numpy as np

import keras_rl2 as rl

GAMES = {
    "tic-tac-toe": "pettingzoo.classic:tictactoe_v3",
    "connect-four": "pettingzoo.classic:connect_four_v3",
}
ROWS, COLUMNS = 6, 7
# Bits of a column, one more than rows, so that lines do not wrap around.
HEIGHT = ROWS + 1
BOTTOM = sum(1 << HEIGHT * column for column in range(COLUMNS))
FULL = BOTTOM * ((1 << ROWS) - 1)
CENTRE_FIRST = (3, 2, 4, 1, 5, 0, 6)
LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8))
LINES += ((0, 4, 8), (2, 4, 6))


class Perfect:
    """Plays tic-tac-toe: a random one of the best moves."""

    def __init__(self, seed):
        self.generator = np.random.default_rng(seed)

    def __call__(self, observation):
        return [self.move(*split(each)) for each in observation["observation"]]

    def move(self, own, other):
        values = {
            cell: -value(other, own | {cell})
            for cell in range(9)
            if cell not in own | other
        }
        best = max(values.values())
        moves = [cell for cell, each in values.items() if each == best]
        return self.generator.choice(moves)


def split(board):
    """Returns the cells of both players."""
    flat = board.reshape(9, 2)
    return tuple(frozenset(np.flatnonzero(flat[:, i])) for i in range(2))


@functools.cache
def value(own, other):
    """Returns the value of a position for the player whose turn it is."""
    if any(other.issuperset(line) for line in LINES):
        return -1
    free = frozenset(range(9)) - own - other
    return max((-value(other, own | {cell}) for cell in free), default=0)


class Search:
    """Plays connect four: alpha-beta to a depth, and chance among equals.

    A position at the end of the search is worth what its open lines are: lines
    of four with three stones of one player and an empty cell.
    """

    def __init__(self, depth, seed):
        self.depth = depth
        self.generator = np.random.default_rng(seed)

    def __call__(self, observation):
        return [self.move(each) for each in observation["observation"]]

    def move(self, board):
        # [row from the top, column, player] -> bits from the bottom
        bits = np.zeros((2, COLUMNS, HEIGHT), np.int64)
        bits[:, :, :ROWS] = board[::-1].transpose(2, 1, 0)
        own, other = (
            int("".join(map(str, each.ravel()[::-1])), 2) for each in bits
        )
        values = {}
        for column in CENTRE_FIRST:
            stone = dropped(own | other, column)
            if stone:
                after = own | stone
                values[column] = (
                    1000 + self.depth
                    if wins(after)
                    else -self.value(other, after, self.depth - 1, -9999, 9999)
                )
        best = max(values.values())
        moves = [column for column, each in values.items() if each == best]
        return self.generator.choice(moves)

    def value(self, own, other, depth, low, high):
        """Returns the value for the player whose turn it is."""
        if own | other == FULL:
            return 0
        if not depth:
            return open_lines(own, other) - open_lines(other, own)
        for column in CENTRE_FIRST:
            stone = dropped(own | other, column)
            if not stone:
                continue
            after = own | stone
            if wins(after):
                # Sooner is better.
                return 1000 + depth
            found = -self.value(other, after, depth - 1, -high, -low)
            low = max(low, found)
            if low >= high:
                break
        return low


def dropped(taken, column):
    """Returns the bit of a stone in a column, 0 if that is full."""
    cells = ((1 << ROWS) - 1) << HEIGHT * column
    return (taken + (1 << HEIGHT * column)) & cells & ~taken


def wins(stones):
    """Returns whether there are four in a row."""
    for step in (1, HEIGHT - 1, HEIGHT, HEIGHT + 1):
        pairs = stones & stones >> step
        if pairs & pairs >> 2 * step:
            return True
    return False


def open_lines(own, other):
    """Returns the number of lines with three stones and an empty cell."""
    empty = FULL & ~(own | other)
    count = 0
    for step in (1, HEIGHT - 1, HEIGHT, HEIGHT + 1):
        for gap in range(4):
            line = FULL
            for cell in range(4):
                line &= (empty if cell == gap else own) >> cell * step
            count += line.bit_count()
    return count


SETTINGS = {
    "tic-tac-toe": {
        "total_steps": 300_000,
        "every_steps": 10_000,
        "num_envs": 64,
        "horizon": 32,
        "agent": {"hidden": (128, 128), "entropy_coefficient": 0.02},
    },
    "connect-four": {
        "total_steps": 1_000_000,
        "every_steps": 25_000,
        "num_envs": 64,
        "horizon": 64,
        "agent": {"hidden": (256, 256), "entropy_coefficient": 0.01},
    },
}


def trained(game, seed, settings):
    """Returns an agent after self-play, and the logs."""
    games = rl.envs.turn_based(GAMES[game], settings["num_envs"])
    rollouts = rl.RolloutDataset(games, horizon=settings["horizon"], seed=seed)
    agent = rl.PPO.for_env(games, seed=seed, **settings["agent"])
    league = rl.callbacks.League(settings["every_steps"], seed=seed)
    history = agent.fit(
        rollouts,
        total_steps=settings["total_steps"],
        callbacks=[league],
        verbose=0,
    )
    return agent, history.history


def results(agent, game, opponent, count, seed):
    """Returns shares of games won, drawn and lost, half of each side."""
    won = lost = 0
    for side in rl.envs.turn_based(GAMES[game]).sides:
        games = rl.envs.turn_based(
            GAMES[game], 50, opponent=opponent, side=side
        )
        episodes = rl.EvaluationDataset(games, count // 2, seed=seed)
        outcome = episodes.play(agent)
        # Returns are 1, 0 and -1: their squares count the games not drawn.
        mean, std = outcome["episode_return"], outcome["episode_return_std"]
        decided = std**2 + mean**2
        won += (decided + mean) / 4
        lost += (decided - mean) / 4
    return won, 1 - won - lost, lost


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("game", choices=GAMES)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--steps", type=int)
    arguments = parser.parse_args()
    game = arguments.game
    settings = dict(SETTINGS[game])
    if arguments.steps:
        settings["total_steps"] = arguments.steps
    first = arguments.first_seed
    for seed in range(first, first + arguments.seeds):
        began = time.process_time()
        agent, logs = trained(game, seed, settings)
        seconds = time.process_time() - began
        if game == "tic-tac-toe":
            others = {"random": (None, 1000), "perfect": (Perfect(seed), 500)}
        else:
            others = {"random": (None, 500), "search": (Search(4, seed), 200)}
        shares = {
            name: results(agent, game, opponent, count, seed)
            for name, (opponent, count) in others.items()
        }
        text = "; ".join(
            f"against {name}: won {won:.1%}, drawn {drawn:.1%}, lost {lost:.1%}"
            for name, (won, drawn, lost) in shares.items()
        )
        print(f"seed {seed}: {text}; {seconds:.0f} s of CPU", flush=True)
        print(f"  elo {logs['elo'][-1]:.0f}", flush=True)


if __name__ == "__main__":
    main()
