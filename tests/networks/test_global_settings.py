"""Networks are the same under any of Keras' global settings."""

import gymnasium as gym
import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2 import networks
from support.agents import EVERY_AGENT
from support.agents import KINDS
from support.agents import differ
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import slow
from support.agents import weights_of


class Pictures(gym.Env):
    """Shows random pictures."""

    action_space = gym.spaces.Discrete(3)

    def __init__(self, side=84):
        shape = (side, side, 4)
        self.observation_space = gym.spaces.Box(0, 255, shape, np.uint8)


BUILDERS = {
    "nature": lambda: networks.nature_cnn((84, 84, 4), 2, seed=0),
    "small": lambda: networks.small_cnn((16, 16, 3), 2, seed=0),
    "matrix": lambda: networks.mlp((3, 2), 2, seed=0, normalization="layer"),
    "dict": lambda: networks.joined_network(
        gym.spaces.Dict(
            picture=gym.spaces.Box(0, 255, (16, 16, 3), np.uint8),
            matrix=gym.spaces.Box(-1, 1, (3, 2)),
        ),
        2,
        seed=0,
    ),
    "critic": lambda: networks.critic_for(
        gym.spaces.Box(0, 255, (16, 16, 3), np.uint8), 2, seed=0
    ),
}


@pytest.fixture
def other_settings():
    """Sets the global data format and epsilon to other values."""
    kept = keras.config.image_data_format(), keras.config.epsilon()
    keras.config.set_image_data_format("channels_first")
    keras.config.set_epsilon(0.5)
    yield
    keras.config.set_image_data_format(kept[0])
    keras.config.set_epsilon(kept[1])


def test_builders_state_the_format_and_the_epsilon(request):
    def outputs():
        made = []
        for build in BUILDERS.values():
            network = build()
            generator = np.random.default_rng(0)
            given = [
                generator.integers(0, 9, (2, *each.shape[1:])).astype(
                    each.dtype
                )
                for each in network.inputs
            ]
            given = given if len(given) > 1 else given[0]
            made.append(np.asarray(network(given), np.float32))
        return made

    expected = outputs()
    request.getfixturevalue("other_settings")
    for name, actual, right in zip(BUILDERS, outputs(), expected, strict=True):
        np.testing.assert_array_equal(actual, right, err_msg=name)


@pytest.mark.parametrize(
    "name", [*KINDS, *slow(*(n for n in EVERY_AGENT if n not in KINDS))]
)
@pytest.mark.parametrize(
    "dtype", ["float64", "mixed_bfloat16", *slow("float16")]
)
def test_every_dtype_trains(name, dtype):
    case = EVERY_AGENT[name]
    env = make_env(case.pair)
    agent = make_eager_agent(case, env, dtype=dtype)
    before = weights_of(agent)
    agent.fit(case.make_dataset(env), verbose=0)
    assert differ(before, agent.get_weights())
    assert all(np.isfinite(each).all() for each in weights_of(agent))


def test_weights_in_bfloat16_are_refused():
    """Adam's decay of 0.999 is 1 there, so that nothing would be learned."""
    with pytest.raises(ValueError, match="dtype='mixed_bfloat16'"):
        rl.PPO.for_env("CartPole-v1", dtype="bfloat16")


@pytest.mark.parametrize("name", KINDS)
def test_a_global_float64_trains(name):
    case = KINDS[name]
    env = make_env(case.pair)
    keras.config.set_floatx("float64")
    try:
        agent = make_eager_agent(case, env)
        agent.fit(case.make_dataset(env), verbose=0)
    finally:
        keras.config.set_floatx("float32")
    assert agent.env_steps


@pytest.mark.parametrize("side", [16, 84])
def test_policy_and_value_of_pictures_share_a_trunk(side):
    agent = rl.PPO.for_env(Pictures(side), seed=0)
    assert agent.critic is None
    assert [each.shape[1] for each in agent.actor.outputs] == [3, 1]
    apart = rl.PPO.for_env(Pictures(side), shared=False, seed=0)
    assert apart.critic is not None
    hidden = agent.actor.get_layer("output").input.shape[1]
    assert agent.actor.count_params() == (
        apart.actor.count_params() + hidden + 1
    )


def test_vectors_share_a_trunk_on_request():
    assert rl.PPO.for_env("CartPole-v1").critic is not None
    assert rl.PPO.for_env("CartPole-v1", shared=True).critic is None
    with pytest.raises(ValueError, match="Expected `shared=None` for DQN"):
        rl.DQN.for_env("CartPole-v1", shared=True)
