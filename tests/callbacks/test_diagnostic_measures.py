"""Recent steps, hidden units, shares of time, and changes of weights."""

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.basics.stopwatch import Stopwatch
from keras_rl2.callbacks.diagnostic_measures import HiddenUnits
from keras_rl2.callbacks.diagnostic_measures import RecentSteps
from keras_rl2.callbacks.diagnostic_measures import TimeShares
from keras_rl2.callbacks.diagnostic_measures import relative_change
from support.agents import KINDS
from support.agents import make_eager_agent
from support.agents import make_env
from support.clocks import Clock
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
    units = HiddenUnits(agent)
    share = units.dead_share(steps_of(OBSERVATIONS))
    assert share == pytest.approx(3 / 9)
    # A few observations are not enough.
    assert units.dead_share(steps_of(OBSERVATIONS[:64])) is None
    assert units.dead_share(RecentSteps()) is None
    # Nor are networks that Keras cannot look into.
    agent = agent_of(Subclassed(2), Subclassed(1))
    assert HiddenUnits(agent).dead_share(steps_of(OBSERVATIONS)) is None


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


def test_a_layer_of_several_calls_counts_once_or_not_at_all():
    inputs, twice = keras.Input((4,)), relu(4, -1.0)
    hidden = relu(4, 1.0)(twice(twice(inputs)))
    actor = keras.Model(inputs, keras.layers.Dense(2)(hidden))
    # The critic shares it.
    critic = keras.Model(inputs, keras.layers.Dense(1)(twice(inputs)))
    agent = agent_of(actor, critic)
    assert HiddenUnits(agent).dead_share(steps_of(OBSERVATIONS)) == 0.5
    # One of another network first is left out.
    elsewhere, inputs = keras.Input((4,)), keras.Input((4,))
    shared = relu(4, -1.0)
    shared(elsewhere)
    hidden = relu(4, 1.0)(shared(inputs))
    actor = keras.Model(inputs, keras.layers.Dense(2)(hidden))
    agent = agent_of(actor, network(units=1))
    assert HiddenUnits(agent).dead_share(steps_of(OBSERVATIONS)) == 0.0


class Subclassed(keras.Model):
    def __init__(self, units):
        super().__init__()
        self.hidden, self.last = relu(3, -1.0), keras.layers.Dense(units)

    def call(self, observation):
        return self.last(self.hidden(observation))


def test_targets_are_left_out_and_critics_are_not():
    case = KINDS["SAC"]
    env = make_env(case.pair)
    agent = make_eager_agent(case, env, activation="relu")
    # One of the critics is killed.
    hidden = agent.critics[-1].get_layer("hidden_0")
    hidden.kernel.assign(np.zeros(hidden.kernel.shape))
    hidden.bias.assign(-np.ones(hidden.bias.shape))
    generator = np.random.default_rng(0)
    observation = generator.normal(size=(65, 1, *agent.observation_spec.shape))
    action = generator.normal(size=(64, 1, *agent.policy_head.action_shape))
    steps = RecentSteps()
    steps.take(trajectory(observation.astype("float32"), action=action))
    share = HiddenUnits(agent).dead_share(steps)
    assert share == pytest.approx(1 / 3)


# Recent steps.


def test_steps_are_spread_evenly_over_a_rollout():
    steps = RecentSteps(rows=4)
    steps.take(trajectory(np.arange(22.0).reshape(11, 2, 1)))
    # Of 20 steps, from the first to the last one: 0, 19/3, 38/3, 19.
    observation, action = steps.arrays()
    np.testing.assert_array_equal(observation[:, 0], [0, 6, 12, 19])
    assert action.shape == (4,)


def test_old_steps_are_dropped_and_enough_are_kept():
    steps = RecentSteps(rows=4)
    for index in range(5):
        steps.take(trajectory(np.full((4, 1, 1), float(index))))
    # Three of each: without those of 3 there would be too few.
    np.testing.assert_array_equal(steps.arrays()[0][:, 0], [3, 3, 3, 4, 4, 4])
    assert len(steps) == 6


def test_resets_are_no_steps():
    steps = RecentSteps()
    rewards = [[1.0, -3.0], [99.0, 2.0]]
    valid = [[True, True], [False, True]]
    observation = np.arange(6.0).reshape(3, 2, 1)
    steps.take(trajectory(observation, rewards, valid))
    assert steps.largest_reward == 3.0
    np.testing.assert_array_equal(steps.arrays()[0][:, 0], [0, 1, 3])
    steps.take(trajectory(observation, valid=np.zeros((2, 2), bool)))
    assert len(steps) == 3


# Shares of time.


def shares(**seconds):
    total = sum(seconds.values())
    every = dict.fromkeys(TimeShares.SECTIONS, 0.0) | seconds
    return pytest.approx({key: each / total for key, each in every.items()})


def test_shares_are_those_since_the_last_ones():
    clock = Clock()
    stopwatch = Stopwatch(clock)
    # What was before does not count.
    clock.now += 100.0
    split = TimeShares(stopwatch)
    for section, seconds in [("preparing", 1.0), ("update", 4.0)]:
        with stopwatch.section(section):
            clock.now += seconds
    clock.now += 3.0
    assert split.take() == shares(preparing=1.0, update=4.0, rest=3.0)
    clock.now += 1.0
    assert split.take() == shares(rest=1.0)


def test_two_may_read_the_same_stopwatch():
    clock = Clock()
    stopwatch = Stopwatch(clock)
    often, seldom = TimeShares(stopwatch), TimeShares(stopwatch)
    for section in ("acting", "environment"):
        stopwatch.switch(section)
        clock.now += 2.0
        assert often.take() == shares(**{section: 2.0})
    assert seldom.take() == shares(acting=2.0, environment=2.0)
    # No time has no shares.
    assert set(TimeShares(Stopwatch(Clock())).take().values()) == {0.0}


# Changes of weights.


def test_the_change_is_relative_to_all_weights_together():
    # The weights are (3, 0, 4), of norm 5; the change (0.3, 0.4, 0).
    before = [np.array([[3.0, 0.0]]), np.array([4.0])]
    after = [np.array([[3.3, 0.4]]), np.array([4.0])]
    assert relative_change(before, after) == pytest.approx(0.1)
    assert relative_change(before, before) == 0.0
    assert relative_change([np.zeros(2)], [np.zeros(2)]) == 0.0
