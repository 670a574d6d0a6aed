"""CrossQ: updates against NumPy, statistics of layers, and no targets."""

import inspect
import math

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_rl2 as rl
from keras_rl2.policies.actors import ActorSnapshot
from support.agents import weights_of
from support.deterministic import BATCH
from support.deterministic import UNIT
from support.deterministic import small_agent
from support.deterministic import small_replay
from support.deterministic import squashed_policy
from support.gradients import numerical_gradient

ALPHA = 0.5
MOMENTUM, EPSILON = 0.9, 0.01
TARGET_ENTROPY = -0.75

BATCH = {**BATCH, "action": np.array([[0.5], [-1.0], [0.2]])}
MINIBATCH = {k: tf.constant(v, "float32") for k, v in BATCH.items()}


def normalised(inputs, units, name, weights):
    """A network of one normalization and one dense layer."""
    both = inputs[0] if len(inputs) == 1 else keras.layers.Concatenate()(inputs)
    layer = keras.layers.BatchNormalization(momentum=MOMENTUM, epsilon=EPSILON)
    outputs = keras.layers.Dense(units)(layer(both))
    network = keras.Model(inputs, outputs, name=name)
    network.set_weights([np.array(each) for each in weights])
    return network


def make_agent(**settings):
    """An agent of networks with a linear layer, of plain SGD of rate 1."""
    # gamma, beta, moving mean, moving variance, kernel, bias.
    actor = normalised(
        [keras.Input((1,))],
        2,
        "actor",
        [[1.5], [0.2], [0.3], [2.0], [[0.3, -0.2]], [0.1, -0.5]],
    )
    critics = [
        normalised(
            [keras.Input((1,)), keras.Input((1,))], 1, f"critic_{i}", weights
        )
        for i, weights in enumerate(
            [
                [[1.1, 0.9], [0.1, 0], [0, 0], [1, 2], [[1.0], [2.0]], [0.5]],
                [[0.8, 1.2], [0, 0.3], [1, 0], [3, 1], [[-0.5], [1.5]], [0.4]],
            ]
        )
    ]
    agent = rl.CrossQ(
        actor,
        critics,
        observation_space=UNIT,
        action_space=UNIT,
        **{
            "seed": 0,
            "temperature": ALPHA,
            "target_entropy": TARGET_ENTROPY,
            "policy_delay": 1,
            **settings,
        },
    )
    agent.compile(keras.optimizers.SGD(1.0), run_eagerly=True)
    return agent


# The same in NumPy, from the paper.


class Network:
    """A normalization and a dense layer, which may be in training mode."""

    def __init__(self, network):
        self.weights = [np.array(w, np.float64) for w in network.get_weights()]

    def __call__(self, inputs, training=False, moves=False):
        gamma, beta, mean, variance, kernel, bias = self.weights
        if training:
            mean, variance = inputs.mean(axis=0), inputs.var(axis=0)
        if moves:
            for moving, of_batch in ((2, mean), (3, variance)):
                self.weights[moving] *= MOMENTUM
                self.weights[moving] += (1 - MOMENTUM) * of_batch
        scaled = (inputs - mean) / np.sqrt(variance + EPSILON)
        return (gamma * scaled + beta) @ kernel + bias

    @property
    def trained(self):
        return [*self.weights[:2], *self.weights[4:]]


class Reference:
    """The expected result of one update, from the weights before it."""

    def __init__(self, agent):
        self.actor = Network(agent.actor)
        self.critics = [Network(each) for each in agent.critics]
        noise = [np.array(agent.draw_normal((3, 1), i)) for i in (0, 1)]
        self.noise = noise[1]
        following = BATCH["next_observation"]
        action, self.next_log_prob = squashed_policy(
            self.actor(following), noise[0]
        )
        self.inputs = np.concatenate(
            [
                np.concatenate([BATCH["observation"], following]),
                np.concatenate([BATCH["action"], action]),
            ],
            axis=1,
        )
        later = [c(self.inputs, training=True)[3:, 0] for c in self.critics]
        next_value = np.minimum(*later) - ALPHA * self.next_log_prob
        self.target = BATCH["reward"] + BATCH["discount"] * next_value

    def critic_loss(self):
        return sum(
            0.5
            * np.mean(
                BATCH["weight"]
                * (self.target - critic(self.inputs, training=True)[:3, 0]) ** 2
            )
            for critic in self.critics
        )

    def move_statistics(self):
        for critic in self.critics:
            critic(self.inputs, training=True, moves=True)
        self.actor(BATCH["observation"], training=True, moves=True)

    def of_policy(self):
        observation = BATCH["observation"]
        action, log_prob = squashed_policy(
            self.actor(observation, training=True), self.noise
        )
        both = np.concatenate([observation, action], axis=1)
        values = [critic(both)[:, 0] for critic in self.critics]
        return np.minimum(*values) - ALPHA * log_prob, -log_prob

    def actor_loss(self):
        return -np.mean(BATCH["weight"] * self.of_policy()[0])

    def lacking(self):
        """The weighted excess of the entropy over its target."""
        return np.mean(BATCH["weight"] * (self.of_policy()[1] - TARGET_ENTROPY))


def test_an_update_is_that_of_the_paper():
    agent = make_agent()
    expected = Reference(agent)
    critic_loss = expected.critic_loss()
    gradients = [
        numerical_gradient(expected.critic_loss, each.trained)
        for each in expected.critics
    ]
    # The policy is judged by statistics that know this minibatch.
    expected.move_statistics()
    gradients.append(
        numerical_gradient(expected.actor_loss, expected.actor.trained)
    )
    lacking = expected.lacking()
    temperature_loss = math.log(ALPHA) * lacking
    logs = agent.train_step(MINIBATCH)
    assert float(logs["critic_loss"]) == pytest.approx(critic_loss, rel=1e-5)
    assert float(logs["actor_loss"]) == pytest.approx(
        expected.actor_loss() + temperature_loss, rel=1e-5
    )
    assert float(logs["entropy"]) == pytest.approx(
        -expected.next_log_prob.mean(), rel=1e-5
    )
    assert float(logs["temperature"]) == pytest.approx(ALPHA)
    networks = [*agent.critics, agent.actor]
    references = [*expected.critics, expected.actor]
    for network, each, changes in zip(
        networks, references, gradients, strict=True
    ):
        gamma, beta, mean, variance, *dense = network.get_weights()
        for new, old, gradient in zip(
            [gamma, beta, *dense], each.trained, changes, strict=True
        ):
            np.testing.assert_allclose(
                new, old - gradient, rtol=1e-4, atol=1e-5
            )
        np.testing.assert_allclose(mean, each.weights[2], rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(variance, each.weights[3], rtol=1e-5)
    # The temperature rises by what the entropy lacks.
    assert float(agent.log_temperature.numpy()) == pytest.approx(
        math.log(ALPHA) - lacking, rel=1e-5
    )


@pytest.mark.parametrize(
    "how", ["graph", pytest.param("xla", marks=pytest.mark.slow)]
)
def test_every_third_update_is_one_of_the_policy(how):
    agent = make_agent(policy_delay=3)
    agent.compile(keras.optimizers.SGD(0.01), run_eagerly=True)
    agent.build_optimizer()
    step = tf.function(
        agent.train_step, jit_compile=how == "xla", autograph=False
    )
    losses, changed = [], []
    for _ in range(6):
        before = [*agent.actor.get_weights(), agent.log_temperature.numpy()]
        critic = agent.critics[0].get_weights()
        agent.statistics.reset_state()
        losses.append(float(step(MINIBATCH)["actor_loss"]))
        after = [*agent.actor.get_weights(), agent.log_temperature.numpy()]
        # Statistics of layers stay, too, where the policy is not updated.
        changed.append(
            [bool((x != y).any()) for x, y in zip(before, after, strict=True)]
        )
        for old, new in zip(
            critic, agent.critics[0].get_weights(), strict=True
        ):
            assert (old != new).any()
    no, yes = [False] * 7, [True] * 7
    assert changed == [no, no, yes, no, no, yes]
    assert losses[:2] == [0.0, 0.0]
    assert losses[2] == losses[3] == losses[4] != losses[5]


def test_crossq_has_no_target_networks():
    agent = small_agent(rl.CrossQ)
    assert agent.target_pairs == []
    assert agent.target_critics == []
    assert not [v.path for v in agent.variables if "target" in v.path]
    for names in (
        agent.get_config(),
        rl.CrossQ.argument_names(),
        inspect.signature(rl.CrossQ.for_env).parameters,
    ):
        assert not {"tau", "target_every"} & set(names)
    for name in ("tau", "target_every"):
        with pytest.raises(TypeError, match="an argument that CrossQ takes"):
            small_agent(rl.CrossQ, **{name: 1})
    with pytest.raises(ValueError, match=r"Received: Discrete"):
        small_agent(rl.CrossQ, "act_discrete")


def test_default_networks_are_normalised():
    agent = rl.CrossQ.for_env("Pendulum-v1", seed=0)
    assert [units_of(n) for n in (agent.actor, *agent.critics)] == [
        [256, 256, 2],
        [256, 256, 1],
        [256, 256, 1],
    ]
    for network in (agent.actor, *agent.critics):
        kinds = [type(layer).__name__ for layer in network.layers]
        assert kinds.count("BatchNormalization") == 3
    asked = rl.CrossQ.for_env(
        "Pendulum-v1", hidden=(8,), normalization="none", seed=0
    )
    assert [units_of(n) for n in (asked.actor, *asked.critics)] == [
        [8, 2],
        [8, 1],
        [8, 1],
    ]
    assert not asked.critics[0].non_trainable_variables
    rates = asked.compile_arguments
    assert rates.optimizer.beta_1 == rates.critic_optimizer.beta_1 == 0.5
    assert float(rates.critic_optimizer.learning_rate) == pytest.approx(1e-3)


def units_of(network):
    dense = keras.layers.Dense
    return [each.units for each in network.layers if isinstance(each, dense)]


@pytest.fixture(scope="module")
def trained():
    agent = small_agent(rl.CrossQ, policy_delay=1)
    agent.compile(run_eagerly=True)
    agent.fit(small_replay(updates_per_round=1), verbose=0)
    return agent


def test_acting_is_in_inference_mode(trained):
    observations = np.random.default_rng(0).normal(5.0, 3.0, (16, 3))
    observations = observations.astype("float32")
    before = weights_of(trained)
    together = trained.act(observations, deterministic=True)
    for one, action in zip(observations, together, strict=True):
        alone = trained.act(one, deterministic=True)
        np.testing.assert_allclose(alone, action, rtol=1e-5, atol=1e-6)
    for old, new in zip(before, weights_of(trained), strict=True):
        np.testing.assert_array_equal(old, new)


def test_statistics_are_copied_to_actors_with_the_weights(trained):
    first = small_agent(rl.CrossQ).actor.variables
    assert any(
        (v.numpy() != w.numpy()).any()
        for v, w in zip(trained.actor.variables, first, strict=True)
        if "moving" in v.path
    )
    observations = np.random.default_rng(0).normal(0.0, 2.0, (4, 3))
    observations = observations.astype("float32")
    actor = ActorSnapshot(trained.policy, 4, deterministic=True)
    noise = np.zeros((4, trained.noise.size), "float32")
    before = actor(observations, noise)[0]
    np.testing.assert_allclose(
        before, trained.act(observations, deterministic=True), atol=1e-5
    )
    for variable in trained.actor.variables:
        if "moving_mean" in variable.path:
            variable.assign(variable + 1.0)
    np.testing.assert_array_equal(actor(observations, noise)[0], before)
    actor.sync()
    assert (actor(observations, noise)[0] != before).any()


def returns(env, steps):
    """Returns the greedy return of each of three seeds, with all defaults.

    Measured: -150, -142, -142 on Pendulum-v1 and 1507, 1043, 935 on
    HalfCheetah-v5, where SAC had 54, -36, 119 after as many steps.
    """
    found = []
    for seed in range(3):
        agent = rl.CrossQ.for_env(env, seed=seed)
        replay = rl.ReplayDataset(env, seed=seed)
        agent.fit(replay, total_steps=steps, verbose=0)
        result = agent.evaluate(env, episodes=20, num_envs=20, seed=1000)
        found.append(result["episode_return"])
    return found


@pytest.mark.learning
def test_crossq_swings_the_pendulum_up():
    # Published of SAC after twice as many steps: -157.0.
    assert np.median(returns("Pendulum-v1", 10_000)) >= -157.0 * 1.1


@pytest.mark.learning
def test_crossq_makes_the_cheetah_run_early():
    pytest.importorskip("mujoco")
    assert np.median(returns("HalfCheetah-v5", 15_000)) >= 800.0
