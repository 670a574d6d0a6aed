"""Players who alternate: transitions that were counted by hand."""

import functools

import gymnasium
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.envs import as_vector_env
from keras_rl2.envs import env_state
from support.turn_games import Counting


def ones(observation):
    """Adds 1 always."""
    return np.zeros(len(observation), np.int64)


def adapted(game, num_envs=1, **settings):
    """Returns an adapter of games against those who add 1."""
    settings = {"opponent": ones, **settings}
    return as_vector_env(rl.envs.turn_based(game, num_envs, **settings))


def played(env, *actions):
    """Resets, and returns the counts seen and the outcome of each step."""
    told = [float(env.reset(seed=0)[0, 0])]
    for action in actions:
        observation, reward, terminated, truncated, last = env.step(
            np.array([action])
        )
        assert not truncated.any()
        told.append(
            (
                float(observation[0, 0]),
                float(reward[0]),
                bool(terminated[0]),
                None if last is None else float(last[0, 0]),
            )
        )
    return told


def test_a_step_lasts_from_the_learners_turn_to_its_next_one():
    env = adapted(Counting, side="player_0")
    # It adds 1 and gains 1, the other adds 1: 1 - 1; then 2 and wins.
    assert played(env, 0, 1) == [0, (2, 0, False, None), (0, 12, True, 4)]


def test_an_opponents_move_ends_the_learners_episode():
    env = adapted(Counting, side="player_0")
    # The other wins: 1 - 1 - 10.
    assert played(env, 0, 0) == [0, (2, 0, False, None), (0, -10, True, 4)]


def test_the_learner_may_be_second():
    env = adapted(Counting, side="player_1")
    # The next game begins with the other's move, whose reward does not count.
    assert played(env, 0, 0) == [1, (3, 0, False, None), (1, 11, True, 4)]


def test_three_players_alternate():
    env = adapted(functools.partial(Counting, players=3), side="player_0")
    # 1 - 1 - 1, and then it wins.
    assert played(env, 0, 0) == [0, (3, -1, False, None), (0, 11, True, 4)]


def test_the_learners_death_begins_the_next_game():
    game = functools.partial(Counting, end=9, players=3, deadly=1)
    assert played(adapted(game, side="player_0"), 0) == [0, (0, 1, True, 1)]


def test_a_game_goes_on_after_an_opponents_death():
    game = functools.partial(Counting, end=5, players=3, deadly=1)
    env = adapted(game, side="player_1")
    # The first is out. 1 - 1, and then it adds 2 and wins against the third.
    assert played(env, 0, 1) == [1, (3, 0, False, None), (1, 12, True, 5)]


def test_a_time_limit_truncates():
    env = adapted(functools.partial(Counting, limit=2), side="player_0")
    env.reset(seed=0)
    observation, reward, *ends, last = env.step(np.zeros(1))
    assert [reward[0], *np.ravel(ends)] == [0.0, False, True]
    assert (observation[0, 0], last[0, 0]) == (0.0, 2.0)


def test_opponents_are_told_of_returns():
    class Told:
        heard = []

        def act(self, observation):
            return ones(observation)

        def begin(self, game, episode_return):
            self.heard.append((game, episode_return))

    env = adapted(Counting, 2, side="player_0", opponent=Told())
    env.reset(seed=0)
    for _ in range(2):
        # The first wins 1 - 1 + 2 + 10, the second loses 1 - 1 - 10.
        env.step(np.array([0, 0]))
        env.step(np.array([1, 0]))
    env.reset()
    ends = [(0, 12.0), (1, -10.0)]
    begins = [(0, None), (1, None)]
    assert Told.heard == [*begins, *ends, *ends, *begins]


def test_a_game_without_a_move_of_the_learner_is_no_step():
    env = adapted(functools.partial(Counting, end=1))
    assert played(env, 0, 0) == [0, (0, 11, True, 1), (0, 11, True, 1)]


def test_sides_are_drawn_for_each_game():
    env = adapted(functools.partial(Counting, end=2), num_envs=100)
    env.reset(seed=0)
    observation = env.step(np.zeros(100))[0]
    # Who begins sees a count of 0, and who is second one of 1.
    assert 35 < observation[:, 0].sum() < 65
    np.testing.assert_array_equal(*observation.T)


def test_opponents_of_several_games_move_at_once():
    calls = []

    def opponent(observation):
        calls.append(observation.tolist())
        return ones(observation)

    env = adapted(Counting, 3, side="player_0", opponent=opponent)
    env.reset(seed=0)
    env.step(np.array([0, 1, 0]))
    assert calls == [[[1, 1], [2, 1], [1, 1]]]


@pytest.mark.parametrize("masked", ["observation", "info"])
def test_random_opponents_make_allowed_moves_alone(masked):
    # The game raises an error at a forbidden move.
    env = adapted(
        functools.partial(Counting, end=5, masked=masked), 8, opponent=None
    )
    observation = env.reset(seed=0)
    counts = []
    for _ in range(30):
        assert observation["action_mask"].dtype == np.int8
        action = observation["action_mask"].argmin(1) * 0
        observation, *_ = env.step(action)
        counts += observation["observation"][:, 0].tolist()
    assert set(counts) == {0, 1, 2, 3, 4}


def test_an_agent_may_be_the_opponent():
    agent = rl.PPO.for_env(rl.envs.turn_based(Counting), hidden=(4,), seed=0)
    env = adapted(Counting, 2, opponent=agent)
    env.reset(seed=0)
    env.step(np.zeros(2))
    assert agent.evaluate(env, episodes=4)["episode_length"] >= 1


def test_the_player_may_be_included():
    env = adapted(Counting, side="player_1", include=["player"])
    observation = env.reset(seed=0)
    assert observation["player"].tolist() == [1]
    assert observation["observation"].tolist() == [[1, 1]]


def test_a_fault_names_its_game():
    class Faulty(Counting):
        def _add(self, agent, amount):
            raise RuntimeError("the board fell down")

    games = [Counting, Faulty]
    env = adapted(lambda: games.pop(0)(), 2, side="player_0")
    env.reset(seed=0)
    with pytest.raises(RuntimeError, match="fell down") as caught:
        env.step(np.zeros(2))
    assert caught.value.__notes__ == ["In step 1 of environment 1 of Counting."]


def test_players_need_the_same_spaces():
    class Unequal(Counting):
        def action_space(self, agent):
            return gymnasium.spaces.Discrete(2 + (agent == "player_1"))

    with pytest.raises(ValueError, match="same spaces of all players"):
        rl.envs.turn_based(Unequal)


def test_sides_are_players():
    with pytest.raises(ValueError, match=r"'player_0' or 'player_1'.*'red'"):
        rl.envs.turn_based(Counting, side="red")


@pytest.mark.parametrize(
    "name",
    [
        "Counting",
        "pettingzoo.classic:tictactoe_v3",
        "pettingzoo.classic:connect_four_v3",
    ],
)
def test_games_go_on_from_a_state(name):
    if name == "Counting":
        make = functools.partial(Counting, end=9, masked="info")
    else:
        pytest.importorskip(name.replace(":", "."))
        make = name

    def play(env, observation, steps):
        outcomes = []
        for _ in range(steps):
            action = observation["action_mask"].argmax(1)
            observation, *rest = env.step(action)
            outcomes.append([observation, *rest])
        return observation, outcomes

    env, other = (adapted(make, 3, opponent=None) for _ in range(2))
    observation, _ = play(env, env.reset(seed=0), 7)
    state = env_state.read(env)
    assert not [*env_state.refusals(state)]
    env_state.write(other, state)
    expected = play(env, observation, 20)
    np.testing.assert_equal(play(other, observation, 20), expected)


NAME = "support:turn_games"


def test_a_name_of_a_game_in_turns_makes_games_with_random_opponents():
    agent = rl.DQN.for_env(NAME, hidden=(4,), seed=0)
    replay = rl.ReplayDataset(NAME, num_envs=3, env_kwargs={"end": 6}, seed=0)
    games = replay.env.env
    assert isinstance(games, rl.envs.TurnGames)
    assert [game.end for game in games.envs] == [6, 6, 6]
    assert games.opponent is None
    results = agent.evaluate(NAME, episodes=4, seed=0)
    # Of 4 moves at most, half are those of the learner.
    assert 1 <= results["episode_length"] <= 2
    wrapped = rl.envs.make_env(NAME, wrappers=[lambda game: Counting(end=5)])
    assert wrapped.envs[0].end == 5


def test_a_name_of_a_game_whose_players_act_together_has_no_turns(monkeypatch):
    monkeypatch.setattr(
        Counting, "metadata", {"is_parallelizable": True}, raising=False
    )
    with pytest.raises(ValueError, match="the function `parallel_env`"):
        rl.DQN.for_env(NAME)
