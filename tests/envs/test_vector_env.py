import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector import SyncVectorEnv

from keras_rl2.envs import as_vector_env
from support.discrete import of_32_bits
from support.probe_envs import ActionSpaceEnv
from support.probe_envs import CountingEnv
from support.probe_envs import NonFiniteEnv
from support.transitions import play
from support.vector_envs import MODES
from support.vector_envs import cart_pole
from support.vector_envs import coin
from support.vector_envs import counting
from support.vector_envs import sync
from support.vector_envs import thunks

ACTION_SPACES = [
    spaces.Discrete(3),
    spaces.Discrete(3, start=-1),
    of_32_bits(3, start=2),
    spaces.MultiDiscrete([3, 2], start=[1, -1]),
    spaces.MultiBinary((2, 2)),
    spaces.Box(-2.0, 2.0, (2, 3), np.float64),
    spaces.Box(-2.0, 2.0, (), np.float32),
]


@pytest.mark.parametrize("space", ACTION_SPACES, ids=str)
def test_actions_arrive_as_members_of_their_space(space):
    space.seed(0)
    floating = space.dtype.kind == "f"
    table = np.stack([space.sample() for _ in range(12)])
    table = table.astype(np.float32 if floating else np.int32)

    def policy(i, episode, step):
        return table[(4 * episode + step) % 12]

    def make(index):
        return ActionSpaceEnv(space)

    expected = [np.float32(np.sum(row, dtype=np.float64)) for row in table]
    envs = [as_vector_env(make(0)), *(sync(make, mode, 2) for mode in MODES)]
    for env in envs:
        assert env.action_space == space
        for transitions in play(env, 12, policy):
            rewards = [t[2] for t in transitions]
            assert len(rewards) >= 9
            np.testing.assert_allclose(
                rewards, expected[: len(rewards)], rtol=1e-5, atol=1e-6
            )


def test_an_action_is_copied_before_an_environment_gets_it():
    class Greedy(ActionSpaceEnv):
        def step(self, action):
            result = super().step(action)
            action[:] = 2.0
            return result

    space = spaces.Box(-2.0, 2.0, (1,), np.float32)

    def make(index):
        return Greedy(space)

    action = np.zeros((1, 1), np.float32)
    for env in (as_vector_env(make(0)), *(sync(make, m, 1) for m in MODES)):
        env.reset()
        env.step(action)
        np.testing.assert_array_equal(action, [[0.0]])


def test_scalar_observations_and_old_rewards():
    class Scalar(gymnasium.Env):
        observation_space = spaces.Box(0.0, 9.0, (), np.float64)
        action_space = spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            return 0.5, {}

        def step(self, action):
            return 1.5, np.array([2.0]), np.True_, np.False_, {}

    env = as_vector_env(Scalar())
    np.testing.assert_array_equal(env.reset(), np.float32([0.5]))
    observation, reward, terminated, truncated, final = env.step(np.array([0]))
    np.testing.assert_array_equal(observation, np.float32([0.5]))
    np.testing.assert_array_equal(final, np.float32([1.5]))
    assert (reward.shape, reward.dtype) == ((1,), np.float32)
    assert (terminated.tolist(), truncated.tolist()) == ([True], [False])


def test_seeds_are_as_in_gymnasium():
    env = sync(cart_pole, MODES[0])
    rows = [cart_pole(i).reset(seed=7 + i)[0] for i in range(3)]
    np.testing.assert_array_equal(env.reset(seed=7), rows)
    np.testing.assert_array_equal(env.reset(seed=np.int64(7)), rows)
    assert (env.reset() != np.stack(rows)).all()
    single = as_vector_env(cart_pole(0))
    np.testing.assert_array_equal(single.reset(seed=7), rows[:1])


def test_wrong_actions_are_refused():
    for env in (as_vector_env(CountingEnv()), sync(counting, MODES[0], 1)):
        env.reset()
        with pytest.raises(ValueError, match=r"shape \(1,\).*shape \(1, 1\)"):
            env.step(np.zeros((1, 1), np.int32))


def test_same_step_without_the_final_observation_is_refused():
    env = SyncVectorEnv(thunks(CountingEnv))
    env.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
    adapter = as_vector_env(env)
    with pytest.raises(ValueError, match="final_obs"):
        play(adapter, 4, coin)


def test_state():
    env = sync(CountingEnv, AutoresetMode.NEXT_STEP, 2)
    env.reset()
    for _ in range(3):
        env.step(np.zeros(2, np.int32))
    state = env.get_state()
    assert state["resets"] == env.resets == 1
    assert state["pending_reset"].tolist() == [True, True]
    other = sync(CountingEnv, AutoresetMode.NEXT_STEP, 2)
    other.set_state(state)
    assert other.pending_reset.tolist() == [True, True]
    assert other.resets == 1


def test_close():
    closed = []

    class Closing(CountingEnv):
        def close(self):
            closed.append(self)

    as_vector_env(Closing()).close()
    sync(lambda index: Closing(), MODES[0], 2).close()
    assert len(closed) == 3


@pytest.mark.parametrize(("index", "key"), enumerate(("observation", "reward")))
def test_non_finite_values_are_passed_on(index, key):
    # The collector refuses it: once for a rollout, and not in every step.
    env = as_vector_env(NonFiniteEnv(at=2, key=key))
    env.reset()
    for finite in (True, False, True):
        value = env.step(np.zeros(1, np.int32))[index]
        assert np.isfinite(value).all() == finite, key
