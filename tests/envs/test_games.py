"""Games of several players: rows, observations, masks, names, videos."""

import warnings

import gymnasium
import numpy as np
import pytest
from PIL import Image

import keras_rl2 as rl
from keras_rl2.cli.main import main
from support.agents import weights_of
from support.datasets import state_of
from support.errors import raises
from support.one_player import OnePlayer
from support.players import ACTION
from support.players import NAMES
from support.players import OBSERVATION
from support.players import Apart
from support.turn_games import Counting

GAME = "support:apart_game"
NO_ACTION = np.zeros(3, np.int64)


def adapter(make=Apart, num_envs=1, **settings):
    return rl.envs.as_vector_env(rl.envs.parallel(make, num_envs, **settings))


def test_rows_are_of_one_player_after_the_other():
    games = rl.envs.parallel(Apart, 2)
    assert games.rows(["p_2", "p_0"]).tolist() == [4, 5, 0, 1]
    env = rl.envs.as_vector_env(games)
    assert env.players == ("p_0", "p_0", "p_1", "p_1", "p_2", "p_2")
    assert env.observation_space == OBSERVATION
    assert env.action_space == ACTION
    assert env.name == "apart"


def test_each_game_is_seeded_with_its_index():
    games = rl.envs.parallel(Apart, 2)
    games.reset(seed=7)
    assert [each.seeds[-1] for each in games.envs] == [7, 8]


def test_players_come_and_go():
    env = adapter()
    np.testing.assert_array_equal(
        env.reset(seed=0), [[0, 0], [1, 0], [0, 0]], "player 2 is not there yet"
    )
    waiting = [env.pending_reset]
    rewards = []
    for _ in range(5):
        observation, reward, terminated, truncated, final = env.step(NO_ACTION)
        rewards.append(reward)
        waiting.append(env.pending_reset)
    np.testing.assert_array_equal(
        waiting,
        [
            [False, False, True],
            [False, False, False],
            [True, False, False],
            [True, False, False],
            [True, False, True],
            # The next game.
            [False, False, True],
        ],
    )
    np.testing.assert_array_equal(
        rewards, [[1, 2, 0], [1, 2, 3], [0, 2, 3], [0, 2, 3], [0, 2, 0]]
    )
    assert terminated.tolist() == [False, False, False]
    assert truncated.tolist() == [False, True, False]
    np.testing.assert_array_equal(final[1], [1, 5])
    np.testing.assert_array_equal(observation, [[0, 0], [1, 0], [0, 0]])


class LeavesWithoutAWord(Apart):
    """No flag says that a player is out."""

    def step(self, actions):
        observations, rewards, *_, infos = super().step(actions)
        flags = dict.fromkeys(rewards, False)
        return observations, rewards, flags, flags, infos


def test_a_player_who_leaves_without_a_flag_has_ended():
    env = adapter(lambda: LeavesWithoutAWord(comes=(0, 0, 0)))
    env.reset()
    ends = [env.step(NO_ACTION)[2:4] for _ in range(5)]
    # The last one is not known to have died.
    assert [e[0].tolist() for e in ends[1::3]] == [
        [True, False, False],
        [False, False, False],
    ]
    assert ends[2][0].tolist() == [False, False, True]
    assert ends[4][1].tolist() == [False, True, False]


def test_the_next_game_begins_though_agents_lists_those_who_ended():
    env = adapter(OnePlayerWhoStays)
    env.reset(seed=0)
    for _ in range(60):
        *_, terminated, _, final = env.step(np.zeros(1, np.int64))
        if terminated.any():
            break
    assert final is not None
    assert env.pending_reset.tolist() == [False]
    assert env.env.envs[0].env.unwrapped.steps_beyond_terminated is None


class OnePlayerWhoStays(OnePlayer):
    def step(self, actions):
        outcome = super().step(actions)
        self.agents = ["only"]
        return outcome


class ReusesItsArray(Apart):
    """It writes all observations of a player to one array."""

    def observe(self, players):
        if not hasattr(self, "arrays"):
            self.arrays = {n: np.zeros(2, np.float32) for n in NAMES}
        for name, seen in super().observe(players).items():
            self.arrays[name][:] = seen
        return {name: self.arrays[name] for name in NAMES if name in players}


def test_the_last_observation_outlives_a_reset_to_the_same_array():
    env = adapter(ReusesItsArray)
    env.reset()
    for _ in range(5):
        *_, final = env.step(NO_ACTION)
    np.testing.assert_array_equal(final[1], [1, 5])


def test_what_observations_may_include():
    env = adapter(include=["state", "player"])
    assert [*env.observation_space] == ["observation", "player", "state"]
    observation = env.reset()
    assert observation["player"].tolist() == [0, 1, 0]
    env.step(NO_ACTION)
    observation = env.step(NO_ACTION)[0]
    assert observation["player"].tolist() == [0, 1, 2]
    assert observation["state"].tolist() == [[2.0], [2.0], [2.0]]
    np.testing.assert_array_equal(observation["observation"][1], [1, 2])


def test_masks_in_infos_become_a_part_of_observations():
    make = lambda: Apart(comes=(0, 0, 0), include_mask=True)  # noqa: E731
    env = adapter(make)
    assert env.reset()["action_mask"].tolist() == [[1, 0], [1, 0], [1, 0]]
    seen = env.step(NO_ACTION)[0]
    assert seen["action_mask"].tolist() == [[1, 1], [1, 1], [1, 1]]
    agent = rl.PPO.for_env(env, hidden=(8,), seed=0)
    rollouts = rl.RolloutDataset(env, horizon=16, seed=0)
    rollouts.bind(agent)
    trajectory = rollouts.collect()
    allowed = trajectory.observation["action_mask"][:-1]
    chosen = np.take_along_axis(allowed, trajectory.action[..., None], axis=-1)
    assert chosen[trajectory.valid].all()


def test_groups_name_the_rows_of_their_players():
    env = adapter(groups={"pair": ["p_0", "p_2"]})
    assert env.players == ("pair", "p_1", "pair")
    games = env.env
    assert games.players_of("pair") == ("p_0", "p_2")
    assert games.players_of("p") == NAMES
    with raises("a group or a player", "'x'"):
        games.players_of("x")


def test_wrong_arguments_are_named():
    with raises("include", "colour"):
        rl.envs.parallel(Apart, include=["colour"])
    with raises("groups", "p_9"):
        rl.envs.parallel(Apart, groups={"a": ["p_9"]})
    with raises("num_envs", "0"):
        rl.envs.parallel(Apart, 0)
    with raises("one group at most", "p_0"):
        rl.envs.parallel(Apart, groups={"a": ["p_0"], "b": ["p_0", "p_1"]})
    with raises("the name of a player", "p_2"):
        rl.envs.parallel(Apart, groups={"p_2": ["p_0", "p_1"]})
    with raises("a function that makes it", "Apart"):
        rl.envs.parallel(Apart())
    with raises("parallel interface", "Counting"):
        rl.envs.parallel(Counting)
    with raises("AEC interface", "apart"):
        rl.envs.turn_based(Apart)


class Nameless:
    """A game that Python itself describes, by another address each time."""

    def __init__(self):
        self.game = Apart()

    def __getattr__(self, name):
        return getattr(self.game, name)


def test_a_game_without_a_name_has_that_of_its_class():
    assert str(rl.envs.parallel(Nameless)) == "Nameless"


def test_players_who_come_later_have_the_mask_of_those_who_act_alike():
    games = rl.envs.parallel(lambda: Apart(include_mask=True))
    assert all(
        "action_mask" in seen.spaces for seen, _ in games.spaces.values()
    )


class Unlike(Apart):
    """Player 1 has another space."""

    def action_space(self, player):
        return gymnasium.spaces.Discrete(2 + (player == "p_1"))


def test_players_of_different_spaces_share_no_policy():
    with raises("the same spaces", "p_1"):
        rl.PPO.for_env(rl.envs.parallel(Unlike))


def test_an_error_names_the_rows_of_the_game_that_raised_it():
    class Fails(Apart):
        def step(self, actions):
            raise RuntimeError("broken")

    games = rl.envs.Games([Apart(), Fails()])
    env = rl.envs.as_vector_env(games)
    env.reset()
    with pytest.raises(RuntimeError) as caught:
        env.step(np.zeros(6, np.int64))
    assert caught.value.__notes__ == [
        "In step 1 of environment 1, 3, 5 of apart."
    ]


@pytest.mark.parametrize(
    ("kind", "dataset", "settings"),
    [
        (rl.PPO, rl.RolloutDataset, {"horizon": 128}),
        (rl.DQN, rl.ReplayDataset, {"warm_up": 64}),
    ],
)
def test_one_player_is_trained_as_a_single_environment(kind, dataset, settings):
    weights = []
    for env in (gymnasium.make("CartPole-v1"), rl.envs.parallel(OnePlayer)):
        agent = kind.for_env(env, hidden=(8,), seed=0)
        data = dataset(env, seed=0, **settings)
        agent.fit(data, total_steps=256, verbose=0)
        assert not [key for key in data.logs() if "/" in key]
        weights.append(weights_of(agent))
    for single, game in zip(*weights, strict=True):
        np.testing.assert_array_equal(single, game)


def test_games_that_save_their_state_go_on_from_it():
    def data():
        rollouts = rl.RolloutDataset(adapter(num_envs=2), horizon=7, seed=0)
        agent = rl.PPO.for_env(rollouts.env, hidden=(8,), seed=0)
        rollouts.bind(agent)
        return rollouts

    one, other = data(), data()
    one.collect()
    other.set_state(state_of(one))
    first, second = one.collect(), other.collect()
    for name, array in first.arrays().items():
        np.testing.assert_array_equal(array, second.arrays()[name], name)
    assert one.logs() == other.logs()


def test_a_name_of_a_game_makes_games():
    rollouts = rl.RolloutDataset(
        GAME, num_envs=2, env_kwargs={"comes": (0, 0, 0)}, seed=0
    )
    assert rollouts.env.num_envs == 6
    assert rollouts.env.env.envs[0].comes.tolist() == [0, 0, 0]
    agent = rl.PPO.for_env(GAME, hidden=(8,))
    assert agent.evaluate(GAME, episodes=3)["episode_return/p_1"] == 10.0
    wrapped = rl.envs.make_env(GAME, wrappers=[lambda env: Renamed(env)])
    assert str(wrapped) == "renamed"
    with raises("`env_kwargs` that support:apart_game takes", "colour"):
        rl.envs.make_env(GAME, env_kwargs={"colour": 1})
    with raises("the function `parallel_env`", "support:players"):
        rl.envs.parallel("support:players")


class Renamed(Apart):
    def __init__(self, env):
        super().__init__(env.comes)

    def __str__(self):
        return "renamed"


def test_a_video_shows_one_game_of_all_players(tmp_path):
    agent = rl.PPO.for_env(GAME, hidden=(8,), seed=0)
    data = rl.RolloutDataset(GAME, horizon=16, seed=0)
    video = rl.callbacks.RecordVideo(
        lambda: rl.envs.make_env(GAME, render_mode="rgb_array"),
        tmp_path,
        every=16,
    )
    agent.fit(data, epochs=1, verbose=0, callbacks=[video])
    (path,) = tmp_path.iterdir()
    with Image.open(path) as pictures:
        # Of 5 steps, the picture after the last is the one before it, and not
        # one of the next game: Pillow merges the two.
        assert pictures.n_frames == 5
        pictures.seek(4)
        assert np.asarray(pictures.convert("RGB")).max() > 20


@pytest.mark.slow
def test_the_command_line_trains_and_evaluates_games(tmp_path, capsys):
    steps = ["--steps", "400", "--envs", "2", "--evaluate", "200"]
    folder = ["--logdir", str(tmp_path)]
    main(["train", "ppo", GAME, *steps, *folder])
    (run,) = tmp_path.glob("*/seed-0")
    main(["evaluate", str(run), "--episodes", "4"])
    assert "p_0 2.0, p_1 10.0, p_2 9.0" in capsys.readouterr().out
    main(["record", str(run), "--output", str(tmp_path / "game.gif")])
    assert "6 frames, return 7.0" in capsys.readouterr().out
    main(["doctor", GAME])
    # It makes two games again, not as many as there are rows.
    main(["train", "ppo", GAME, "--resume", "--steps", "800", *folder])
    assert "2 environments" in capsys.readouterr().out


def test_tags_of_tensorboard_stand_beside_the_mean():
    from keras_rl2.callbacks.tracker import _tag

    assert _tag("episode_return/red") == "rollout/ep_rew_mean/red"
    assert _tag("val_episode_return/red") == "eval/mean_reward/red"


def test_vectors_of_supersuit_are_taken_as_their_games():
    pytest.importorskip("supersuit")
    from support.players import of_supersuit

    vector = of_supersuit()
    env = rl.envs.as_vector_env(vector)
    assert rl.envs.as_vector_env(vector) is env
    assert env.num_envs == 6
    single = vector.vec_envs[0]
    assert rl.envs.as_vector_env(single).num_envs == 3


def test_vectors_of_supersuit_in_processes_are_refused():
    class ProcConcatVec(gymnasium.vector.VectorEnv):
        num_envs = 2
        metadata = {}
        observation_space = single_observation_space = OBSERVATION
        action_space = single_action_space = ACTION

    with raises("num_cpus=0", "None"):
        rl.envs.as_vector_env(ProcConcatVec())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spread", "tag"])
def test_games_of_mpe2(name):
    pytest.importorskip("mpe2")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        games = rl.envs.parallel(f"mpe2:simple_{name}_v3", 2)
    if name == "tag":
        with raises("the same spaces", "adversary_0"):
            rl.PPO.for_env(games)
        return
    agent = rl.PPO.for_env(games, hidden=(8,), seed=0)
    data = rl.RolloutDataset(games, horizon=50, seed=0)
    agent.fit(data, epochs=1, verbose=0)
    assert agent.env_steps == 2 * 3 * 50
    assert data.logs()["episode_length"] == 25.0


@pytest.mark.slow
def test_games_of_pettingzoo_that_kill_their_players():
    pytest.importorskip("pymunk")
    conversions = pytest.importorskip("pettingzoo.utils.conversions")
    from pettingzoo.butterfly import knights_archers_zombies_v11 as knights

    counts = []
    for make in (
        knights.parallel_env,
        lambda: conversions.aec_to_parallel(knights.env()),
    ):
        games = rl.envs.parallel(make)
        agent = rl.PPO.for_env(games, hidden=(8,), seed=0)
        data = rl.RolloutDataset(games, horizon=400, seed=0)
        data.bind(agent)
        trajectory = data.collect()
        counts.append(trajectory.valid.sum())
        # A player who is out of the game does not see it any more.
        out = ~trajectory.valid[1:] & ~trajectory.valid[:-1]
        assert out.any()
    assert counts[0] == counts[1] < 4 * 400
