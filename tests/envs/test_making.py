"""An id makes equal environments in all parts of the library."""

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv
from gymnasium.vector import SyncVectorEnv

from keras_rl2.envs import as_vector_env
from keras_rl2.envs import make_env
from keras_rl2.envs.making import FirstOfVectorEnv
from support.probe_envs import CountingEnv


class Doubled(gymnasium.RewardWrapper):
    """A user's wrapper."""

    def reward(self, reward):
        return 2.0 * float(reward)


def short(env):
    return gymnasium.wrappers.TimeLimit(env, 7)


def played(env, steps=40, seed=3):
    """Steps a single environment, and returns all that it gave."""
    env.action_space.seed(seed)
    seen = [env.reset(seed=seed)[0]]
    rewards, ends = [], []
    for _ in range(steps):
        observation, reward, terminated, truncated, _ = env.step(
            env.action_space.sample()
        )
        rewards.append(reward)
        ends.append((terminated, truncated))
        if terminated or truncated:
            observation = env.reset()[0]
        seen.append(observation)
    env.close()
    return np.stack(seen), rewards, ends


def played_as_in_training(env, steps=40, seed=3):
    """Steps a `VectorEnvAdapter` of one, and returns the same."""
    seen = [np.array(env.reset(seed=seed)[0])]
    # After the reset, which seeds spaces too.
    env.action_space.seed(seed)
    rewards, ends = [], []
    while len(rewards) < steps:
        action = np.array([env.action_space.sample()])
        observation, reward, terminated, truncated, _ = env.step(action)
        rewards.append(float(reward[0]))
        ends.append((bool(terminated[0]), bool(truncated[0])))
        if env.pending_reset[0]:
            observation = env.step(action)[0]
        seen.append(np.array(observation[0]))
    env.close()
    return np.stack(seen), rewards, ends


@pytest.mark.parametrize(
    ("env_id", "options"),
    [
        ("CartPole-v1", {"env_kwargs": {"sutton_barto_reward": True}}),
        ("CartPole-v1", {"wrappers": [Doubled, short]}),
        ("Acrobot-v1", {"wrappers": [short]}),
        ("MountainCar-v0", {"env_kwargs": {"goal_velocity": 0.01}}),
    ],
)
def test_a_single_environment_is_the_one_trained_on(env_id, options):
    single = played(make_env(env_id, **options))
    trained = played_as_in_training(as_vector_env(env_id, **options))
    np.testing.assert_equal(single, trained)


@pytest.mark.parametrize(
    ("env_id", "num_envs"), [("CartPole-v1", 3), ("Acrobot-v1", 1)]
)
def test_wrappers_are_around_each_environment(env_id, num_envs):
    env = as_vector_env(env_id, num_envs, wrappers=[short, Doubled])
    assert (env.name, env.num_envs) == (env_id, num_envs)
    assert not env.masks_reset_rows
    env.reset(seed=0)
    for step in range(1, 8):
        action = np.zeros(num_envs, np.int64)
        _, reward, _, truncated, _ = env.step(action)
        assert set(np.abs(reward)) == {2.0}
        assert truncated.tolist() == [step == 7] * num_envs
    env.close()


def test_arguments_reach_native_vector_environments():
    env = as_vector_env("CartPole-v1", 2, env_kwargs={"max_episode_steps": 3})
    assert env.masks_reset_rows
    env.reset(seed=0)
    for _ in range(3):
        *_, truncated, _ = env.step(np.array([0, 1]))
    assert truncated.all()


def test_arguments_that_are_not_taken():
    for env_id, num_envs in (("CartPole-v1", 2), ("Pendulum-v1", 1)):
        with pytest.raises(ValueError, match=r"env_kwargs.*'gravity': 3"):
            as_vector_env(env_id, num_envs, env_kwargs={"gravity": 3})
    # What has been made is made no more.
    for options in ({"env_kwargs": {"g": 1}}, {"wrappers": [short]}):
        for env in (CountingEnv(), SyncVectorEnv([CountingEnv])):
            with pytest.raises(ValueError, match="Expected an id"):
                as_vector_env(env, **options)


def test_the_vector_entry_point_of_an_id_is_used(tmp_path, monkeypatch):
    """The id may import its module."""
    (tmp_path / "a_users_module.py").write_text(
        "import gymnasium\n"
        "gymnasium.register('Mine-v0',\n"
        "    'gymnasium.envs.classic_control:CartPoleEnv',\n"
        "    vector_entry_point=\n"
        "        'gymnasium.envs.classic_control.cartpole:CartPoleVectorEnv')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    try:
        env = as_vector_env("a_users_module:Mine-v0", 2)
        assert env.masks_reset_rows
        single = make_env("a_users_module:Mine-v0")
        assert isinstance(single, FirstOfVectorEnv)
    finally:
        gymnasium.registry.pop("Mine-v0", None)


class Blind(CartPoleVectorEnv):
    """A vector environment that draws nothing."""

    metadata = {**CartPoleVectorEnv.metadata, "render_modes": []}


class Seen(gymnasium.Env):
    """Its single environment, which draws."""

    metadata = {"render_modes": ["rgb_array"]}
    observation_space = Blind().single_observation_space
    action_space = Blind().single_action_space

    def __init__(self, render_mode=None):
        self.render_mode = render_mode


def test_a_single_environment_draws_for_a_vector_environment(monkeypatch):
    monkeypatch.setattr(gymnasium, "registry", dict(gymnasium.registry))
    monkeypatch.setattr(
        gymnasium.envs.registration, "registry", gymnasium.registry
    )
    gymnasium.register("Blind-v0", Seen, vector_entry_point=Blind)
    assert isinstance(make_env("Blind-v0"), FirstOfVectorEnv)
    env = make_env("Blind-v0", render_mode="rgb_array")
    assert isinstance(env.unwrapped, Seen)


def test_pictures_of_a_native_environment():
    env = make_env("CartPole-v1", render_mode="rgb_array")
    env.reset(seed=0)
    assert (env.render_mode, env.metadata["render_fps"]) == ("rgb_array", 50)
    first = env.render()
    assert (first.shape, first.dtype) == ((400, 600, 3), np.uint8)
    for _ in range(5):
        env.step(1)
    assert (env.render() != first).any()
    env.close()
    env = make_env("CartPole-v1")
    assert env.render_mode is None
    assert (env.spec.id, env.spec.max_episode_steps) == ("CartPole-v1", 500)


class TestAtari:
    """The game that training sees: 4 x 84 x 84, as its vectors play it."""

    @pytest.fixture(autouse=True)
    def _games(self):
        pytest.importorskip("ale_py")

    @pytest.mark.parametrize("render_mode", [None, "rgb_array"])
    def test_observations_are_those_trained_on(self, render_mode):
        kwargs = {"noop_max": 5, "episodic_life": True}
        single = make_env(
            "ALE/Breakout-v5", env_kwargs=kwargs, render_mode=render_mode
        )
        trained = as_vector_env("ALE/Breakout-v5", 1, env_kwargs=kwargs)
        assert single.observation_space == trained.observation_space
        assert single.action_space == trained.action_space
        assert single.observation_space.shape == (4, 84, 84)
        # Long enough for a life to be lost.
        expected = played_as_in_training(trained, 60)
        assert any(map(any, expected[2]))
        np.testing.assert_equal(played(single, 60), expected)

    def test_an_unsupported_render_mode_is_refused(self):
        with pytest.raises(ValueError, match="render_mode='human'"):
            make_env("ALE/Pong-v5", render_mode="human")


def test_a_class_by_its_module_and_name():
    name = f"{CountingEnv.__module__}:{CountingEnv.__name__}"
    assert isinstance(make_env(name).unwrapped, CountingEnv)
    together = as_vector_env(name, num_envs=3)
    assert together.num_envs == 3
    # Nothing is registered that nobody has registered.
    assert "CountingEnv" not in gymnasium.registry
    with pytest.raises(gymnasium.error.NameNotFound):
        make_env(f"{CountingEnv.__module__}:np")
