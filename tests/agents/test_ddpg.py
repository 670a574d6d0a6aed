"""DDPG: one critic, no delay and no smoothing, by hand."""

import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces

import keras_rl2 as rl
from support import deterministic as support
from support.deterministic import ATANH_HALF
from support.deterministic import assert_linear
from support.deterministic import linear_actor
from support.deterministic import linear_critic
from support.deterministic import small_agent
from support.probe_envs import PROBES


def linear_agent(**settings):
    """Acts ½; values observation + 2 action + ½."""
    actor, critics = (0.0, ATANH_HALF), [(1.0, 2.0, 0.5)]
    return support.linear_agent(rl.DDPG, actor, critics, **settings)


DATA = {
    "observation": tf.constant([[1.0], [2.0]]),
    "action": tf.constant([[0.5], [-1.0]]),
    "reward": tf.constant([1.0, 3.0]),
    # The second one ends an episode.
    "discount": tf.constant([0.5, 0.0]),
    "next_observation": tf.constant([[-1.0], [9.0]]),
    "weight": tf.constant([1.0, 0.5]),
}


def test_targets_are_those_of_the_target_networks_without_noise():
    agent = linear_agent()
    agent.actor.set_weights([np.array([[9.0]]), np.array([9.0])])
    agent.critics[0].set_weights([np.array([[9.0], [9.0]]), np.array([9.0])])
    # 1 + ½ (-1 + 2 * ½ + ½).
    for updates in (0, 1):
        agent.updates.assign(updates)
        np.testing.assert_allclose(agent.targets(DATA), [1.25, 3.0])


def test_update_by_hand():
    agent = linear_agent()
    assert (agent.tau, agent.target_every) == (0.005, 1)
    logs = agent.train_step(DATA)
    # Values 2.5 and 0.5, TD errors -1.25 and 2.5. Weights gain the means of
    # weight * error * (observation, action, 1): 0.625, -0.9375, 0.
    assert_linear(agent.critics[0], 1.625, 1.0625, 0.5)
    critic_loss = 0.5 * (1.25**2 + 0.5 * 2.5**2) / 2
    assert float(logs["critic_loss"]) == pytest.approx(critic_loss)
    assert float(logs["q_value"]) == pytest.approx(1.5)
    norm = np.hypot(0.625, 0.9375)
    assert float(logs["gradient_norm"]) == pytest.approx(norm)
    # The slope of 2 is that before the update, that of tanh ¾.
    assert float(logs["actor_loss"]) == pytest.approx(-(2.5 + 0.5 * 3.5) / 2)
    assert_linear(agent.actor, 1.5, ATANH_HALF + 1.125)
    # Targets follow each update.
    agent = linear_agent()
    agent.fit(tf.data.Dataset.from_tensors(DATA), verbose=0)
    assert_linear(agent.target_actor, 0.0075, ATANH_HALF + 0.005625)
    [target] = agent.target_critics
    assert_linear(target, 1.003125, 1.9953125, 0.5)


def test_ddpg_without_noise_acts_greedily():
    agent = small_agent(rl.DDPG, exploration=None)
    observation = np.zeros((4, 3))
    np.testing.assert_array_equal(
        agent.act(observation), agent.act(observation, deterministic=True)
    )
    again = rl.DDPG.from_config(agent.get_config())
    assert again.exploration is None
    assert len(again.critics) == 1


def test_invalid_spaces_networks_and_noise_are_refused():
    with pytest.raises(ValueError, match="DDPG can act in, Box"):
        rl.DDPG.for_env("CartPole-v1")
    unbounded = PROBES[1](spaces.Box(-np.inf, 1.0, (1,), np.float32))
    with pytest.raises(ValueError, match="finite bounds"):
        rl.DDPG.for_env(unbounded)
    critic = linear_critic(1.0, 1.0)
    with pytest.raises(ValueError, match="one `critic`"):
        rl.DDPG(linear_actor(1.0), [critic, critic])
    with pytest.raises(ValueError, match=r"scale to be .* 0 or more"):
        rl.DDPG(linear_actor(1.0), critic, exploration=-1.0)
