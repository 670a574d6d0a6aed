"""Environments that are given their state back do the same again."""

import copy
import functools

import gymnasium
import numpy as np
import pytest
from gymnasium import wrappers
from gymnasium.vector import AutoresetMode
from gymnasium.vector import SyncVectorEnv

import keras_rl2 as rl
from keras_rl2.envs import as_vector_env
from keras_rl2.envs import env_state
from keras_rl2.envs.making import FirstOfVectorEnv
from keras_rl2.envs.players_env import PlayersEnv
from keras_rl2.saving import plain_data
from support.failing_envs import in_processes
from support.kept_envs import Player
from support.kept_envs import Walk
from support.taxi import TAXI
from support.team_games import Tag

pendulum = functools.partial(gymnasium.make, "Pendulum-v1", max_episode_steps=9)


def play(env, steps=30):
    """Takes a fixed series of steps, and returns their results."""
    space = copy.deepcopy(env.action_space)
    space.seed(1)
    given = []
    for _ in range(steps):
        action = np.stack([space.sample() for _ in range(env.num_envs)])
        given.append(copy.deepcopy(env.step(action)))
    return given


def assert_goes_on(make, steps=4):
    """Asserts that another one goes on where one was."""
    env = as_vector_env(make())
    env.reset(seed=3)
    play(env, steps)
    state, adapter = env_state.read(env), env.get_state()
    expected = play(env)
    # As it is written to a file.
    state = plain_data.from_json(*plain_data.to_json(state))
    # It can be given more than once.
    for other in (as_vector_env(make()), env):
        other.set_state(adapter)
        env_state.write(other, state)
        np.testing.assert_equal(play(other), expected)


@pytest.mark.parametrize(
    "env_id",
    [
        "Acrobot-v1",
        "CartPole-v1",
        "MountainCar-v0",
        "MountainCarContinuous-v0",
        "Pendulum-v1",
    ],
)
def test_classic_control(env_id):
    assert_goes_on(functools.partial(gymnasium.make, env_id), 20)


def test_a_native_vector_environment():
    make = functools.partial(gymnasium.make_vec, "CartPole-v1", num_envs=3)
    assert_goes_on(make, 20)


def test_the_first_of_a_native_vector_environment():
    """An id with wrappers is made so, to be the same as without them."""
    make = functools.partial(
        rl.envs.make_env,
        "CartPole-v1",
        wrappers=[wrappers.TimeAwareObservation],
    )
    assert_goes_on(make, 20)


def everything():
    """Makes an environment in many wrappers."""
    env = wrappers.RecordEpisodeStatistics(wrappers.ClipAction(pendulum()))
    env = wrappers.StickyAction(wrappers.TimeAwareObservation(env), 0.5)
    env = wrappers.NormalizeObservation(wrappers.FrameStackObservation(env, 3))
    return wrappers.NormalizeReward(env)


# 9 steps are just after the end of an episode.
@pytest.mark.parametrize("steps", [0, 4, 9])
def test_wrappers(steps):
    assert_goes_on(everything, steps)


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("steps", [4, 9])
def test_several_environments(mode, steps):
    make = functools.partial(SyncVectorEnv, [pendulum] * 3, autoreset_mode=mode)
    assert_goes_on(make, steps)


def test_wrappers_of_several():
    def make():
        env = wrappers.vector.RecordEpisodeStatistics(
            SyncVectorEnv([pendulum] * 2)
        )
        env = wrappers.vector.NormalizeObservation(env)
        return wrappers.vector.NormalizeReward(env)

    assert_goes_on(make, 9)


@pytest.mark.slow
@pytest.mark.parametrize("env_id", ["Ant-v5", "Humanoid-v5", "Reacher-v5"])
def test_mujoco(env_id):
    pytest.importorskip("mujoco")
    assert_goes_on(functools.partial(gymnasium.make, env_id), 20)


@pytest.mark.slow
def test_atari():
    gymnasium.register_envs(pytest.importorskip("ale_py"))
    # For Gymnasium's preprocessing.
    pytest.importorskip("cv2")
    make = functools.partial(gymnasium.make, "ALE/Breakout-v5", frameskip=1)

    def preprocessed():
        return wrappers.AtariPreprocessing(make(repeat_action_probability=0.0))

    assert_goes_on(preprocessed, 20)
    assert "repeat_action_probability=0" in refusal(make())


def test_an_environment_with_its_own_state_methods_resumes():
    assert_goes_on(lambda: wrappers.TimeLimit(Walk(), 7), 8)


def test_a_wrapper_answers_for_all_within_it():
    class Keeps(gymnasium.Wrapper):
        def get_state(self):
            return {"moves": self.env.game.moves}

        def set_state(self, state):
            self.env.game.moves = state["moves"]

    assert_goes_on(lambda: Keeps(Player()), 8)


def test_restoring_keeps_the_identity_of_shared_objects():
    env = as_vector_env(wrappers.NormalizeObservation(pendulum()))
    env.reset(seed=0)
    state = env_state.read(env)
    statistics, draw = env.env.obs_rms, env.env.unwrapped.np_random
    before = float(statistics.count), draw.bit_generator.state
    play(env)
    env_state.write(env, state)
    assert (statistics.count, draw.bit_generator.state) == before
    assert env.env.obs_rms is statistics
    assert env.env.unwrapped.np_random is draw


def refusal(env):
    """Returns the reason why the state of an environment is not saved."""
    adapter = as_vector_env(env)
    adapter.reset(seed=0)
    [reason] = env_state.refusals(env_state.read(adapter))
    return reason


def in_wrappers():
    """Returns an unknown environment in known wrappers."""
    return wrappers.NormalizeReward(wrappers.NormalizeObservation(Player()))


@pytest.mark.parametrize(
    "make",
    [
        in_wrappers,
        lambda: SyncVectorEnv([in_wrappers, in_wrappers]),
        lambda: wrappers.vector.NormalizeObservation(
            in_processes([pendulum, pendulum])
        ),
        lambda: wrappers.vector.NormalizeObservation(SyncVectorEnv([Player])),
        # A wrapper that is not known, around one that is.
        lambda: gymnasium.Wrapper(wrappers.NormalizeObservation(pendulum())),
    ],
)
def test_wrappers_are_saved_among_unknown_wrappers(make):
    env, other = as_vector_env(make()), as_vector_env(make())
    env.reset(seed=0)
    play(env)
    state = env_state.read(env)
    assert [*env_state.refusals(state)]
    env_state.write(other, state)
    assert "count" in str(state)
    np.testing.assert_equal(env_state.read(other), state)
    env.close()
    other.close()


def test_environments_without_state_methods_are_refused():
    class Faster(type(pendulum().unwrapped)):
        """May have more than its base."""

    for env, name in (
        (Player(), "Player"),
        (gymnasium.make(TAXI), "TaxiEnv"),
        (Faster(), "Faster"),
        (SyncVectorEnv([Player]), "Player"),
    ):
        assert f"{name} has no methods" in refusal(env)


def test_a_state_that_is_not_plain_data():
    class Bad(Walk):
        def get_state(self):
            return self

    assert "Received: Bad" in refusal(Bad())


def test_the_state_of_other_environments():
    env = as_vector_env(gymnasium.make("CartPole-v1"))
    env.reset(seed=0)
    other = as_vector_env(gymnasium.make("CartPole-v1").unwrapped)
    with pytest.raises(ValueError, match="Expected the state of"):
        env_state.write(other, env_state.read(env))


def test_a_native_vector_environment_of_one_keeps_all_attributes():
    """A missing name would not be saved, and nothing would say so."""
    vector = gymnasium.make_vec("CartPole-v1", num_envs=1)
    env = FirstOfVectorEnv(vector)
    env.reset(seed=0)
    [state, *_] = env_state.read(as_vector_env(env))
    changing = {"_start", "_observation", "_ended"}
    assert set(state["attributes"]) == changing
    assert changing <= vars(env).keys()


class UnknownWrapper:
    """A wrapper whose game has a name of its own."""

    def __init__(self):
        self.game = self.unwrapped = Tag()

    def __getattr__(self, name):
        if name in ("get_state", "set_state"):
            raise AttributeError(name)
        return getattr(self.game, name)


def played(game, seed):
    """Returns games of MPE2, and a player of them."""
    pytest.importorskip("mpe2")
    games = rl.envs.parallel(f"mpe2:{game}", num_envs=2)
    games.reset(seed)
    return games, PlayersEnv(games, games.names[:1])


@pytest.mark.parametrize("game", ["simple_tag_v3", "simple_spread_v3"])
def test_games_of_several_players_go_on(game):
    (games, env), (others, other) = (played(game, seed) for seed in (0, 1))
    for step in range(60):
        if step == 12:
            env_state.write(other, env_state.read(env))
        actions = np.full(len(games.waiting), step % 5)
        for each in (games, others):
            each.step(actions)
        # A game lasts 25 steps.
        pairs = zip(games.observations, others.observations, strict=True)
        same = all(np.array_equal(*pair) for pair in pairs)
        assert same == (step >= 12)


def test_the_state_of_other_games_is_refused():
    _, env = played("simple_push_v3", 0)
    assert "ExtendedLandmark" in "".join(
        env_state.refusals(env_state.read(env))
    )
    games = rl.envs.parallel(UnknownWrapper)
    env = PlayersEnv(games, ["red_0"])
    assert "no methods" in "".join(env_state.refusals(env_state.read(env)))
