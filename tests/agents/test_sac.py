"""SAC: updates against NumPy, target entropies, and noise that is added."""

import math

import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces

import keras_rl2 as rl
from support.deterministic import BATCH
from support.deterministic import UNIT
from support.deterministic import linear_critic
from support.deterministic import linear_network
from support.deterministic import small_agent
from support.deterministic import small_replay
from support.deterministic import squashed_policy
from support.gradients import numerical_gradient

CHOICES = spaces.Discrete(2)
ALPHA = 0.5


def make_agent(critics, action_space, **settings):
    """An agent of linear networks that learns by plain SGD of rate 1."""
    agent = rl.SAC(
        linear_network([0.3, -0.2], [0.1, -0.5], "actor"),
        critics,
        observation_space=UNIT,
        action_space=action_space,
        **{"seed": 0, "temperature": ALPHA, **settings},
    )
    agent.compile(keras.optimizers.SGD(1.0), run_eagerly=True)
    # The first update of all would begin with a copy.
    agent.updates.assign(1)
    for target, shift in zip(agent.target_critics, (0.3, -0.4), strict=True):
        target.set_weights([w + shift for w in target.get_weights()])
    return agent


def box_agent(**settings):
    critics = [
        linear_critic(1.0, 2.0, 0.5, name="critic_0"),
        linear_critic(-0.5, 1.5, 0.4, name="critic_1"),
    ]
    return make_agent(critics, UNIT, **settings)


def discrete_agent(**settings):
    critics = [
        linear_network([1.0, -1.0], [0.5, 0.2], "critic_0"),
        linear_network([-0.5, 0.7], [0.1, 0.6], "critic_1"),
    ]
    return make_agent(critics, CHOICES, **settings)


ACTIONS = {
    "box": np.array([[0.5], [-1.0], [0.2]]),
    "discrete": np.array([0, 1, 0]),
}


def minibatch(kind):
    batch = {k: tf.constant(v, "float32") for k, v in BATCH.items()}
    dtype = {"box": "float32", "discrete": "int32"}[kind]
    return {**batch, "action": tf.constant(ACTIONS[kind], dtype)}


# The same in NumPy, from the paper.


def affine(weights, inputs):
    kernel, bias = weights
    return inputs @ kernel + bias


def box_values(critics, observation, action):
    both = np.concatenate([observation, action], axis=1)
    return [affine(weights, both)[:, 0] for weights in critics]


def box_soft_value(actor, critics, observation, noise):
    action, log_prob = squashed_policy(affine(actor, observation), noise)
    values = box_values(critics, observation, action)
    return np.minimum(*values) - ALPHA * log_prob, -log_prob


def box_taken(critics):
    return box_values(critics, BATCH["observation"], ACTIONS["box"])


def discrete_soft_value(actor, critics, observation, noise):
    del noise
    logits = affine(actor, observation)
    log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    values = np.minimum(*(affine(c, observation) for c in critics))
    probs = np.exp(log_probs)
    value = (probs * (values - ALPHA * log_probs)).sum(axis=1)
    return value, -(probs * log_probs).sum(axis=1)


def discrete_taken(critics):
    index = ACTIONS["discrete"][:, None]
    return [
        np.take_along_axis(affine(c, BATCH["observation"]), index, 1)[:, 0]
        for c in critics
    ]


KINDS = {
    "box": (box_agent, box_soft_value, box_taken),
    "discrete": (discrete_agent, discrete_soft_value, discrete_taken),
}


def float64(network):
    return [np.array(w, np.float64) for w in network.get_weights()]


class Reference:
    """The expected result of one update, from the weights before it."""

    def __init__(self, agent, kind):
        _, self.soft_value, self.taken = KINDS[kind]
        self.actor = float64(agent.actor)
        self.critics = [float64(c) for c in agent.critics]
        targets = [float64(c) for c in agent.target_critics]
        noise = [np.array(agent.draw_normal((3, 1), i)) for i in (0, 1)]
        following, _ = self.soft_value(
            self.actor, targets, BATCH["next_observation"], noise[0]
        )
        self.target = BATCH["reward"] + BATCH["discount"] * following
        self.noise = noise[1]

    def critic_loss(self):
        return sum(
            0.5 * np.mean(BATCH["weight"] * (self.target - value) ** 2)
            for value in self.taken(self.critics)
        )

    def actor_loss(self):
        value, _ = self.soft_value(
            self.actor, self.critics, BATCH["observation"], self.noise
        )
        return -np.mean(BATCH["weight"] * value)

    def entropy(self):
        _, entropy = self.soft_value(
            self.actor, self.critics, BATCH["observation"], self.noise
        )
        return entropy.mean()

    def lacking(self):
        """The weighted excess of the entropy over the target."""
        _, entropy = self.soft_value(
            self.actor, self.critics, BATCH["observation"], self.noise
        )
        return np.mean(BATCH["weight"] * (entropy + 0.75))


@pytest.mark.parametrize("kind", KINDS)
def test_an_update_is_that_of_the_paper(kind):
    agent = KINDS[kind][0](learn_temperature=False)
    agent.train_step(minibatch(kind))
    assert float(agent.log_temperature.numpy()) == np.float32(math.log(ALPHA))
    agent = KINDS[kind][0](target_entropy=-0.75)
    expected = Reference(agent, kind)
    lacking = expected.lacking()
    # Priorities are of the mean of both critics.
    td_error = KINDS[kind][0]().update(minibatch(kind))["td_error"]
    values = np.mean(expected.taken(expected.critics), axis=0)
    np.testing.assert_allclose(td_error, expected.target - values, rtol=1e-5)
    logs = agent.train_step(minibatch(kind))
    for name in ("critic_loss", "actor_loss", "entropy"):
        value = getattr(expected, name)()
        assert float(logs[name]) == pytest.approx(value, rel=1e-5), name
    assert float(logs["temperature"]) == pytest.approx(ALPHA)
    for network, weights, loss in (
        (agent.actor, expected.actor, expected.actor_loss),
        (agent.critics[0], expected.critics[0], expected.critic_loss),
        (agent.critics[1], expected.critics[1], expected.critic_loss),
    ):
        gradients = numerical_gradient(loss, weights)
        for new, old, gradient in zip(
            network.get_weights(), weights, gradients, strict=True
        ):
            np.testing.assert_allclose(new, old - gradient, rtol=1e-4)
    # The temperature rises by what the entropy lacks.
    assert float(agent.log_temperature.numpy()) == pytest.approx(
        math.log(ALPHA) - lacking, rel=1e-5
    )


@pytest.mark.slow
def test_a_graph_reads_variables_before_it_changes_them():
    """TensorFlow's graph optimizer may lose the order of the two.

    It did so by chance, in a third of the graphs of such an agent: targets
    were then those of a policy that was being changed.
    """
    env = gymnasium.make_vec("Pendulum-v1", num_envs=1)
    batch = {
        **minibatch("box"),
        "observation": tf.ones((3, 3)),
        "next_observation": -tf.ones((3, 3)),
        "action": tf.constant(ACTIONS["box"], "float32"),
    }

    def make():
        agent = rl.SAC.for_env(env, hidden=(8,), seed=0)
        agent.compile(keras.optimizers.SGD(0.1))
        return agent

    agent = make()
    expected = agent.update(batch)["td_error"]
    for _ in range(12):
        other = make()
        td_error = tf.function(other.update)(batch)["td_error"]
        np.testing.assert_allclose(td_error, expected, rtol=1e-5)
        for new, old in zip(
            other.get_weights(), agent.get_weights(), strict=True
        ):
            np.testing.assert_allclose(new, old, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        ("act_box", -1.0),
        ("act_box_matrix", -4.0),
        ("act_discrete", 0.89 * math.log(3)),
    ],
)
def test_the_published_target_entropy(pair, expected):
    """The temperature is constant at the target entropy."""
    agent = small_agent(rl.SAC, pair)
    assert agent._target_entropy(None) == pytest.approx(expected), pair


# Noise that is added.


def certain_agent(action, **settings):
    """An agent whose policy gives one action, nearly without chance."""
    agent = box_agent(**settings)
    agent.actor.set_weights(
        [np.zeros((1, 2)), np.array([np.arctanh(action), -20.0])]
    )
    return agent


def test_exploration_is_added_in_the_unit_box():
    agent = certain_agent(0.5, exploration=0.1)
    noise, _ = agent.noise.draw(np.random.default_rng(0), (5000,))
    assert noise.shape == (5000, 2)
    actions = np.array(agent.sample_action(np.zeros((5000, 1)), noise))
    np.testing.assert_allclose(
        actions, np.clip(0.5 + noise[:, 1:], -1, 1), atol=1e-4
    )
    assert actions.std() == pytest.approx(0.1, rel=0.05)
    assert actions.mean() == pytest.approx(0.5, abs=0.01)
    agent = certain_agent(0.9, exploration=10.0)
    actions = np.array(agent.sample_action(np.zeros((5000, 1)), noise * 100))
    assert actions.max() == 1.0
    assert actions.min() == -1.0


def test_the_policys_own_chance_is_that_without_exploration():
    observation = np.linspace(-1, 1, 9, dtype=np.float32)[:, None]
    plain, noisy = box_agent(), box_agent(exploration=0.0)
    one, _ = plain.noise.draw(np.random.default_rng(3), (9,))
    other, _ = noisy.noise.draw(np.random.default_rng(3), (9,))
    np.testing.assert_allclose(
        plain.sample_action(observation, one),
        noisy.sample_action(observation, other),
        rtol=1e-6,
    )


def test_the_scale_of_exploration_follows_environment_steps():
    schedule = keras.optimizers.schedules.PolynomialDecay(1.0, 100, 0.5)
    agent = small_agent(
        rl.SAC,
        "act_box_matrix",
        exploration=rl.exploration.OrnsteinUhlenbeckNoise(schedule),
    )
    agent.compile(run_eagerly=True)
    replay = small_replay("act_box_matrix", updates_per_round=1)
    history = agent.fit(replay, verbose=0).history
    assert agent.env_steps == 12
    assert history["exploration_scale"] == [pytest.approx(0.94)]
    action = agent.act(np.full(3, 0.5, np.float32))
    assert agent.action_space.contains(action)


def test_settings_out_of_range_are_refused():
    for name, value in (
        ("temperature", 0.0),
        ("temperature", math.nan),
        ("target_entropy", math.inf),
        ("exploration", -0.1),
        ("exploration", "loud"),
        ("gamma", 1.5),
    ):
        message = f"(?i){name}|scale.*0 or more"
        with pytest.raises(ValueError, match=message):
            box_agent(**{name: value})
    with pytest.raises(ValueError, match=r"exploration=None.*GaussianNoise"):
        discrete_agent(exploration=0.1)
    with pytest.raises(ValueError, match="'pink' or 'white'"):
        small_agent(rl.SAC, noise_color="brown")


def drawn(steps=4000, envs=8, **settings):
    agent = small_agent(rl.SAC, **settings)
    noise, _ = agent.noise.draw(np.random.default_rng(0), (steps, envs))
    return noise[..., 0]


def correlation(noise, lag):
    return float(np.mean(noise[lag:] * noise[:-lag]) / np.mean(noise**2))


def test_pink_noise_is_alike_at_steps_near_each_other_and_white_is_not():
    noise = drawn()
    # Each part of five keeps exp(-lag / 4^k) of itself; see `PinkNoise`.
    for lag in (1, 16):
        kept = sum(math.exp(-lag / 4**k) for k in range(1, 5)) / 5
        assert correlation(noise, lag) == pytest.approx(kept, abs=0.06)
    assert noise.std() == pytest.approx(1.0, abs=0.06)
    noise = drawn(noise_color="white")
    assert correlation(noise, 1) == pytest.approx(0.0, abs=0.03)
    assert noise.std() == pytest.approx(1.0, abs=0.03)


def test_the_temperature_is_float32_whatever_the_weights_are():
    for dtype in ("float16", "mixed_float16", "mixed_bfloat16", "float32"):
        agent = rl.SAC.for_env(
            "Pendulum-v1", hidden=(4,), temperature=0.01, dtype=dtype
        )
        temperature = agent.current_temperature
        assert temperature.dtype == "float32", dtype
        precision = 1e-3 if dtype == "float16" else 1e-6
        assert float(temperature) == pytest.approx(0.01, rel=5 * precision)
