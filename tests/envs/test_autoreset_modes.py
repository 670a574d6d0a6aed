import functools

import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import TimeLimit

from keras_rl2.envs import as_vector_env
from support.probe_envs import ChainProbe
from support.probe_envs import CountingEnv
from support.transitions import assert_same
from support.transitions import play
from support.vector_envs import CASES
from support.vector_envs import MODES
from support.vector_envs import coin
from support.vector_envs import counting
from support.vector_envs import one_by_one
from support.vector_envs import reference
from support.vector_envs import reusing
from support.vector_envs import sync
from support.vector_envs import thunks


@pytest.mark.parametrize("case", CASES)
def test_single_env_matches_the_bare_environment(case):
    make, policy = CASES[case]
    actual = one_by_one(make, policy, 60)
    expected = reference(make, policy, 60)
    for i in range(3):
        assert_same(actual[i], expected[i], 60)


@pytest.mark.parametrize("case", CASES)
def test_all_modes_give_the_same_transitions(case):
    make, policy = CASES[case]
    expected = reference(make, policy, 60)
    for mode in MODES:
        env = sync(make, mode)
        assert env.masks_reset_rows == (mode == AutoresetMode.NEXT_STEP)
        actual = play(env, 60, policy, seed=5)
        for i in range(3):
            assert_same(actual[i], expected[i], 40)


@pytest.mark.parametrize("mode", MODES)
def test_arrays_that_environments_reuse(mode):
    # SAME_STEP of Gymnasium hands on the environment's own array, which the
    # reset has overwritten by then: nothing can be done about that here.
    if mode == AutoresetMode.SAME_STEP:
        make = functools.partial(CountingEnv)
    else:
        make = reusing
    expected = reference(CountingEnv, coin, 60)
    actual = play(sync(make, mode, copy=False), 60, coin, seed=5)
    for i in range(3):
        assert_same(actual[i], expected[i], 40)
    single = one_by_one(reusing, coin, 60)
    for i in range(3):
        assert_same(single[i], expected[i], 60)


@pytest.mark.parametrize(
    ("mode", "shared_memory"),
    [
        (MODES[1], False),
        pytest.param(MODES[0], True, marks=pytest.mark.slow),
        pytest.param(MODES[2], True, marks=pytest.mark.slow),
    ],
)
def test_async_env(mode, shared_memory):
    expected = reference(counting, coin, 40, 2)
    env = as_vector_env(
        AsyncVectorEnv(
            thunks(counting, 2),
            autoreset_mode=mode,
            shared_memory=shared_memory,
            context="fork",
        )
    )
    try:
        actual = play(env, 40, coin, seed=5)
        for i in range(2):
            assert_same(actual[i], expected[i], 20)
    finally:
        env.close()


def test_reset_while_an_async_env_has_a_reset_pending():
    env = as_vector_env(AsyncVectorEnv(thunks(CountingEnv, 2), context="fork"))
    try:
        action = np.zeros(2, np.int32)
        env.reset()
        for _ in range(3):
            env.step(action)
        assert env.pending_reset.all()
        np.testing.assert_array_equal(env.reset()[:, 2], [0, 0])
        assert not env.pending_reset.any()
        observation, reward, *_ = env.step(action)
        np.testing.assert_array_equal(observation[:, 2], [1, 1])
        assert (reward != 0).all()
    finally:
        env.close()


def test_new_processes_are_reset_although_a_resumed_run_had_resets_pending():
    env = as_vector_env(
        AsyncVectorEnv(
            thunks(CountingEnv, 2), shared_memory=False, context="fork"
        )
    )
    try:
        env.set_state({"pending_reset": [True, True], "resets": 3})
        # Without a step before it, which `OrderEnforcing` would refuse.
        np.testing.assert_array_equal(env.reset()[:, 2], [0, 0])
        assert not env.pending_reset.any()
    finally:
        env.close()


def test_terminated_and_truncated_at_once_are_both_kept():
    def make(index):
        return TimeLimit(CountingEnv(lengths=(3,), truncates=(False,)), 3)

    for env in (as_vector_env(make(0)), *(sync(make, m, 1) for m in MODES)):
        (transitions,) = play(env, 3, coin)
        assert [t[3:5] for t in transitions] == [(False, False)] * 2 + [
            (True, True)
        ]


def test_probe_7_gives_no_bogus_transition():
    def make(index):
        return ChainProbe()

    for env in (*(sync(make, mode) for mode in MODES), as_vector_env(make(0))):
        transitions = [t for row in play(env, 30, coin) for t in row]
        assert len(transitions) >= 30 * env.num_envs * 2 // 3
        for observation, _, reward, terminated, truncated, after in transitions:
            assert observation[0] != ChainProbe.FINAL
            assert after[0] == observation[0] + 1
            assert terminated == (after[0] == ChainProbe.FINAL)
            assert reward == float(terminated)
            assert not truncated
