"""Self-play against past selves."""

import functools
import signal

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.saving import plain_data
from support.checkpointed import fit_and_close
from support.team_games import Tag
from support.turn_games import Counting

masked = functools.partial(Counting, end=9, masked="observation")


def trained(game=masked, epochs=1, **settings):
    """Trains PPO against itself; returns league and agent, and the logs."""
    is_made = isinstance(game, rl.envs.TurnGames)
    games = game if is_made else rl.envs.turn_based(game, 4)
    league = rl.callbacks.League(**{"every_steps": 1, "seed": 0, **settings})
    agent = rl.PPO.for_env(games, hidden=(4,), seed=0)
    rollouts = rl.RolloutDataset(
        games, horizon=8, passes=1, batch_size=32, seed=0
    )
    logs = agent.fit(
        rollouts, epochs=epochs, callbacks=[league], verbose=0
    ).history
    return league, agent, logs


def recurrent(games):
    cell = keras.layers.GRUCell(4)
    return rl.PPO.for_env(games, hidden=(4,), memory=cell, seed=0)


def steps_of(league):
    """Returns the environment steps at which the past selves were kept."""
    return [each["step"] for each in league.get_state()["selves"]]


def test_past_selves_are_kept_at_intervals():
    # Rounds have 32 steps.
    league, _, logs = trained(every_steps=50, epochs=6)
    assert steps_of(league) == [0, 64, 128]
    assert logs["league_size"] == [1, 1, 2, 2, 3, 3]


def test_the_kept_ones_cover_the_whole_training():
    league, *_ = trained(keep=4, epochs=9)
    # 0 1 2 3 4 -> 0 2 3 4; 5 -> 0 2 4 5; 6 -> 0 2 4 6; 7 -> 0 2 4 7, since 6
    # is between 4 and 7; 8 -> 0 4 7 8, since 2 and 7 are each between others
    # 4 apart and 4 between two 5 apart.
    assert steps_of(league) == [0, 128, 224, 256]


def test_games_against_a_dropped_self_continue_against_the_present_one():
    # The one that is dropped next is the second of four.
    league, *_ = trained(keep=4, epochs=4)
    state = league.get_state()
    state["opponents"] = np.array([0, 1, 2, -1])
    league.set_state(state)
    league.on_train_batch_begin(0)
    assert steps_of(league) == [0, 64, 96, 128]
    assert league.get_state()["opponents"].tolist() == [0, -1, 1, -1]


def test_ratings_are_elos():
    league, *_ = trained(epochs=3)
    league.on_train_begin()
    state = league.get_state()
    state["elo"] = 1200.0
    state["selves"][1] |= {"elo": 1200.0, "score": 0.5}
    state["selves"][0]["score"] = 0.5
    state["opponents"] = np.array([1, 1, 0, -1])
    league.set_state(state)
    # Equal ratings: an expected score of a half, and 8 points for a game.
    league.begin(0, 1.0)
    assert league.elo == 1204.0
    one = league.get_state()["selves"][1]
    assert (one["elo"], one["score"]) == (1196.0, 0.5 + 0.05 * 0.5)
    # A draw: 8 * (1 / 2 - 1 / (1 + 10 ** (-8 / 400)))
    league.begin(1, 0.0)
    assert league.elo == pytest.approx(1204.0 - 0.0920847)
    # A loss to the first self, whose own rating stays.
    before = league.elo
    league.begin(2, -3.0)
    odds = 10 ** ((1000.0 - before) / 400)
    assert league.elo == pytest.approx(before - 8 / (1 + odds))
    assert league.get_state()["selves"][0]["elo"] == 1000.0
    assert league.get_state()["selves"][0]["score"] == 0.475
    # Games against the present self, and interrupted ones, do not count.
    before = league.elo
    league.begin(3, 1.0)
    league.begin(0, None)
    assert league.elo == before


def opponents(league, count=2000):
    """Returns how often each opponent is drawn, the present self last."""
    drawn = []
    for _ in range(count):
        league.begin(0, None)
        drawn.append(league.get_state()["opponents"][0])
    size = len(league.get_state()["selves"])
    return np.bincount(np.mod(drawn, size + 1), minlength=size + 1) / count


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        ("uniform", [1 / 6, 1 / 6, 1 / 6, 0.5]),
        # Half of 1/4, 1/2 and 1, of their sum
        ("recent", [0.071, 0.143, 0.286, 0.5]),
        # Scores of 0, 0.5 and 1: half of 1, 1/4 and 0, of their sum
        ("hard", [0.4, 0.1, 0.0, 0.5]),
        (lambda score: score / 2, [0.0, 0.25, 0.5, 0.25]),
    ],
)
def test_opponents_are_drawn_by_preferences(sample, expected):
    league, *_ = trained(epochs=3, sample=sample)
    state = league.get_state()
    for each, score in zip(state["selves"], (0.0, 0.5, 1.0), strict=True):
        each["score"] = score
    league.set_state(state)
    np.testing.assert_allclose(opponents(league), expected, atol=0.04)


def certain(action):
    """Returns weights with which an agent makes one move for certain."""
    bias = np.array([50.0, -50.0], np.float32)
    return [np.zeros((4, 2), np.float32), bias * (1 - 2 * action)]


def test_each_opponent_acts_with_its_own_weights():
    games = rl.envs.turn_based(Counting, 4)
    league, agent, _ = trained(games, epochs=2)
    state = league.get_state()
    for index, action in ((0, 1), (1, 0)):
        state["selves"][index]["weights"][""][-2:] = certain(action)
    state["opponents"] = np.array([1, 0, -1, 0])
    league.set_state(state)
    for variable, value in zip(
        agent.acting_variables[-2:], certain(1), strict=True
    ):
        variable.assign(value)
    league.on_train_batch_begin(0)
    games.moving = np.array([3, 0, 2])
    assert league.act(np.zeros((3, 2), np.float32)).tolist() == [1, 0, 1]


def test_each_game_has_the_memory_of_its_own_opponent():
    games = rl.envs.turn_based(functools.partial(Counting, players=3), 2)
    league = rl.callbacks.League(1, seed=0)
    rollouts = rl.RolloutDataset(games, horizon=8, seed=0)
    agent = recurrent(games)
    agent.fit(rollouts, epochs=2, callbacks=[league], verbose=0)
    for game in range(2):
        league.begin(game, None)
    start = plain_data.copied(league.get_state())
    assert start["actor"]["begins"].tolist() == [1.0] * 6
    start["opponents"] = np.array([0, 1])

    def memory_after(*calls):
        league.set_state(plain_data.copied(start))
        for moving in calls:
            games.moving = np.array(moving)
            league.act(np.ones((len(moving), 2), np.float32))
        return plain_data.copied(league.get_state()["actor"])

    # The second player of the first game, and the third of the second one.
    both = memory_after([2, 5])
    assert both["begins"].tolist() == [1.0, 1.0, 0.0, 1.0, 1.0, 0.0]
    np.testing.assert_equal(both, memory_after([5], [2]))
    # Once more in the second game alone.
    after = memory_after([2, 5], [5])
    changed = (after["state"][0] != both["state"][0]).any(-1)
    assert changed.tolist() == [False] * 5 + [True]


def plain(league):
    """Returns the state of a league, as a checkpoint holds it."""
    return plain_data.to_json(league.get_state())


def without_times(logs):
    """Returns logs without measured times."""
    return {k: each for k, each in logs.items() if "per_second" not in k}


def test_a_seed_repeats_a_training():
    (first, one, logs), (second, other, same) = (
        trained(epochs=4) for _ in range(2)
    )
    np.testing.assert_equal(*map(without_times, (logs, same)))
    for each, equal in zip(one.weights, other.weights, strict=True):
        np.testing.assert_array_equal(each, equal)
    np.testing.assert_equal(plain(first), plain(second))


def test_games_of_later_evaluations_do_not_count():
    league, agent, _ = trained(epochs=4)
    before = league.elo, plain(league)
    agent.evaluate(league._games, episodes=20)
    assert league.elo == before[0]


def test_other_environments_are_refused():
    agent = rl.A2C.for_env("CartPole-v1", hidden=(4,), seed=0)
    rollouts = rl.RolloutDataset("CartPole-v1", horizon=4, seed=0)
    with pytest.raises(ValueError, match=r"turn_based.*: CartPole-v1"):
        agent.fit(
            rollouts, epochs=1, callbacks=[rl.callbacks.League(9)], verbose=0
        )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"every_steps": 0}, "`every_steps`.*at least 1"),
        ({"keep": 1}, "`keep`.*at least 2"),
        ({"sample": "best"}, "'uniform' or 'recent' or 'hard'.*'best'"),
        ({"seed": -1}, "`seed`.*at least 0"),
    ],
)
def test_arguments_out_of_range_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        rl.callbacks.League(**{"every_steps": 1, **wrong})


def rolling(games):
    return rl.RolloutDataset(games, horizon=8, passes=1, seed=0)


def replaying(games):
    return rl.ReplayDataset(
        games, capacity=300, batch_size=8, warm_up=16, seed=0
    )


def dqn(games):
    return rl.DQN.for_env(games, hidden=(4,), seed=0)


@pytest.mark.parametrize(
    ("make", "data"), [(recurrent, rolling), (dqn, replaying)]
)
def test_a_resumed_training_is_that_of_an_uninterrupted_one(
    make, data, tmp_path
):
    def outcome(folder, *others):
        games = rl.envs.turn_based(masked, 3)
        league = rl.callbacks.League(16, keep=3, seed=0)
        callbacks = [league, *others]
        agent = make(games)
        agent.compile(jit_compile=False)
        result = fit_and_close(agent, data(games), folder, 6, callbacks)
        return result, plain(league)

    def end(epoch, logs):
        if epoch == 3:
            raise RuntimeError("the power is out")

    ending = keras.callbacks.LambdaCallback(on_epoch_end=end)
    with pytest.raises(RuntimeError, match="power"):
        outcome(tmp_path / "stopped", ending)
    resumed = outcome(tmp_path / "stopped")
    np.testing.assert_equal(resumed, outcome(tmp_path / "whole"))


class Watch(keras.callbacks.Callback):
    """Keeps the weights before each epoch, who learned, and who acted."""

    def __init__(self):
        super().__init__()
        self.past = {"red": [], "blue": []}
        self.epochs = []

    def on_epoch_begin(self, epoch, logs=None):
        for name, agent in self.model.members.items():
            weights = [v.numpy() for v in agent.policy.acting_variables]
            self.past[name].append(weights)

    def on_epoch_end(self, epoch, logs=None):
        data = self.model.rollouts
        acting = {
            name: [v.numpy() for v in source.actor.variables]
            for name, source in data.sources.items()
        }
        steps = {k: each.env_steps for k, each in self.model.members.items()}
        self.epochs.append(([*data.learning], acting, steps))


def team_of(members, memory=None, **settings):
    games = rl.envs.parallel(Tag, 2)
    small = {
        name: {"hidden": (4,)}
        for name, each in members.items()
        if isinstance(each, type)
    }
    small["red"] = {"hidden": (4,), "memory": memory}
    team = rl.Team.for_env(games, members, small, seed=0)
    return team, rl.TeamDataset(games, settings, seed=0)


def test_members_of_a_team_learn_against_past_selves_of_one():
    team, data = team_of(
        {"red": rl.PPO, "blue": rl.A2C},
        red={"horizon": 4, "passes": 1},
        blue={"horizon": 4},
    )
    league, watch = rl.callbacks.League(1, keep=40, seed=0), Watch()
    logs = team.fit(
        data, epochs=40, callbacks=[league, watch], verbose=0
    ).history
    assert "elo" not in logs
    assert logs["league_size"] == [*range(1, 41)]
    replaced, before = [], {"red": 0, "blue": 0}
    for epoch, (learning, acting, steps) in enumerate(watch.epochs):
        for name, weights in watch.past.items():
            learned = steps[name] > before[name]
            assert learned == (name in learning)
            if not learned:
                found = [
                    all(map(np.array_equal, acting[name], each))
                    for each in weights[: epoch + 1]
                ]
                replaced.append((name, found.index(True) / epoch))
        before = steps
        assert learning
    assert len(watch.epochs[0][0]) == 2
    # In half of 40 epochs, either of them, by any past self.
    assert 12 <= len(replaced) <= 28
    assert {name for name, _ in replaced} == {"red", "blue"}
    assert np.histogram([age for _, age in replaced], 2, (0, 1))[0].min() > 3


def test_a_stopped_training_of_a_team_goes_on_bit_for_bit(tmp_path):
    def outcome(folder, *others):
        team, data = team_of(
            {"red": rl.PPO, "blue": rl.DQN},
            keras.layers.GRUCell(4),
            red={"horizon": 8, "passes": 1, "rounds_per_epoch": 2},
            blue={"steps_per_round": 32, "warm_up": 32, "capacity": 100},
        )
        league = rl.callbacks.League(16, keep=3, seed=2)
        checkpoint = rl.callbacks.Checkpoint(folder, every_steps=1)
        callbacks = [league, *others, checkpoint]
        history = team.fit(data, epochs=6, callbacks=callbacks, verbose=0)
        weights = [v.numpy() for v in team.variables]
        logs = without_times(history.history)
        return (
            weights,
            plain_data.to_json(data.get_state()),
            plain(league),
            logs,
        )

    replaced = []

    def stop(batch, logs):
        # After the first of two rounds, with a past self for a member.
        if batch == 0 and len(ending.model.rollouts.learning) == 1:
            replaced.append(ending.model.rollouts.learning)
            if len(replaced) == 2:
                signal.raise_signal(signal.SIGINT)

    ending = keras.callbacks.LambdaCallback(on_train_batch_end=stop)
    with pytest.raises(KeyboardInterrupt):
        outcome(tmp_path / "stopped", ending)
    assert replaced
    resumed = outcome(tmp_path / "stopped")
    np.testing.assert_equal(resumed, outcome(tmp_path / "whole"))


def test_a_team_of_one_learner_is_refused():
    team, data = team_of({"red": rl.A2C, "blue": lambda seen: [0] * len(seen)})
    with pytest.raises(ValueError, match=r"two or more .*: \['red'\]"):
        team.fit(data, callbacks=[rl.callbacks.League(9)], verbose=0)


@pytest.mark.slow
def test_self_play_finds_the_winning_moves():
    """Who leaves 3 or 6 of 7 wins, whatever the other does."""
    game = functools.partial(Counting, end=7, masked="observation")
    games = rl.envs.turn_based(game, 16)
    agent = rl.DQN.for_env(games, hidden=(64, 64), seed=0)
    agent.compile(keras.optimizers.Adam(1e-3))
    league = rl.callbacks.League(1000, seed=0)
    # It forgets the games against weak opponents.
    replay = rl.ReplayDataset(games, capacity=5000, seed=0)
    agent.fit(replay, total_steps=15_000, callbacks=[league], verbose=0)
    count = np.array([0, 2, 3, 5, 6])
    for player in range(2):
        observation = {
            "observation": np.stack([count, np.full(5, player)], 1),
            "action_mask": np.stack([count < 7, count < 6], 1),
        }
        added = 1 + agent.act(observation, deterministic=True)
        np.testing.assert_array_equal((7 - count - added) % 3, 0)
    assert league.elo > 1050
