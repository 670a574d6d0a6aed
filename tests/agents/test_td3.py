"""TD3 and TD3BC: targets and gradients by hand, delays, and noise."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces

import keras_rl2 as rl
from support import deterministic as support
from support.agents import assert_equal_weights
from support.deterministic import ATANH_HALF
from support.deterministic import UNIT
from support.deterministic import assert_linear
from support.deterministic import iterations
from support.deterministic import linear_actor
from support.deterministic import linear_critic
from support.deterministic import set_linear
from support.deterministic import small_agent
from support.deterministic import small_replay
from support.errors import raises
from support.probe_envs import PROBES


def linear_agent(actor=(0.0, 0.0), critics=((0.0,), (0.0,)), **settings):
    settings = {"target_noise": 0.0, **settings}
    return support.linear_agent(rl.TD3, actor, critics, **settings)


def batch(observation, action, reward, discount, following, weight=None):
    """A minibatch of transitions of one number each."""
    column = {
        "observation": observation,
        "action": action,
        "next_observation": following,
    }
    row = {
        "reward": reward,
        "discount": discount,
        "weight": np.ones(len(reward)) if weight is None else weight,
    }
    return {
        **{k: tf.constant(v, "float32")[:, None] for k, v in column.items()},
        **{k: tf.constant(v, "float32") for k, v in row.items()},
    }


def zeros(count):
    return [0.0] * count


# Targets.


def test_targets_by_hand():
    agent = linear_agent((9.0, 9.0), ((9.0, 9.0, 9.0), (-9.0, -9.0, -9.0)))
    # Next actions tanh(± atanh ½) = ± ½, by target networks only.
    set_linear(agent.target_actor, ATANH_HALF, 0.0)
    set_linear(agent.target_critics[0], 2.0, 4.0, 0.0)
    set_linear(agent.target_critics[1], 1.0, 8.0, 0.0)
    data = batch(
        observation=zeros(4),
        action=zeros(4),
        reward=[1.0, 2.0, 3.0, 4.0],
        # The third one ends an episode.
        discount=[0.5, 0.25, 0.0, 1.0],
        following=[1.0, -1.0, 1.0, 0.0],
    )
    # min(2 + 2, 1 + 4) = 4; min(-2 - 2, -1 - 4) = -5; of the last one 0.
    np.testing.assert_allclose(
        agent.targets(data), [3.0, 0.75, 3.0, 4.0], rtol=1e-6
    )


def value_of_noise(agent, count):
    """The next actions, as the critics of an agent see them."""
    for critic in agent.target_critics:
        set_linear(critic, 0.0, 1.0, 0.0)
    ones, none = np.ones(count), zeros(count)
    data = batch(none, none, none, ones, ones)
    return np.array(agent.targets(data))


def test_smoothing_noise_is_clipped():
    agent = linear_agent(target_noise=1e6, target_noise_clip=0.25)
    set_linear(agent.target_actor, ATANH_HALF, 0.0)
    actions = value_of_noise(agent, 1000)
    values, counts = np.unique(actions.round(6), return_counts=True)
    np.testing.assert_array_equal(values, np.float32([0.25, 0.75]))
    assert counts.min() > 400
    # And with it the action to the unit box.
    agent = linear_agent(target_noise=1e6, target_noise_clip=0.75)
    set_linear(agent.target_actor, ATANH_HALF, 0.0)
    values = np.unique(value_of_noise(agent, 100).round(6))
    np.testing.assert_array_equal(values, np.float32([-0.25, 1.0]))


def test_smoothing_noise_is_normal_and_new_at_each_update():
    agent = linear_agent(target_noise=0.2, target_noise_clip=0.5)
    first = value_of_noise(agent, 10_000)
    # Clipping at 2.5 deviations takes 2 % off.
    assert first.mean() == pytest.approx(0.0, abs=0.01)
    assert first.std() == pytest.approx(0.195, abs=0.005)
    assert np.abs(first).max() == 0.5
    np.testing.assert_array_equal(value_of_noise(agent, 10_000), first)
    agent.updates.assign(1)
    assert np.corrcoef(value_of_noise(agent, 10_000), first)[0, 1] < 0.05


# Updates.

DATA = batch(
    observation=[1.0, 2.0],
    action=[0.5, -1.0],
    reward=[1.0, 0.0],
    discount=[0.0, 0.0],
    following=[0.0, 0.0],
    weight=[1.0, 0.5],
)


BY_HAND = {
    "actor": (0.0, ATANH_HALF),
    "critics": ((1.0, 2.0, 0.5), (0.0, 1.0, 0.0)),
}


def test_update_by_hand():
    # Priorities are of the mean of both critics.
    td_error = linear_agent(**BY_HAND).update(DATA)["td_error"]
    np.testing.assert_allclose(td_error, [-0.5, 0.25])
    agent = linear_agent(**BY_HAND, policy_delay=1)
    logs = agent.train_step(DATA)
    # Values 2.5, 0.5 and 0.5, -1: TD errors -1.5, -0.5 and 0.5, 1. Weights
    # gain the means of weight * error * (observation, action, 1):
    # -1, -0.25, -0.875 and 0.75, -0.125, 0.5.
    assert_linear(agent.critics[0], 0.0, 1.75, -0.375)
    assert_linear(agent.critics[1], 0.75, 0.875, 0.5)
    # Half of (2.25 + 0.5 * 0.25) / 2 + (0.25 + 0.5 * 1) / 2.
    assert float(logs["critic_loss"]) == pytest.approx(0.78125)
    assert float(logs["q_value"]) == pytest.approx(1.5)
    assert float(logs["gradient_norm"]) == pytest.approx(2.65625**0.5)
    # Q_1 of the action ½ is 2.5 and 3.5. Its slope of 2 is that before the
    # update; that of tanh is ¾: the means of weight * 1.5 * (observation, 1).
    assert float(logs["actor_loss"]) == pytest.approx(-2.125)
    assert_linear(agent.actor, 1.5, ATANH_HALF + 1.125)
    assert float(logs["loss"]) == pytest.approx(0.78125 - 2.125)


def test_delayed_update_by_hand():
    agent = linear_agent(**BY_HAND, policy_delay=2)
    logs = agent.train_step(DATA)
    assert_linear(agent.critics[0], 0.0, 1.75, -0.375)
    assert_linear(agent.actor, 0.0, ATANH_HALF)
    assert float(logs["actor_loss"]) == 0.0
    agent.statistics.reset_state()
    logs = agent.train_step(DATA)
    # Q_1 of the action ½ is ½ by now, and its slope 1.75.
    assert float(logs["actor_loss"]) == pytest.approx(-0.375)
    assert_linear(agent.actor, 1.3125, ATANH_HALF + 0.984375)
    logs = agent.train_step(DATA)
    # The third one reports the loss of the second: so their mean is the same.
    assert float(logs["actor_loss"]) == pytest.approx(-0.375)


def test_gradients_are_clipped_each_for_itself():
    agent = linear_agent(**BY_HAND, policy_delay=1, max_gradient_norm=0.1)
    before = [np.concatenate([w.ravel() for w in agent.actor.get_weights()])]
    logs = agent.train_step(DATA)
    after = np.concatenate([w.ravel() for w in agent.actor.get_weights()])
    assert np.linalg.norm(after - before) == pytest.approx(0.1, rel=1e-4)
    assert float(logs["gradient_norm"]) == pytest.approx(2.65625**0.5)


def minibatches(updates):
    """DATA so many times, for `fit`."""
    return tf.data.Dataset.from_tensors(DATA).repeat(updates)


def test_targets_move_with_the_policy():
    agent = linear_agent(**BY_HAND, policy_delay=2)
    agent.fit(minibatches(1), verbose=0)
    # The first fit began with a copy, and one update is none of the actor.
    assert_linear(agent.target_critics[0], 1.0, 2.0, 0.5)
    agent.fit(minibatches(1), verbose=0)
    assert_linear(
        agent.target_actor, 0.005 * 1.3125, ATANH_HALF + 0.005 * 0.984375
    )
    for target, critic, old in zip(
        agent.target_critics, agent.critics, BY_HAND["critics"], strict=True
    ):
        kernel, bias = critic.get_weights()
        new = np.array([*kernel.ravel(), *bias])
        assert_linear(target, *(0.995 * np.array(old) + 0.005 * new))
    before = agent.target_actor.get_weights()
    agent.fit(minibatches(1), verbose=0)
    assert_equal_weights(agent.target_actor.get_weights(), before)
    # They follow the delay unless told otherwise.
    agent = linear_agent(policy_delay=3)
    assert (agent.tau, agent.target_every) == (0.005, 3)
    agent = linear_agent(policy_delay=3, tau=0.1, target_every=2)
    assert (agent.tau, agent.target_every) == (0.1, 2)


# Counts, in `fit`.


def test_training_continues_after_loading(tmp_path):
    agent = small_agent(rl.TD3, policy_delay=2)
    agent.compile(run_eagerly=True)
    agent.fit(small_replay(updates_per_round=1), verbose=0)
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    assert iterations(loaded) == [0, 1, 1]
    more = {"updates_per_round": 1, "seed": 1}
    histories = [
        one.fit(small_replay(**more), verbose=0).history
        for one in (agent, loaded)
    ]
    # The delay goes on too: the second is one of the actor's.
    assert iterations(loaded) == [1, 2, 2]
    assert_equal_weights(loaded, agent)
    assert_equal_weights(
        [v.numpy() for v in loaded.optimizer.variables],
        [v.numpy() for v in agent.optimizer.variables],
    )
    for key in rl.TD3.statistics_names:
        assert histories[0][key] == histories[1][key], key


# Making one.


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("policy_delay", 0),
        ("policy_delay", 1.5),
        ("target_noise", -0.1),
        ("target_noise_clip", -0.1),
        ("exploration", -0.1),
        ("exploration", "loud"),
        ("gamma", 1.5),
    ],
)
def test_settings_out_of_range_are_refused(name, value):
    message = f"(?i){name}|scale.*0 or more"
    with pytest.raises(ValueError, match=message):
        rl.TD3(linear_actor(), linear_critic(), **{name: value})


def test_spaces_and_networks_that_do_not_fit_are_refused():
    for space, message in (
        (spaces.Discrete(3), "TD3 can act in, Box"),
        (spaces.Box(-1.0, np.inf, (1,), np.float32), "finite bounds"),
    ):
        env = PROBES[1](space)
        with pytest.raises(ValueError, match=message):
            rl.TD3.for_env(env)
        agent = rl.TD3(linear_actor(), linear_critic())
        agent.compile()
        with pytest.raises(ValueError, match=message):
            agent.fit(rl.ReplayDataset(env), verbose=0)
        assert agent.env_steps == 0
    bound = {"observation_space": UNIT, "action_space": UNIT}
    wide = keras.Sequential([keras.Input((1,)), keras.layers.Dense(2)])
    with pytest.raises(ValueError, match="actor's output"):
        rl.TD3(wide, linear_critic(), **bound)
    critic = linear_critic()
    with pytest.raises(ValueError, match="without common variables"):
        rl.TD3(linear_actor(), [critic, critic], **bound)


# TD3BC: what is added to the policy's update.

CLONED = {
    "observation": tf.constant([[0.0], [0.0]]),
    "next_observation": tf.constant([[0.0], [0.0]]),
    "action": tf.constant([[0.5], [-0.5]]),
    "reward": tf.constant([0.0, 0.0]),
    "discount": tf.constant([0.0, 0.0]),
}


def one_update(make, **settings):
    """An agent whose Q_1 is 2 a + 1 and whose π is 0, after an update."""
    agent = support.linear_agent(
        make,
        (0.0, 0.0),
        [(0.0, 2.0, 1.0), (0.0, -5.0, 9.0)],
        policy_delay=1,
        **settings,
    )
    logs = agent.train_step(CLONED)
    return agent, {key: float(value) for key, value in logs.items()}


def test_update_of_the_policy_by_hand():
    agent, logs = one_update(rl.TD3BC, alpha=2.5)
    # Q_1 of both is 1, λ = 2.5; the distances are a quarter each.
    assert logs["actor_loss"] == pytest.approx(0.25 - 2.5)
    # dL / da = mean(2 (0 - a)) - λ 2, of which the first is 0.
    assert_linear(agent.actor, 0.0, 5.0)


def test_alpha_of_zero_clones_the_weighted_actions():
    for wrong in (-1.0, float("nan")):
        with raises("alpha", str(wrong)):
            small_agent(rl.TD3BC, alpha=wrong)
    for batch in (
        {"action": tf.constant([[0.5], [0.0]])},
        {"weight": tf.constant([1.0, 0.0])},
    ):
        agent = support.linear_agent(
            rl.TD3BC,
            (0.0, 0.0),
            [(0.0, 2.0, 1.0)] * 2,
            policy_delay=1,
            alpha=0.0,
        )
        agent.train_step({**CLONED, **batch})
        assert_linear(agent.actor, 0.0, 0.5)


def test_critics_learn_as_those_of_td3():
    (one, _), (other, _) = one_update(rl.TD3BC), one_update(rl.TD3)
    for ours, theirs in zip(one.critics, other.critics, strict=True):
        assert_equal_weights(ours.get_weights(), theirs.get_weights())
