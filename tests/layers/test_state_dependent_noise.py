"""Generalized state-dependent exploration: its distribution, by hand."""

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.layers import StateDependentNoise
from keras_rl2.training.rounds import GraphRound

FEATURES = np.array([[3.0, 4.0], [0.5, 0.0]], "float32")


def layer_of(log_std, **settings):
    """Returns a layer with the given log σ `[F, A]`."""
    layer = StateDependentNoise(len(log_std[0]), **settings)
    layer.build((None, len(log_std)))
    layer.log_std.assign(log_std)
    return layer


def test_the_variance_is_the_sum_of_squared_features_times_variances():
    log_std = layer_of(np.log([[1.0, 2.0], [0.5, 1.0]]))(FEATURES)
    # 9 * 1 + 16 / 4, 9 * 4 + 16 * 1; and 1/4 of the first row alone.
    expected = [[13.0, 52.0], [0.25, 1.0]]
    np.testing.assert_allclose(np.exp(2 * log_std), expected, rtol=1e-5)


def test_the_noise_is_linear_in_the_features():
    layer = layer_of(np.log([[1.0, 2.0], [0.5, 1.0]]))
    noise = np.array([[1.0, -1.0, 2.0, 0.0], [0.0, 1.0, 5.0, 5.0]], "float32")
    found = layer.standardized(FEATURES, noise) * np.exp(layer(FEATURES))
    # 3 * 1 * 1 + 4 * 0.5 * 2, 3 * 2 * -1 + 4 * 1 * 0; and 0, 0.5 * 2 * 1.
    np.testing.assert_allclose(found, [[7.0, -6.0], [0.0, 1.0]], atol=1e-5)


def test_moments_are_those_of_the_distribution():
    """As in Stable-Baselines3's tests/test_distributions.py, 2e-3."""
    features = np.full((1, 64), 0.5, "float32")
    layer = layer_of(np.full((64, 2), -3.0))
    generator = np.random.default_rng(0)
    drawn = np.concatenate(
        [
            layer.standardized(
                np.repeat(features, 4000, axis=0),
                generator.standard_normal((4000, 128), dtype=np.float32),
            )
            for _ in range(10)
        ]
    ) * np.exp(layer(features))
    assert drawn.mean(axis=0) == pytest.approx([0.0, 0.0], abs=2e-3)
    std = np.sqrt(64 * 0.25 * np.exp(-6.0))
    assert drawn.std(axis=0) == pytest.approx([std, std], abs=2e-3)


def test_no_gradient_of_the_deviation_reaches_the_features():
    import tensorflow as tf

    layer, features = layer_of([[0.0], [0.0]]), tf.constant(FEATURES)
    with tf.GradientTape() as tape:
        tape.watch(features)
        total = tf.reduce_sum(layer(features))
    to_features, to_log_std = tape.gradient(
        total, [features, layer.log_std.value]
    )
    assert to_features is None
    # d log std / d log σ_f is the share of the feature in the variance.
    np.testing.assert_allclose(
        to_log_std, [[9 / 25 + 1.0], [16 / 25]], rtol=1e-4
    )


def agent_of(kind=rl.PPO, env="Pendulum-v1", **settings):
    settings = {"hidden": (4,), "state_dependent_noise": 0.0, **settings}
    return kind.for_env(env, seed=0, **settings)


@pytest.mark.parametrize("kind", [rl.PPO, rl.A2C, rl.SAC])
def test_an_agent_samples_by_the_noise_of_its_features(kind):
    agent = agent_of(kind)
    observation = np.random.default_rng(1).normal(size=(5, 3)).astype("float32")
    noise, _ = agent.noise.draw(np.random.default_rng(0), (5,))
    assert noise.shape == (5, 4)
    # By hand: the hidden layer, and σ = 1.
    hidden, output = (agent.actor.get_layer(n) for n in ("hidden_0", "output"))
    features = np.array(hidden(observation))
    mean = np.array(output(features))
    added = np.sum(features * noise, axis=1, keepdims=True)
    squash = np.tanh if kind is rl.SAC else np.asarray
    np.testing.assert_allclose(
        agent.sample_action(observation, noise), squash(mean + added), atol=2e-5
    )
    np.testing.assert_allclose(
        agent.greedy_action(observation), squash(mean), atol=1e-6
    )
    # The density of Raffin et al., 2021, equation 8, and that of tanh.
    variance = np.sum(features**2, axis=1, keepdims=True) + 1e-6
    action = np.full((5, 1), 0.3, "float32")
    inverse = np.arctanh(action) if kind is rl.SAC else action
    expected = -0.5 * (
        (inverse - mean) ** 2 / variance + np.log(2 * np.pi * variance)
    )
    if kind is rl.SAC:
        expected -= np.log(1 - action**2)
    policy = agent.distribution(observation)
    np.testing.assert_allclose(
        policy.log_prob(action), expected[:, 0], rtol=1e-4, atol=1e-5
    )
    if kind is not rl.SAC:
        np.testing.assert_allclose(
            policy.entropy(),
            0.5 * np.log(2 * np.pi * np.e * variance[:, 0]),
            rtol=1e-4,
        )


@pytest.mark.parametrize(("every", "draws"), [(2, [0, 0, 1]), (None, [0] * 3)])
def test_the_matrix_is_held_for_steps_of_a_rollout(every, draws):
    noise = agent_of(rl.SAC, resample_every=every).noise
    drawn, _ = noise.draw(np.random.default_rng(0), (3, 2))
    np.testing.assert_array_equal(drawn, drawn[np.array(draws) * 2])
    assert noise.parts == [{"kind": "normal", "size": 4, "hold": every}]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [rl.PPO, rl.SAC])
def test_it_acts_without_tensorflow_and_trains_log_std(kind):
    agent = agent_of(kind, state_dependent_noise=True)
    dataset = (
        rl.RolloutDataset("Pendulum-v1", horizon=32, passes=1, seed=0)
        if kind is rl.PPO
        else rl.ReplayDataset("Pendulum-v1", warm_up=64, batch_size=8, seed=0)
    )
    [layer] = [e for e in agent.actor.layers if hasattr(e, "log_std")]
    np.testing.assert_allclose(layer.log_std, -3.0)
    agent.fit(dataset, total_steps=130, verbose=0)
    assert not np.isclose(layer.log_std, -3.0, rtol=0, atol=1e-6).any()
    assert dataset.source.actor.backend == "litert"


def test_it_is_saved(tmp_path):
    agent = agent_of(rl.SAC, resample_every=4)
    agent.save(tmp_path / "agent.keras")
    loaded = rl.load(tmp_path / "agent.keras")
    assert loaded.noise.parts == agent.noise.parts
    observation = np.ones((2, 3), "float32")
    noise, _ = agent.noise.draw(np.random.default_rng(0), (2,))
    np.testing.assert_array_equal(
        loaded.sample_action(observation, noise),
        agent.sample_action(observation, noise),
    )


def test_a_network_of_ones_own_may_have_the_layer():
    inputs = keras.Input((3,))
    features = keras.layers.Dense(8, "relu")(inputs)
    mean = keras.layers.Dense(1)(features)
    log_std = StateDependentNoise(1, -2.0)(features)
    actor = keras.Model(inputs, keras.layers.Concatenate()([mean, log_std]))
    critic = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    agent = rl.PPO(actor, critic)
    dataset = rl.RolloutDataset("Pendulum-v1", horizon=8, passes=1, seed=0)
    agent.compile(run_eagerly=True)
    agent.fit(dataset, epochs=1, verbose=0)
    assert agent.noise.size == 8
    nested = keras.Model(inputs, actor(inputs))
    with pytest.raises(ValueError, match=r"StateDependentNoise among .*within"):
        rl.PPO(nested, critic).fit(dataset, epochs=1, verbose=0)


@pytest.mark.parametrize(
    ("kind", "env", "settings", "message"),
    [
        (rl.TD3, "Pendulum-v1", {}, "noise=False` for TD3"),
        (rl.PPO, "CartPole-v1", {}, "a Box of actions.*DiscreteHead"),
        (rl.SAC, "CartPole-v1", {}, "a Box of actions.*DiscreteHead"),
        (
            rl.PPO,
            "Pendulum-v1",
            {"memory": keras.layers.LSTMCell(4)},
            "no memory.*LSTMCell",
        ),
        (rl.PPO, "Pendulum-v1", {"resample_every": 0}, "resample_every=0"),
        (
            rl.PPO,
            "Pendulum-v1",
            {"resample_every": 5, "state_dependent_noise": False},
            "`resample_every=None` without .*5",
        ),
        (rl.PPO, "Pendulum-v1", {"state_dependent_noise": "yes"}, "yes"),
    ],
)
def test_it_is_refused_where_it_has_no_meaning(kind, env, settings, message):
    with pytest.raises(ValueError, match=message):
        agent_of(kind, env, **settings)


@pytest.mark.slow
def test_it_is_drawn_within_rounds_in_the_graph():
    env = rl.envs.GraphVectorEnv("Pendulum-v1", num_envs=4)
    agent = agent_of(rl.PPO, env)
    before = agent.get_weights()
    dataset = rl.RolloutDataset(env, horizon=16, passes=1, seed=0)
    agent.fit(dataset, epochs=2, verbose=0)
    assert isinstance(agent.rounds, GraphRound)
    for one, other in zip(before, agent.get_weights(), strict=True):
        assert not np.array_equal(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "float64"])
@pytest.mark.parametrize("kind", [rl.PPO, rl.SAC])
def test_it_acts_in_other_dtypes(kind, dtype):
    agent = agent_of(kind, dtype=dtype, state_dependent_noise=-3.0)
    observation = np.ones((5, 3), "float32")
    action = agent.act(observation)
    assert np.isfinite(action).all()
    assert len(np.unique(action)) == 5
