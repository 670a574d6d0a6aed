import weakref

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector import SyncVectorEnv

from keras_rl2.envs import VectorEnvAdapter
from keras_rl2.envs import as_vector_env
from support.probe_envs import ActionSpaceEnv
from support.probe_envs import CountingEnv
from support.vector_envs import thunks


def test_an_environment_has_one_adapter():
    for env in (CountingEnv(), SyncVectorEnv(thunks(CountingEnv))):
        adapter = as_vector_env(env)
        assert isinstance(adapter, VectorEnvAdapter)
        assert as_vector_env(env) is adapter
        assert as_vector_env(adapter) is adapter

    class Equal(CountingEnv):
        __hash__ = None

        def __eq__(self, other):
            return True

    one, other = Equal(), Equal()
    adapter = as_vector_env(one)
    assert as_vector_env(other) is not adapter
    assert as_vector_env(one) is adapter


def test_adapters_do_not_keep_environments_alive():
    env = CountingEnv()
    as_vector_env(env)
    dead = weakref.ref(env)
    del env
    assert dead() is None


def test_ids():
    env = as_vector_env("CartPole-v1", num_envs=4)
    assert (env.name, env.num_envs) == ("CartPole-v1", 4)
    assert env.masks_reset_rows  # The native one.
    assert as_vector_env("CartPole-v1").num_envs == 1
    env = as_vector_env("Pendulum-v1", num_envs=2)
    assert (env.name, env.num_envs) == ("Pendulum-v1", 2)
    assert not env.masks_reset_rows
    env = as_vector_env("gymnasium:Pendulum-v1")
    assert isinstance(env.env, gymnasium.Env)
    assert env.reset(seed=0).shape == (1, 3)
    for num_envs in (1, 2):
        with pytest.raises(gymnasium.error.Error, match="NoSuchThing"):
            as_vector_env("NoSuchThing-v0", num_envs=num_envs)
    with pytest.raises(ValueError, match="num_envs=0"):
        as_vector_env("CartPole-v1", num_envs=0)


def test_a_function_makes_environments():
    assert as_vector_env(CountingEnv).num_envs == 1
    env = as_vector_env(lambda: CountingEnv(), num_envs=3)
    assert env.reset(seed=0).shape[0] == 3
    with pytest.raises(ValueError, match="with a function"):
        as_vector_env(CountingEnv, env_kwargs={"limit": 3})


@pytest.mark.parametrize("thing", [None, 3, dict, [CountingEnv()]])
def test_other_objects_than_environments_are_refused(thing):
    with pytest.raises(
        ValueError, match=r"Expected an environment of Gymnasium"
    ):
        as_vector_env(thing)


def test_number_of_environments_must_agree():
    env = SyncVectorEnv(thunks(CountingEnv))
    assert as_vector_env(env, num_envs=3).num_envs == 3
    with pytest.raises(ValueError, match="3 environments"):
        as_vector_env(env, num_envs=8)
    with pytest.raises(ValueError, match="8 environments"):
        as_vector_env(CountingEnv(), num_envs=8)


def test_spaces_are_checked_at_construction():
    text = spaces.Text(2)
    for name, space, match in (
        ("observation_space", text, "observation_space=Text"),
        ("observation_space", spaces.Dict({"a": text}), "Received: a: Text"),
        ("action_space", spaces.Box(0, 9, (2,), np.int64), "action_space=Box"),
    ):
        env = CountingEnv()
        setattr(env, name, space)
        with pytest.raises(ValueError, match=match):
            as_vector_env(env)
    env = SyncVectorEnv([lambda: ActionSpaceEnv(spaces.Tuple([text]))])
    with pytest.raises(ValueError, match="Received: 0: Text"):
        as_vector_env(env)


def test_an_unknown_autoreset_mode_is_refused():
    env = SyncVectorEnv(thunks(CountingEnv))
    env.metadata = {}
    with pytest.raises(
        ValueError,
        match=r"autoreset_mode.*AutoresetMode\.SAME_STEP.*Received: None",
    ):
        as_vector_env(env)
    # As the message says.
    env.metadata = {**env.metadata, "autoreset_mode": AutoresetMode.NEXT_STEP}
    assert as_vector_env(env).masks_reset_rows
