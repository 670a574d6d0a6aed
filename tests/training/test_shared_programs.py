"""Agents that are alike share a compiled round, and train as they would."""

import contextlib

import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_rl2 as rl
from keras_rl2.training import shared_programs
from keras_rl2.training.shared_programs import SharedPrograms
from support.agents import EITHER_KIND
from support.agents import EVERY_AGENT
from support.agents import make_agent
from support.agents import make_env


def trained(name, seed, programs=None, **settings):
    """Trains for two rounds, and returns weights and logs."""
    case = EVERY_AGENT[name]
    env = make_env(case.pair)
    agent = make_agent(case, env, seed=seed, **settings)
    using = programs.used() if programs else contextlib.nullcontext()
    with using:
        history = agent.fit(case.make_dataset(env), epochs=2, verbose=0)
    logs = {
        key: value
        for key, value in history.history.items()
        if key != "steps_per_second"
    }
    return agent, agent.get_weights(), logs


class Found(Exception):
    """The program of a round is known, and need not be traced."""


class Searched(SharedPrograms):
    """Says which program is that of an agent, in place of tracing it."""

    def find(self, likeness, form, trace):
        raise Found(likeness.key, likeness.numbers, form)


def program_of(agent, dataset):
    """Returns what the program of an agent's rounds depends on."""
    with Searched().used(), pytest.raises(Found) as found:
        agent.fit(dataset, epochs=1, verbose=0)
    return found.value.args


def program_with(name="PPO", **settings):
    """Returns the program of an agent with other settings."""
    case = EVERY_AGENT[name]
    env = make_env(case.pair)
    return program_of(make_agent(case, env, **settings), case.make_dataset(env))


def program_by(optimizer, **others):
    """Returns the program of an agent with other optimizers."""
    arguments = {"optimizer": optimizer, **others}
    name = "TD3" if others else "PPO"
    return program_with(name, compile_arguments=arguments)


def assert_same(found, expected):
    for weight, own in zip(found[1], expected[1], strict=True):
        np.testing.assert_array_equal(weight, own)
    assert found[2].keys() == expected[2].keys()
    for key, values in found[2].items():
        np.testing.assert_array_equal(values, expected[2][key], err_msg=key)


@pytest.mark.rotate(name=EITHER_KIND)
@pytest.mark.parametrize("name", EVERY_AGENT)
def test_the_second_seed_trains_as_it_would_alone(name):
    programs = SharedPrograms()
    first = trained(name, 1, programs)
    found = trained(name, 2, programs)
    assert programs.number == 1
    assert_same(found, trained(name, 2))
    # Neither has touched the other.
    assert any((a != b).any() for a, b in zip(first[1], found[1], strict=True))
    assert_same(first, trained(name, 1))


def test_a_stopped_round_is_that_of_the_agent_itself():
    """`target_kl` is a variable outside of the networks."""
    programs = SharedPrograms()
    settings = {"target_kl": 1e-9}
    trained("PPO", 1, programs, **settings)
    found = trained("PPO", 2, programs, **settings)
    assert programs.number == 1
    assert_same(found, trained("PPO", 2, **settings))


OTHERS = ({"target_kl": 0.5}, {"max_gradient_norm": 0.1}, {"hidden": (9,)})


@pytest.mark.parametrize("settings", OTHERS)
def test_other_settings_are_another_program(settings):
    assert program_with(seed=1) == program_with(seed=2)
    assert program_with(seed=1) != program_with(seed=1, **settings)


@pytest.mark.slow
@pytest.mark.parametrize("settings", OTHERS)
def test_agents_of_other_settings_train_as_they_would_alone(settings):
    programs = SharedPrograms()
    trained("PPO", 1, programs)
    found = trained("PPO", 1, programs, **settings)
    assert programs.number == 2
    assert_same(found, trained("PPO", 1, **settings))


#: Numbers of two further agents; those of the first are the defaults.
NUMBERS = {
    "A2C": (
        {"gamma": 0.5, "value_coefficient": 2.0},
        {"gae_lambda": 0.1, "entropy_coefficient": 0.5},
    ),
    "PPO": (
        {"clip_ratio": 0.01, "gamma": 0.8, "entropy_coefficient": 0.1},
        {"clip_ratio": 0.5, "value_coefficient": 5.0, "gae_lambda": 0.5},
    ),
    "PQN": ({"gamma": 0.5}, {"q_lambda": 0.1}),
    "DQN": ({"gamma": 0.5}, {"gamma": 0.8}),
}


def trained_with(name, numbers, programs=None, in_graph=True):
    """Trains for ten updates or more; returns weights and number of updates."""
    env = rl.envs.as_vector_env(
        rl.envs.GraphVectorEnv("CartPole-v1", num_envs=2)
        if in_graph
        else gymnasium.make_vec("CartPole-v1", num_envs=2)
    )
    kind = getattr(rl, name)
    if kind.on_policy:
        dataset = rl.RolloutDataset(
            env,
            horizon=16,
            rounds_per_epoch=10,
            batch_size=16,
            passes=1,
            seed=0,
        )
    else:
        dataset = rl.ReplayDataset(
            env,
            warm_up=32,
            batch_size=8,
            steps_per_round=4,
            rounds_per_epoch=5,
            seed=0,
        )
    agent = kind.for_env(env, hidden=(8,), seed=0, **numbers)
    with programs.used() if programs else contextlib.nullcontext():
        agent.fit(dataset, epochs=1, verbose=0)
    return agent.get_weights(), int(agent.optimizer.iterations)


@pytest.mark.parametrize(
    ("name", "in_graph"),
    [
        ("A2C", False),
        *(
            pytest.param(name, in_graph, marks=pytest.mark.slow)
            for name, in_graph in (
                *(("PPO", True), ("A2C", True), ("PQN", True), ("DQN", True)),
                *(("PPO", False), ("PQN", False), ("DQN", False)),
            )
        ),
    ],
)
def test_agents_of_other_numbers_share_a_second_program(name, in_graph):
    programs = SharedPrograms()
    every = ({}, *NUMBERS[name])
    found = [trained_with(name, each, programs, in_graph) for each in every]
    assert programs.number == 2
    # The program was traced for another one.
    weights, updates = trained_with(name, every[2], in_graph=in_graph)
    assert found[2][1] == updates >= 10
    for weight, its in zip(found[2][0], weights, strict=True):
        np.testing.assert_allclose(weight, its, rtol=0, atol=1e-4)
    # The numbers matter.
    first, *others = (weights for weights, _ in found)
    for weights in others:
        assert (
            max(abs(a - b).max() for a, b in zip(first, weights, strict=True))
            > 2e-4
        )


def test_numbers_are_attributes_again_after_the_trace():
    programs = SharedPrograms()
    for gamma in (0.9, 0.8):
        env = make_env()
        agent = make_agent(EVERY_AGENT["PPO"], env, gamma=gamma)
        with programs.used():
            agent.fit(EVERY_AGENT["PPO"].make_dataset(env), verbose=0)
        assert agent.gamma == gamma
        assert agent.get_config()["gamma"] == gamma


class Doubting(rl.A2C):
    """Asks whether there is an entropy bonus."""

    def loss_terms(self, policy, value, batch):
        if self.entropy_coefficient > 0:
            return super().loss_terms(policy, value, batch)
        return super().loss_terms(policy, value, batch)


def test_code_of_a_user_sees_numbers():
    for kind, numbers in (
        (rl.A2C, {"entropy_coefficient": 0.1}),
        (Doubting, {}),
    ):
        env = make_env()
        agent = kind.for_env(env, entropy_coefficient=0.1)
        found = program_of(agent, EVERY_AGENT["A2C"].make_dataset(env))[1]
        assert numbers.items() <= found.items()
        assert bool(numbers) == bool(found)


def fit_with(optimizer, programs=None):
    env = make_env()
    agent = make_agent(
        EVERY_AGENT["PPO"], env, compile_arguments={"optimizer": optimizer}
    )
    using = programs.used() if programs else contextlib.nullcontext()
    with using:
        agent.fit(EVERY_AGENT["PPO"].make_dataset(env), epochs=1, verbose=0)
    return agent.get_weights()


def test_constant_learning_rates_share_a_program():
    slow, fast = map(keras.optimizers.Adam, (1e-3, 1e-2))
    assert program_by(slow) == program_by(fast)


@pytest.mark.slow
def test_agents_of_other_learning_rates_train_as_they_would_alone():
    programs = SharedPrograms()
    for rate in (1e-3, 1e-2):
        found = fit_with(keras.optimizers.Adam(rate), programs)
        expected = fit_with(keras.optimizers.Adam(rate))
        for weight, own in zip(found, expected, strict=True):
            np.testing.assert_array_equal(weight, own)
    assert programs.number == 1


OPTIMIZERS = {
    "beta": lambda: keras.optimizers.Adam(1e-3, beta_1=0.5),
    "class": lambda: keras.optimizers.RMSprop(1e-3),
    "schedule": lambda: keras.optimizers.Adam(
        keras.optimizers.schedules.PolynomialDecay(1e-3, 100)
    ),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_other_optimizers_are_another_program(name):
    usual = program_by(keras.optimizers.Adam(1e-3))
    assert usual != program_by(OPTIMIZERS[name]())


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_agents_of_other_optimizers_train_as_they_would_alone(name):
    programs = SharedPrograms()
    fit_with(keras.optimizers.Adam(1e-3), programs)
    found = fit_with(OPTIMIZERS[name](), programs)
    assert programs.number == 2
    expected = fit_with(OPTIMIZERS[name]())
    for weight, own in zip(found, expected, strict=True):
        np.testing.assert_array_equal(weight, own)


class Counting(rl.PPO):
    """An agent with a variable that the library does not know."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.counted = tf.Variable(0, trainable=False)

    def train_step(self, batch):
        self.counted.assign_add(1)
        return super().train_step(batch)


def test_an_unknown_variable_is_not_shared():
    programs = SharedPrograms()
    agents = []
    for seed in (1, 2):
        env = make_env()
        agents.append(Counting.for_env(env, hidden=(8,), seed=seed))
        agents[-1].compile(jit_compile=False)
        with programs.used():
            agents[-1].fit(
                EVERY_AGENT["PPO"].make_dataset(env), epochs=1, verbose=0
            )
    assert programs.number == 0
    assert int(agents[0].counted) == int(agents[1].counted) > 0


def with_activation(scale, programs):
    """Trains a network with a function that its config does not describe."""

    def scaled(x):
        return scale * x

    def network(outputs):
        layers = [keras.Input((4,)), keras.layers.Dense(4, scaled)]
        return keras.Sequential([*layers, keras.layers.Dense(outputs)])

    keras.utils.set_random_seed(0)
    agent = rl.PPO(network(2), network(1), seed=0)
    agent.compile(jit_compile=False)
    rollouts = rl.RolloutDataset(
        "CartPole-v1", horizon=16, batch_size=16, passes=1, seed=0
    )
    with programs.used():
        agent.fit(rollouts, epochs=1, verbose=0)
    return agent.get_weights()


def test_functions_of_a_user_are_not_shared():
    programs = SharedPrograms()
    with_activation(1.0, programs)
    assert programs.number == 0


@pytest.mark.slow
def test_functions_of_a_user_are_not_taken_for_each_other():
    programs = SharedPrograms()
    with_activation(1.0, programs)
    found = with_activation(3.0, programs)
    assert programs.number == 0
    expected = with_activation(3.0, SharedPrograms())
    for weight, own in zip(found, expected, strict=True):
        np.testing.assert_array_equal(weight, own)


def test_a_frozen_layer_is_another_program():
    found = []
    for freeze in (False, True):
        env = make_env()
        agent = make_agent(EVERY_AGENT["PPO"], env)
        agent.critic.layers[-1].trainable = not freeze
        found.append(program_of(agent, EVERY_AGENT["PPO"].make_dataset(env)))
    assert found[0] != found[1]


@pytest.mark.slow
def test_a_frozen_layer_stays_as_it_is():
    programs = SharedPrograms()
    for freeze in (False, True):
        env = make_env()
        agent = make_agent(EVERY_AGENT["PPO"], env)
        agent.critic.layers[-1].trainable = not freeze
        before = agent.critic.layers[-1].get_weights()
        with programs.used():
            agent.fit(EVERY_AGENT["PPO"].make_dataset(env), epochs=1, verbose=0)
        after = agent.critic.layers[-1].get_weights()
        same = [(a == b).all() for a, b in zip(before, after, strict=True)]
        assert all(same) == freeze
    assert programs.number == 2


def test_programs_are_not_used_outside():
    programs = SharedPrograms()
    with programs.used():
        assert shared_programs.PRESENT.get() is programs
    assert shared_programs.PRESENT.get() is None


def test_the_optimizer_of_a_critic_counts():
    usual, equal, other = (
        program_by(
            keras.optimizers.Adam(1e-3),
            critic_optimizer=keras.optimizers.Adam(1e-3, beta_1=beta),
        )
        for beta in (0.9, 0.9, 0.5)
    )
    assert usual == equal != other


@pytest.mark.slow
@pytest.mark.parametrize("beta", [0.9, 0.5])
def test_agents_of_other_critic_optimizers_train_with_their_own(beta):
    programs = SharedPrograms()
    for each in (0.9, beta):
        env = make_env(EVERY_AGENT["TD3"].pair)
        arguments = {
            "optimizer": keras.optimizers.Adam(1e-3),
            "critic_optimizer": keras.optimizers.Adam(1e-3, beta_1=each),
        }
        agent = make_agent(EVERY_AGENT["TD3"], env, compile_arguments=arguments)
        with programs.used():
            agent.fit(EVERY_AGENT["TD3"].make_dataset(env), epochs=1, verbose=0)
    assert programs.number == len({0.9, beta})
