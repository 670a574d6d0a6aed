import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.callbacks.hidden_units import HiddenUnits
from keras_rl2.callbacks.recent_steps import RecentSteps
from support.agents import EVERY_AGENT
from support.agents import make_eager_agent
from support.agents import make_env
from support.trajectories import trajectory


def relu(units, bias, **arguments):
    """A layer whose units are all alive (bias 1), or dead (bias -1)."""
    return keras.layers.Dense(
        units,
        "relu",
        kernel_initializer="zeros",
        bias_initializer=keras.initializers.Constant(bias),
        **arguments,
    )


def network(*layers, units=2):
    return keras.Sequential(
        [keras.Input((4,)), *layers, keras.layers.Dense(units)]
    )


def agent_of(actor, critic):
    return rl.PPO(
        actor,
        critic,
        observation_space=CART_POLE.observation_space,
        action_space=CART_POLE.action_space,
    )


def steps_of(observation):
    steps = RecentSteps()
    steps.take(trajectory(observation))
    return steps


CART_POLE = rl.envs.as_vector_env("CartPole-v1")
OBSERVATIONS = np.random.default_rng(0).normal(size=(65, 1, 4))


def test_units_that_never_answer_are_counted():
    agent = agent_of(
        network(relu(6, 1.0), relu(2, -1.0)),
        # What is not ReLU, or is the output, does not count.
        network(relu(1, -1.0), keras.layers.Dense(9, "tanh"), units=1),
    )
    share = HiddenUnits(agent).dead_share(steps_of(OBSERVATIONS))
    assert share == pytest.approx(3 / 9)


def test_a_unit_that_answers_once_is_alive():
    actor = network(relu(2, 0.0))
    # One unit sees the first number, the other one its opposite.
    actor.layers[0].kernel.assign([[1.0, -1.0], *[[0.0, 0.0]] * 3])
    agent = agent_of(actor, network(units=1))
    units = HiddenUnits(agent)
    positive = np.abs(OBSERVATIONS)
    assert units.dead_share(steps_of(positive)) == 0.5
    positive[10, 0, 0] = -1.0
    assert units.dead_share(steps_of(positive)) == 0.0


def test_a_few_observations_are_not_enough():
    agent = agent_of(network(relu(2, -1.0)), network(units=1))
    units = HiddenUnits(agent)
    assert units.dead_share(steps_of(OBSERVATIONS)) == 1.0
    assert units.dead_share(steps_of(OBSERVATIONS[:64])) is None
    assert units.dead_share(RecentSteps()) is None


def test_a_shared_layer_counts_once():
    inputs = keras.Input((4,))
    trunk = relu(4, -1.0)(inputs)
    actor = keras.Model(inputs, keras.layers.Dense(2)(relu(4, 1.0)(trunk)))
    critic = keras.Model(inputs, keras.layers.Dense(1)(trunk))
    share = HiddenUnits(agent_of(actor, critic)).dead_share(
        steps_of(OBSERVATIONS)
    )
    assert share == 0.5


def test_a_layer_that_is_used_twice_counts_once():
    inputs, twice = keras.Input((4,)), relu(4, -1.0)
    hidden = relu(4, 1.0)(twice(twice(inputs)))
    actor = keras.Model(inputs, keras.layers.Dense(2)(hidden))
    agent = agent_of(actor, network(units=1))
    assert HiddenUnits(agent).dead_share(steps_of(OBSERVATIONS)) == 0.5


def test_a_layer_of_another_network_first_is_left_out():
    elsewhere, inputs = keras.Input((4,)), keras.Input((4,))
    shared = relu(4, -1.0)
    shared(elsewhere)
    hidden = relu(4, 1.0)(shared(inputs))
    actor = keras.Model(inputs, keras.layers.Dense(2)(hidden))
    agent = agent_of(actor, network(units=1))
    assert HiddenUnits(agent).dead_share(steps_of(OBSERVATIONS)) == 0.0


class OneOfItsOwn(keras.Model):
    def __init__(self, units):
        super().__init__()
        self.hidden, self.last = relu(3, -1.0), keras.layers.Dense(units)

    def call(self, observation):
        return self.last(self.hidden(observation))


def test_networks_that_keras_cannot_look_into_are_left_out():
    agent = agent_of(OneOfItsOwn(2), OneOfItsOwn(1))
    assert HiddenUnits(agent).dead_share(steps_of(OBSERVATIONS)) is None
    agent = agent_of(OneOfItsOwn(2), network(relu(2, 1.0), units=1))
    assert HiddenUnits(agent).dead_share(steps_of(OBSERVATIONS)) == 0.0


@pytest.mark.parametrize(
    ("name", "networks"), [("DQN", 1), ("SAC", 3), ("TD3", 3), ("DDPG", 2)]
)
def test_targets_are_left_out_and_critics_are_not(name, networks):
    case = EVERY_AGENT[name]
    env = make_env(case.pair)
    agent = make_eager_agent(case, env, activation="relu")
    # One of the critics, or the only network there is, is killed.
    killed = getattr(agent, "critics", [getattr(agent, "q_network", None)])[-1]
    (hidden,) = (x for x in killed.layers if x.name == "hidden_0")
    hidden.kernel.assign(np.zeros(hidden.kernel.shape))
    hidden.bias.assign(-np.ones(hidden.bias.shape))
    generator = np.random.default_rng(0)
    observation = generator.normal(size=(65, 1, *agent.observation_spec.shape))
    action = generator.normal(size=(64, 1, *agent.policy_head.action_shape))
    steps = RecentSteps()
    steps.take(trajectory(observation.astype("float32"), action=action))
    share = HiddenUnits(agent).dead_share(steps)
    assert share == pytest.approx(1 / networks)
