"""Networks of users: made for plain Keras, without a config."""

import warnings

import gymnasium
import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.networks import network_copies
from support.agents import make_env
from support.agents import make_replay

BOX = "act_box"


class Custom(keras.Model):
    """A network that says nothing of itself to Keras."""

    def __init__(self, outputs=2, activation=None, rate=0.0):
        super().__init__()
        self.first = keras.layers.Dense(8, activation="tanh")
        self.second = keras.layers.Dense(8, activation="tanh")
        self.drop = keras.layers.Dropout(rate, seed=1)
        self.out = keras.layers.Dense(outputs, activation=activation)

    def call(self, x):
        return self.out(self.drop(self.second(self.first(x))))


class Scaled(keras.Model):
    """A network with values that its weights do not show."""

    def __init__(self, scale=1.0, activation="relu", **kwargs):
        super().__init__(**kwargs)
        self.scale = scale
        self.hidden = keras.layers.Dense(4, activation)
        self.out = keras.layers.Dense(3)

    def call(self, x):
        return self.scale * self.out(self.hidden(x))


class CustomCritic(keras.Model):
    def __init__(self, units):
        super().__init__()
        self.hidden = keras.layers.Dense(units, activation="relu")
        self.out = keras.layers.Dense(1)

    def call(self, inputs):
        observation, action = inputs
        both = keras.ops.concatenate([observation, action], axis=-1)
        return self.out(self.hidden(both))


def make(name):
    """Makes an agent of custom networks and its dataset."""
    if name == "DQN":
        agent, env = rl.DQN(Custom(3), seed=0), make_env()
        return agent, make_replay(env, updates_per_round=1)
    units = 2 if name == "SAC" else 1
    agent = getattr(rl, name)(Custom(units), CustomCritic(5), seed=0)
    return agent, make_replay(make_env(BOX), updates_per_round=1)


def test_a_network_without_a_config_trains():
    agent, dataset = make("SAC")
    agent.compile(run_eagerly=True)
    agent.bind(dataset.env.observation_space, dataset.env.action_space)
    before = [np.array(each) for each in agent.get_weights()]
    agent.fit(dataset, verbose=0)
    for old, new in zip(before, agent.get_weights(), strict=True):
        assert (old != new).any()
    assert agent.act(np.zeros((4, 3)), deterministic=True).shape[0] == 4


def test_targets_are_copies_of_the_given_network():
    agent, dataset = make("TD3")
    agent.bind(dataset.env.observation_space, dataset.env.action_space)
    observation = np.random.default_rng(0).normal(size=(5, 3)).astype("f")
    both = [observation, np.zeros((5, 1), "float32")]
    for target, source in agent.target_pairs:
        given = observation if source is agent.actor else both
        np.testing.assert_array_equal(target(given), source(given))
        assert not target.trainable_variables
        source.set_weights([1.0 + w for w in source.get_weights()])
        assert (np.array(target(given)) != np.array(source(given))).any()


def test_a_twin_starts_from_weights_of_its_own():
    agent, dataset = make("TD3")
    agent.bind(dataset.env.observation_space, dataset.env.action_space)
    one, other = (critic.get_weights() for critic in agent.critics)
    assert (one[0] != other[0]).any()
    # Of the same distribution, whatever it is.
    np.testing.assert_allclose(
        np.sort(one[0].ravel()), np.sort(other[0].ravel())
    )
    # Many: all hidden units of a small network may be 0 for a single one.
    observation = np.random.default_rng(0).normal(size=(64, 3)).astype("f")
    given = [observation, np.ones((64, 1), "f")]
    first, second = (np.array(critic(given)) for critic in agent.critics)
    assert (first != second).any()


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_a_copy_drops_out_only_in_training(rate):
    network = Custom(2, rate=rate)
    network(np.zeros((1, 3), "float32"))
    twin = network_copies.sibling(network)
    given = np.ones((64, 3), "float32")
    first, second = (np.array(twin(given, training=True)) for _ in range(2))
    assert (first != second).any() == (rate > 0)
    np.testing.assert_array_equal(twin(given), twin(given))


def test_a_copy_keeps_moving_statistics_of_its_own():
    class Normalised(keras.Model):
        def __init__(self):
            super().__init__()
            self.norm = keras.layers.BatchNormalization(momentum=0.5)
            self.out = keras.layers.Dense(1)

        def call(self, x, training=False):
            return self.out(self.norm(x, training=training))

    network = Normalised()
    network(np.zeros((1, 3), "float32"))
    copy = network_copies.sibling(network)
    copy(np.full((8, 3), 4.0, "float32"), training=True)
    mean = [w for w in copy.weights if w.name.endswith("moving_mean")]
    np.testing.assert_allclose(mean[0], [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(network.norm.moving_mean, [0.0, 0.0, 0.0])


@pytest.mark.parametrize(
    "network",
    [
        Custom(),
        keras.Sequential([keras.layers.Dense(8), keras.layers.Dense(2)]),
    ],
)
def test_a_sibling_keeps_frozen_weights(network):
    network(np.zeros((1, 3), "float32"))
    network.layers[0].trainable = False
    twin = network_copies.sibling(network)
    one, other = network.get_weights(), twin.get_weights()
    np.testing.assert_array_equal(one[0], other[0])
    assert (one[-2] != other[-2]).any()


def test_networks_that_share_layers_are_not_saved(tmp_path):
    observation = keras.Input((4,))
    hidden = keras.layers.Dense(8, name="trunk")(observation)
    actor, critic = (
        keras.Model(observation, keras.layers.Dense(size)(hidden))
        for size in (2, 1)
    )
    agent = rl.PPO(actor, critic)
    with pytest.raises(ValueError, match=r"share no layers.*trunk/kernel"):
        agent.save(tmp_path / "agent.keras")
    assert not list(tmp_path.iterdir())


def test_saving_a_network_without_get_config_is_refused(tmp_path):
    agent, dataset = make("DQN")
    agent.bind(dataset.env.observation_space, dataset.env.action_space)
    with pytest.raises(ValueError, match=r"Expected Custom to have a `get_con"):
        agent.save(tmp_path / "agent.keras")
    assert not list(tmp_path.iterdir())
    agent.save_weights(tmp_path / "agent.weights.h5")
    other, _ = make("DQN")
    other.bind(agent.observation_space, agent.action_space)
    other.load_weights(tmp_path / "agent.weights.h5")
    for one, two in zip(agent.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(one, two)


# What a network ends in.


class SoftmaxInCall(keras.Model):
    def __init__(self):
        super().__init__()
        self.out = keras.layers.Dense(2)

    def call(self, x):
        return keras.ops.softmax(self.out(x))


@pytest.mark.parametrize(
    "make_actor", [lambda: Custom(2, "softmax"), SoftmaxInCall]
)
def test_probabilities_are_those_that_the_network_gives(make_actor):
    actor = make_actor()
    agent = rl.PPO(
        actor,
        keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)]),
        observation_space=gymnasium.spaces.Box(-1.0, 1.0, (2,)),
        action_space=gymnasium.spaces.Discrete(2),
    )
    batch = np.random.default_rng(0).normal(size=(9, 2)).astype("float32")
    action, log_prob = agent.act(batch, return_log_prob=True)
    expected = np.log(np.array(actor(batch))[np.arange(9), action])
    np.testing.assert_allclose(log_prob, expected, rtol=1e-5)


@pytest.mark.parametrize("where", ["layer", "call"])
def test_an_actor_that_ends_in_tanh_gives_the_action(where):
    class TanhInCall(keras.Model):
        def __init__(self):
            super().__init__()
            self.out = keras.layers.Dense(1)

        def call(self, x):
            return keras.ops.tanh(self.out(x))

    actor = Custom(1, "tanh") if where == "layer" else TanhInCall()
    env = make_env(BOX)
    agent = rl.TD3(
        actor,
        CustomCritic(4),
        observation_space=env.observation_space,
        action_space=env.action_space,
    )
    batch = np.random.default_rng(0).normal(size=(9, 3)).astype("float32")
    action = agent.act(batch, deterministic=True)
    np.testing.assert_allclose(action, actor(batch), rtol=1e-4, atol=1e-6)


def test_other_endings_are_warned_of_with_the_remedy():
    env = make_env()
    for agent, what in (
        (rl.DQN(Custom(3, "softmax")), "softmax"),
        (rl.PPO(Custom(3, "relu"), Custom(1)), "relu"),
        (rl.A2C(Custom(3), Custom(1, "softmax")), "one unit is always"),
        (rl.SAC(Custom(3), Custom(3, "sigmoid")), "sigmoid"),
    ):
        with pytest.warns(UserWarning, match="no activation") as caught:
            agent.bind(env.observation_space, env.action_space)
        assert any(what in str(each.message) for each in caught)


@pytest.mark.parametrize("bound", [1.0, 2.0])
def test_a_tanh_for_means_is_warned_of_where_it_is_too_narrow(bound):
    observations = gymnasium.spaces.Box(-1.0, 1.0, (3,))
    actions = gymnasium.spaces.Box(-bound, bound, (1,))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        agent = rl.PPO(Custom(1, "tanh"), Custom(1))
        agent.bind(observations, actions)
    named = [each for each in caught if "tanh" in str(each.message)]
    assert bool(named) == (bound > 1.0)


# What a network adds to the loss.


def regularized(outputs, kind):
    regularizer = keras.regularizers.L2(100.0)
    given = {"kernel_regularizer": regularizer} if kind == "kernel" else {}
    if kind == "activity":
        given = {"activity_regularizer": regularizer}
    layers = [keras.Input((3,)), keras.layers.Dense(outputs, **given)]
    if kind == "add_loss":
        layers.append(Penalty())
    return keras.Sequential(layers)


@keras.saving.register_keras_serializable(package="test_custom_networks")
class Penalty(keras.layers.Layer):
    def call(self, x):
        self.add_loss(100.0 * keras.ops.mean(keras.ops.square(x)))
        return x


class CustomRegularized(keras.Model):
    def __init__(self, outputs):
        super().__init__()
        self.out = keras.layers.Dense(outputs, kernel_regularizer="l2")

    def call(self, x):
        self.add_loss(keras.ops.mean(keras.ops.square(x)))
        return self.out(x)


def trained_norm(kind):
    """Returns the size of a kernel after training, and the loss."""
    keras.utils.set_random_seed(1)
    env = make_env()
    network = regularized(3, kind)
    agent = rl.DQN(network, seed=0)
    agent.compile(keras.optimizers.SGD(1e-3), run_eagerly=True)
    loss = agent.fit(make_replay(env), verbose=0).history["loss"][0]
    return float(np.linalg.norm(network.get_weights()[0])), loss


def test_losses_that_a_network_adds_count():
    plain, plain_loss = trained_norm("")
    for kind in ("kernel", "activity", "add_loss"):
        norm, loss = trained_norm(kind)
        assert norm < plain - 1e-4, kind
        assert loss > plain_loss + 1e-2, kind


def test_losses_of_a_twin_that_is_a_copy_count():
    network = CustomRegularized(1)
    network(np.zeros((1, 3), "float32"))
    twin = network_copies.sibling(network)
    given = np.full((2, 3), 3.0, "float32")
    twin(given)
    kernel = np.array(twin.weights[0])
    expected = 9.0 + 0.01 * np.square(kernel).sum()
    added = float(sum(map(keras.ops.sum, twin.losses)))
    assert added == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("given", "lost"),
    [
        ({"scale": 2.0}, "scale=2.0, restored as 1.0"),
        ({"activation": "tanh"}, "activation=<function tanh"),
    ],
)
def test_a_network_whose_config_loses_a_value_is_not_saved(
    given, lost, tmp_path
):
    agent = rl.DQN(Scaled(**given), seed=0)
    env = make_env()
    agent.bind(env.observation_space, env.action_space)
    agent.compile()
    with pytest.raises(ValueError, match=f"Expected.*get_config.*{lost}"):
        agent.save(tmp_path / "agent.keras")
    assert not list(tmp_path.iterdir())
