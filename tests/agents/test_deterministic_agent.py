"""Optimizers, noise and bounds of actions of deterministic agents."""

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.data import ActorSnapshot
from support import deterministic as support
from support.deterministic import ATANH_HALF
from support.deterministic import small_agent
from support.deterministic import small_replay


def linear_agent(actor=(0.0, 0.0), **settings):
    return support.linear_agent(rl.DDPG, actor, [(0.0,)], **settings)


# Optimizers.


def rates(agent):
    """Learning rates of the actor's and of the critics' optimizer."""
    arguments = agent.compile_arguments
    optimizers = arguments.optimizer, arguments.critic_optimizer
    return [float(x.learning_rate.numpy()) for x in optimizers]


def test_default_optimizers():
    agent = small_agent(rl.TD3)
    agent.compile(run_eagerly=True)
    history = agent.fit(small_replay(updates_per_round=1), verbose=0).history
    assert rates(agent) == pytest.approx([1e-3, 1e-3])
    assert history["learning_rate_actor"] == pytest.approx([1e-3])
    assert history["learning_rate_critic"] == pytest.approx([1e-3])
    adam = keras.optimizers.Adam()
    with pytest.raises(ValueError, match="the same object"):
        agent.compile(adam, critic_optimizer=adam)


@pytest.mark.parametrize("critic_optimizer", ["auto", None])
def test_one_optimizer_is_copied_for_the_critics(critic_optimizer):
    agent = small_agent(rl.TD3)
    schedule = keras.optimizers.schedules.PolynomialDecay(0.1, 10, 0.2)
    given = keras.optimizers.RMSprop(schedule, rho=0.8)
    agent.compile(given, critic_optimizer=critic_optimizer)
    arguments = agent.compile_arguments
    assert arguments.optimizer is given
    copy = arguments.critic_optimizer
    assert type(copy) is keras.optimizers.RMSprop
    assert copy is not given
    assert copy.rho == 0.8
    assert rates(agent) == pytest.approx([0.1, 0.1])


# Acting.


def explore(agent, steps, envs=8):
    """Draws a policy's actions on observations of zero."""
    generator = np.random.default_rng(0)
    noise, _ = agent.noise.draw(generator, (steps, envs))
    observation = np.zeros((steps * envs, 1), "float32")
    return np.array(agent.sample_action(observation, noise.reshape(-1, 1)))


def test_exploration_adds_noise_in_the_unit_box():
    agent = linear_agent((0.0, ATANH_HALF), exploration=0.1)
    actions = explore(agent, 1000)
    assert actions.mean() == pytest.approx(0.5, abs=0.005)
    assert actions.std() == pytest.approx(0.1, rel=0.05)
    # Clipped at its bounds.
    actions = explore(linear_agent((0.0, 20.0), exploration=0.5), 100)
    assert actions.max() == 1.0
    assert (actions == 1.0).mean() == pytest.approx(0.5, abs=0.1)
    assert actions.min() < 0.0


def test_noise_has_the_requested_shape():
    noisy, certain = (linear_agent(exploration=x) for x in (0.1, None))
    for shape in ((5, 3), (3,), (1,)):
        noise, state = noisy.noise.draw(np.random.default_rng(0), shape)
        assert noise.shape == (*shape, 1)
        assert noise.dtype == np.float32
        assert state is None
        noise, _ = certain.noise.draw(np.random.default_rng(0), shape)
        np.testing.assert_array_equal(noise, np.zeros((*shape, 1), "float32"))
    # Noise that remembers goes on.
    agent = linear_agent(exploration="ornstein_uhlenbeck")
    whole, last = agent.noise.draw(np.random.default_rng(0), (6, 2))
    generator = np.random.default_rng(0)
    first, state = agent.noise.draw(generator, (4, 2))
    second, state = agent.noise.draw(generator, (2, 2), state)
    np.testing.assert_array_equal(np.concatenate([first, second]), whole)
    np.testing.assert_array_equal(state, last)


def test_scale_of_the_noise_follows_the_environment_steps():
    schedule = keras.optimizers.schedules.PolynomialDecay(1.0, 100, 0.0)
    agent = linear_agent(exploration=rl.exploration.GaussianNoise(schedule))
    assert agent.exploration_logs() == {"exploration_scale": 1.0}
    agent.env_steps = 75
    assert agent.exploration_logs() == {"exploration_scale": 0.25}
    assert explore(agent, 1000).std() == pytest.approx(0.25, rel=0.05)
    assert linear_agent().exploration_logs() == {}


def test_act_explores_unless_it_is_deterministic():
    agent = linear_agent((0.0, ATANH_HALF), exploration=0.1)
    observation = np.zeros((500, 1))
    np.testing.assert_allclose(
        agent.act(observation, deterministic=True), np.full((500, 1), 0.5)
    )
    assert agent.act(observation).std() == pytest.approx(0.1, rel=0.1)
    assert agent.act(observation[0]).shape == (1,)


def test_environment_never_sees_more_than_its_bounds():
    """The environment raises outside. The float32 nearest to 0.3 is outside."""
    agent = small_agent(rl.TD3, "act_box_matrix", exploration=2.0)
    agent.compile(run_eagerly=True)
    replay = small_replay(
        "act_box_matrix", steps_per_round=32, updates_per_round=1
    )
    agent.fit(replay, epochs=2, verbose=0)
    assert ActorSnapshot(agent.policy, replay.env.num_envs).backend == "litert"
    actions = replay.sample(64)["action"]
    assert actions.shape == (64, 4)
    assert (actions.min(), actions.max()) == (-1.0, 1.0)
    greedy = agent.act(np.zeros((1, 3)), deterministic=True)
    # From -1 ... 1 to -0.1 ... 0.3.
    own = agent.greedy_action(np.zeros((1, 3), "float32"))
    expected = 0.1 + 0.2 * np.reshape(own, (1, 2, 2))
    np.testing.assert_allclose(greedy, expected, rtol=1e-5)
