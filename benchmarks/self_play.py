"""Tic-tac-toe and connect four learned by self-play.

    python benchmarks/self_play.py tic-tac-toe --seeds 5
    python benchmarks/self_play.py connect-four --seeds 3

trains an agent against itself alone, and then plays with its greedy policy
against others, which it has never met: a random player, and a perfect one
(tic-tac-toe) or a search of depth 4 (connect four). Half of the games are
played from either side. Of tic-tac-toe all lines are played, too: the greedy
policy against all replies there are. In these games, a forbidden move is an
error that ends the program.
"""

import argparse
import functools
import time

import keras
import numpy as np
from pettingzoo.classic import connect_four_v3
from pettingzoo.classic import tictactoe_v3

import keras_rl2 as rl

GAMES = {
    # Without the wrapper that lets a player lose who makes a forbidden move.
    "tic-tac-toe": tictactoe_v3.raw_env,
    "connect-four": connect_four_v3.raw_env,
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


def lost_lines(agent, own, other):
    """Returns how many ends of a game the greedy policy reaches and loses.

    Args:
        agent: `keras_rl2.Agent`. It is to move.
        own: frozenset. Its cells.
        other: frozenset. The cells of the other, who makes every move there is.
    """
    board = np.zeros((9, 2), np.int8)
    board[list(own), 0] = board[list(other), 1] = 1
    observation = {
        "observation": board.reshape(3, 3, 2),
        "action_mask": 1 - board.sum(1, dtype=np.int8),
    }
    own |= {int(agent.act(observation, deterministic=True))}
    if is_over(own, other):
        return 0
    lost = 0
    for cell in frozenset(range(9)) - own - other:
        after = other | {cell}
        if any(after.issuperset(line) for line in LINES):
            lost += 1
        elif not is_over(own, after):
            lost += lost_lines(agent, own, after)
    return lost


def is_over(own, other):
    """Returns whether a game has ended."""
    return len(own | other) == 9 or any(
        own.issuperset(line) or other.issuperset(line) for line in LINES
    )


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


def tic_tac_toe(games, seed, steps):
    """Returns agent, dataset and the steps from one past self to the next."""
    falling = keras.optimizers.schedules.PolynomialDecay
    # Chance moves reach positions that good opponents avoid.
    epsilon = falling(1.0, steps // 2, 0.25)
    agent = rl.DQN.for_env(games, hidden=(256, 256), epsilon=epsilon, seed=seed)
    # An update follows on every second step.
    agent.compile(
        keras.optimizers.Adam(
            falling(1e-3, steps // 2, 1e-5), use_ema=True, ema_momentum=0.999
        )
    )
    # It forgets the games against weak opponents.
    return agent, rl.ReplayDataset(games, capacity=100_000, seed=seed), 10_000


def connect_four(games, seed, steps):
    """Returns agent, dataset and the steps from one past self to the next."""

    keras.utils.set_random_seed(seed)
    # A window of 4 x 4 cells holds lines of four in all directions.
    board = keras.Input((ROWS, COLUMNS, 2), name="observation")
    x = keras.layers.Conv2D(64, 4, activation="relu")(board)
    x = keras.layers.Flatten()(x)
    x = keras.layers.Dense(128, activation="relu")(x)
    network = keras.Model(board, keras.layers.Dense(COLUMNS)(x))
    epsilon = keras.optimizers.schedules.PolynomialDecay(
        1.0, 2 * steps // 3, 0.05
    )
    agent = rl.PQN(network, epsilon=epsilon, seed=seed)
    agent.compile(keras.optimizers.Adam(5e-4))
    # Four times as many updates as by default.
    rollouts = rl.RolloutDataset(games, batch_size=64, seed=seed)
    return agent, rollouts, 20_000


MAKERS = {"tic-tac-toe": tic_tac_toe, "connect-four": connect_four}
STEPS = {"tic-tac-toe": 400_000, "connect-four": 2_000_000}


def trained(game, seed, steps):
    """Returns an agent after self-play, and its rating."""
    games = rl.envs.turn_based(GAMES[game], 64)
    agent, data, every_steps = MAKERS[game](games, seed, steps)
    league = rl.callbacks.League(every_steps, seed=seed)
    agent.fit(data, total_steps=steps, callbacks=[league], verbose=0)
    return agent, league.elo


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
    first, steps = arguments.first_seed, arguments.steps or STEPS[game]
    for seed in range(first, first + arguments.seeds):
        began = time.process_time()
        agent, elo = trained(game, seed, steps)
        seconds = time.process_time() - began
        others = {"random": (None, 1000)}
        if game == "tic-tac-toe":
            others["perfect"] = Perfect(seed), 500
        else:
            others["search of depth 4"] = Search(4, seed), 200
        texts = [f"seed {seed}, {steps:,} steps, {seconds:.0f} s of CPU"]
        texts.append(f"Elo {elo:.0f}")
        for name, (opponent, count) in others.items():
            shares = results(agent, game, opponent, count, seed)
            won, drawn, lost = (f"{share:.1%}" for share in shares)
            texts.append(
                f"{count} games against {name}: won {won}, drawn {drawn}, "
                f"lost {lost}"
            )
        if game == "tic-tac-toe":
            nothing = frozenset()
            starts = [nothing, *(frozenset([cell]) for cell in range(9))]
            lost = sum(lost_lines(agent, nothing, each) for each in starts)
            texts.append(f"of all lines lost: {lost}")
        print("; ".join(texts), flush=True)


if __name__ == "__main__":
    main()
