"""DDPG: one critic, no delay and no smoothing, by hand."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces

import keras_rl2 as rl
from keras_rl2.data import ActorSnapshot
from support import deterministic as support
from support.agents import assert_equal_weights
from support.deterministic import ATANH_HALF
from support.deterministic import assert_linear
from support.deterministic import iterations
from support.deterministic import linear_actor
from support.deterministic import linear_critic
from support.deterministic import small_agent
from support.deterministic import small_replay
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


def test_targets_follow_each_update():
    agent = linear_agent()
    assert (agent.tau, agent.target_every) == (0.005, 1)
    data = tf.data.Dataset.from_tensors(DATA)
    agent.fit(data, verbose=0)
    assert_linear(agent.target_actor, 0.0075, ATANH_HALF + 0.005625)
    [target] = agent.target_critics
    assert_linear(target, 1.003125, 1.9953125, 0.5)


@pytest.mark.spread(mode=[{"run_eagerly": True}])
@pytest.mark.parametrize("mode", [{"run_eagerly": True}, {"jit_compile": True}])
def test_each_update_is_one_of_both_networks(mode, tmp_path):
    agent = small_agent(
        rl.DDPG,
    )
    agent.compile(**mode)
    before = agent.get_weights()
    history = agent.fit(
        small_replay(updates_per_round=3), epochs=2, verbose=0
    ).history
    arguments = agent.compile_arguments
    assert arguments.optimizer is not arguments.critic_optimizer
    assert iterations(agent) == [6, 6, 6]
    for old, new in zip(before, agent.get_weights(), strict=True):
        assert (old != new).any()
    for key in rl.DDPG.statistics_names:
        assert np.isfinite(history[key]).all(), key
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    assert_equal_weights(loaded, agent)
    assert_equal_weights(
        [v.numpy() for v in loaded.optimizer.variables],
        [v.numpy() for v in agent.optimizer.variables],
    )


def test_ornstein_uhlenbeck_noise_goes_on_over_rounds():
    """Actions of one environment lie near each other, also between rounds."""
    noise = rl.exploration.OrnsteinUhlenbeckNoise(0.2, theta=0.15, dt=0.1)
    agent = small_agent(rl.DDPG, "act_box_matrix", exploration=noise)
    output = agent.actor.layers[-1]
    output.set_weights([np.zeros(w.shape) for w in output.get_weights()])
    replay = small_replay(
        "act_box_matrix", steps_per_round=64, updates_per_round=1, warm_up=0
    )
    replay.bind(agent)
    rounds = [replay.collect().action for _ in range(4)]
    assert ActorSnapshot(agent, replay.env.num_envs).backend == "litert"
    actions = np.concatenate(rounds)
    assert actions.shape == (128, 2, 4)
    steps = np.diff(actions, axis=0)
    # The policy is 0 all over, which leaves scale √dt.
    assert steps.std() == pytest.approx(0.2 * 0.1**0.5, rel=0.1)
    between = steps[[31, 63, 95]]
    assert np.abs(between).max() < 4.0 * steps.std()
    assert actions[64:].std() > 2.0 * steps.std()


def test_config_round_trip_with_nothing_at_its_default():
    settings = {
        "exploration": rl.exploration.GaussianNoise(0.3),
        "gamma": 0.9,
        "max_gradient_norm": 0.5,
        "seed": 3,
        "name": "my_agent",
    }
    agent = small_agent(rl.DDPG, **settings)
    again = rl.DDPG.from_config(json.loads(json.dumps(agent.get_config())))
    for key, value in settings.items():
        assert getattr(again, key) == value, key
    assert again.action_space == agent.action_space
    assert len(again.critics) == 1


def test_no_noise_at_all_is_possible():
    agent = small_agent(rl.DDPG, exploration=None)
    observation = np.zeros((4, 3))
    np.testing.assert_array_equal(
        agent.act(observation), agent.act(observation, deterministic=True)
    )
    again = rl.DDPG.from_config(agent.get_config())
    assert again.exploration is None


def test_what_it_cannot_do_is_refused():
    with pytest.raises(ValueError, match="DDPG can act in, Box"):
        rl.DDPG.for_env("CartPole-v1")
    unbounded = PROBES[1](spaces.Box(-np.inf, 1.0, (1,), np.float32))
    with pytest.raises(ValueError, match="finite bounds"):
        rl.DDPG.for_env(unbounded)
    critic = linear_critic(1.0, 1.0)
    with pytest.raises(ValueError, match="one `critic`"):
        rl.DDPG(linear_actor(1.0), [critic, critic])
    with pytest.raises(ValueError, match="scale of 0 or more"):
        rl.DDPG(linear_actor(1.0), critic, exploration=-1.0)
