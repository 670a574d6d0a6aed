"""Agents that are alike share a compiled round, and train as they would."""

import gc
import weakref

import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_rl2 as rl
from keras_rl2.training import shared_programs
from keras_rl2.training.shared_programs import SharedPrograms
from support.agents import KINDS
from support.agents import assert_equal_weights
from support.agents import make_agent
from support.agents import make_env


def trained(name, seed, programs=None, **settings):
    """Trains for two rounds, and returns weights and logs."""
    case = KINDS[name]
    env = make_env(case.pair)
    agent = make_agent(case, env, seed=seed, **settings)
    with (programs or SharedPrograms()).used():
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


def program_of(agent, dataset, callbacks=()):
    """Returns the values that the program of an agent's rounds depends on."""
    with Searched().used(), pytest.raises(Found) as found:
        agent.fit(dataset, epochs=1, callbacks=callbacks, verbose=0)
    return found.value.args


def program_with(name="PPO", **settings):
    """Returns the program of an agent with other settings."""
    case = KINDS[name]
    env = make_env(case.pair)
    return program_of(make_agent(case, env, **settings), case.make_dataset(env))


def program_by(optimizer, **others):
    """Returns the program of an agent with other optimizers."""
    arguments = {"optimizer": optimizer, **others}
    name = "TD3" if others else "PPO"
    return program_with(name, compile_arguments=arguments)


def likeness_by(optimizer):
    """Returns the likeness of an agent with an optimizer."""
    agent = make_agent(
        KINDS["PPO"], make_env(), compile_arguments={"optimizer": optimizer}
    )
    return shared_programs.likeness(
        agent, ("RoundFunction", 1, False), None, of_library=False
    )


def assert_same(found, expected):
    np.testing.assert_equal(found[1], expected[1])
    assert found[2].keys() == expected[2].keys()
    for key, values in found[2].items():
        np.testing.assert_array_equal(values, expected[2][key], err_msg=key)


@pytest.mark.parametrize(
    "name",
    ["PPO"]
    + [pytest.param(k, marks=pytest.mark.slow) for k in KINDS if k != "PPO"],
)
def test_the_second_seed_trains_as_it_would_alone(name):
    programs = SharedPrograms()
    agent, first, _ = trained(name, 1, programs)
    found = trained(name, 2, programs)
    assert programs.number == 1
    assert shared_programs.PRESENT.get() is None
    assert_same(found, trained(name, 2))
    # Neither has touched the other.
    assert any((a != b).any() for a, b in zip(first, found[1], strict=True))
    np.testing.assert_equal(agent.get_weights(), first)


def test_other_agents_are_other_programs():
    usual = program_with(seed=1)
    assert usual == program_with(seed=2)
    for settings in (
        {"target_kl": 0.5},
        {"max_gradient_norm": 0.1},
        {"hidden": (9,)},
    ):
        assert usual != program_with(seed=1, **settings), settings
    env = make_env()
    agent = make_agent(KINDS["PPO"], env, seed=1)
    agent.critic.layers[-1].trainable = False
    assert usual != program_of(agent, KINDS["PPO"].make_dataset(env))


def test_other_optimizers_are_other_programs():
    adam, decay = keras.optimizers.Adam, keras.optimizers.schedules
    usual = program_by(adam(1e-3))
    # A rate that is constant is a variable of the program.
    assert usual == program_by(adam(1e-2))
    for optimizer in (
        adam(1e-3, beta_1=0.5),
        adam(decay.PolynomialDecay(1e-3, 100)),
    ):
        assert usual != program_by(optimizer)
    excluding = keras.optimizers.AdamW(1e-3)
    excluding.exclude_from_weight_decay(var_names=["bias"])
    assert likeness_by(excluding) is None
    usual, equal, other = (
        program_by(adam(1e-3), critic_optimizer=adam(1e-3, beta_1=beta))
        for beta in (0.9, 0.9, 0.5)
    )
    assert usual == equal != other


@pytest.mark.slow
@pytest.mark.parametrize(
    ("optimizer", "settings", "number"),
    [
        (lambda: keras.optimizers.Adam(1e-3), {"max_gradient_norm": 0.1}, 2),
        # A variable outside of the networks.
        (lambda: keras.optimizers.Adam(1e-3), {"target_kl": 1e-9}, 2),
        (lambda: keras.optimizers.RMSprop(1e-3), {}, 2),
        (lambda: keras.optimizers.Adam(1e-2), {}, 1),
    ],
)
def test_other_agents_train_as_they_would_alone(optimizer, settings, number):
    programs = SharedPrograms()

    def train(programs, optimizer, **settings):
        arguments = {"optimizer": optimizer}
        return trained(
            "PPO", 1, programs, compile_arguments=arguments, **settings
        )

    train(programs, keras.optimizers.Adam(1e-3))
    found = train(programs, optimizer(), **settings)
    assert programs.number == number
    assert_same(found, train(None, optimizer(), **settings))


#: Numbers of two further agents; those of the first are the defaults.
NUMBERS = {
    "A2C": (
        {"gamma": 0.5, "value_coefficient": 2.0},
        {"gae_lambda": 0.1, "entropy_coefficient": 0.5},
    ),
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
    with (programs or SharedPrograms()).used():
        agent.fit(dataset, epochs=1, verbose=0)
    # They are attributes again after the trace.
    for key, value in numbers.items():
        assert getattr(agent, key) == agent.get_config()[key] == value
    return agent.get_weights(), int(agent.optimizer.iterations)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "in_graph"), [("A2C", False), ("DQN", True)])
def test_agents_of_other_numbers_share_a_second_program(name, in_graph):
    programs = SharedPrograms()
    every = ({}, *NUMBERS[name])
    found = [trained_with(name, each, programs, in_graph) for each in every]
    assert programs.number == 2
    # The program was traced for another one.
    weights, updates = trained_with(name, every[2], in_graph=in_graph)
    assert found[2][1] == updates >= 10
    for weight, its in zip(found[2][0], weights, strict=True):
        np.testing.assert_allclose(weight, its, rtol=0, atol=1e-7)
    # The numbers matter.
    first, *others = (weights for weights, _ in found)
    for weights in others:
        assert (
            max(abs(a - b).max() for a, b in zip(first, weights, strict=True))
            > 1e-7
        )


@pytest.mark.parametrize(
    ("name", "env"), [("DQN", "CartPole-v1"), ("TD3", "Pendulum-v1")]
)
def test_targets_begin_as_copies_for_each_agent(name, env):
    """Statistics of observations change between `fit` and the first update."""
    programs, found = SharedPrograms(), []
    for using in (programs, programs, SharedPrograms()):
        dataset = rl.ReplayDataset(
            env,
            warm_up=32,
            batch_size=8,
            steps_per_round=4,
            rounds_per_epoch=2,
            seed=0,
        )
        agent = make_agent(KINDS[name], env, normalize_observations=True)
        with using.used():
            agent.fit(dataset, verbose=0)
        found.append(agent.get_weights())
    assert programs.number == 1
    first, second, alone = found
    np.testing.assert_equal(first, alone)
    np.testing.assert_equal(second, alone)


class Doubting(rl.A2C):
    """Asks whether there is an entropy bonus."""

    def loss_terms(self, policy, value, batch):
        if self.entropy_coefficient > 0:
            return super().loss_terms(policy, value, batch)
        return super().loss_terms(policy, value, batch)


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [
        (rl.A2C, {"entropy_coefficient": 0.1}),
        (Doubting, {}),
    ],
)
def test_code_of_a_user_sees_numbers(kind, numbers):
    env = make_env()
    agent = kind.for_env(env, entropy_coefficient=0.1)
    found = program_of(agent, KINDS["PPO"].make_dataset(env))[1]
    assert numbers.items() <= found.items()
    assert bool(numbers) == bool(found)


class Counting(rl.PPO):
    """An agent with a variable that the library does not know."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.counted = tf.Variable(0, trainable=False)

    def train_step(self, batch):
        self.counted.assign_add(1)
        return super().train_step(batch)


class Tracing(rl.PPO):
    """An agent that sets an attribute while a round is traced."""

    def loss_terms(self, policy, value, batch):
        self.traced = True
        return super().loss_terms(policy, value, batch)


def test_an_agent_with_other_moves_of_targets_is_another_program():
    def program(*callbacks, seed=1):
        env = make_env()
        agent = make_agent(KINDS["DQN"], env, seed=seed)
        dataset = KINDS["DQN"].make_dataset(env)
        return program_of(agent, dataset, callbacks=callbacks)

    sync = rl.callbacks.TargetNetworkSync
    usual = program()
    assert usual == program(sync(tau=0.01), seed=2)
    assert usual != program(sync(tau=0.5))
    assert usual != program(sync(tau=0.01, every=2))


def test_a_second_fit_moves_targets_by_its_own_callback():
    """The program of the first `fit` may be that of another agent."""
    programs = SharedPrograms()
    case, weights = KINDS["DQN"], []
    for using in (programs, programs, SharedPrograms()):
        env = make_env()
        # The weights of DQN's own optimizer are averaged at the end.
        optimizer = {"optimizer": keras.optimizers.Adam(1e-3)}
        agent = make_agent(case, env, compile_arguments=optimizer, seed=1)
        dataset = case.make_dataset(env)
        with using.used():
            agent.fit(dataset, verbose=0)
        sync = rl.callbacks.TargetNetworkSync(tau=1.0)
        agent.fit(dataset, callbacks=[sync], verbose=0)
        weights.append(agent.get_weights())
        for target, source in agent.target_pairs:
            np.testing.assert_equal(target.get_weights(), source.get_weights())
    np.testing.assert_equal(weights[1], weights[2])


def test_programs_with_unknown_state_are_not_shared():
    """A variable, an attribute set by tracing, and a function by its name."""

    def scaled(x):
        return 2.0 * x

    def network(units):
        layers = [keras.Input((4,)), keras.layers.Dense(4, scaled)]
        return keras.Sequential([*layers, keras.layers.Dense(units)])

    env = rl.envs.as_vector_env("CartPole-v1")
    counting = Counting.for_env(env, hidden=(8,), seed=0)
    programs = SharedPrograms()
    tracing = Tracing.for_env(env, hidden=(8,), seed=0)
    for agent in (counting, tracing, rl.PPO(network(2), network(1), seed=0)):
        agent.compile(jit_compile=False)
        with programs.used():
            agent.fit(KINDS["PPO"].make_dataset(env), verbose=0)
        assert programs.number == 0
    assert int(counting.counted) > 0


# What every `fit` shares.


@pytest.fixture
def common(monkeypatch):
    """Programs of two trainings that no other test uses."""
    programs = SharedPrograms(most=2)
    monkeypatch.setattr(shared_programs, "COMMON", programs)
    return programs


class Doubled(keras.layers.Layer):
    """A layer of a user."""

    def call(self, inputs):
        return 2.0 * inputs


def fitted(agent):
    """Trains an agent of CartPole for a round, as a cell of a notebook does."""
    agent.fit(KINDS["PPO"].make_dataset(make_env()), verbose=0)
    return agent


def plain_ppo(**settings):
    return make_agent(KINDS["PPO"], make_env(), **settings)


def test_the_variables_of_a_large_agent_are_not_kept(common, monkeypatch):
    agent = plain_ppo(seed=1)
    agent.optimizer.build(agent.trainable_variables)
    size = 4 * sum(each.numpy().size for each in agent.trainable_variables)
    # The optimizer has two more of each.
    monkeypatch.setattr(shared_programs, "_MOST_BYTES", 2 * size)
    fitted(agent)
    assert common.number == 0
    monkeypatch.setattr(shared_programs, "_MOST_BYTES", 4 * size)
    fitted(plain_ppo(seed=1))
    assert common.number == 1


def test_a_training_that_is_made_again_uses_the_same_program(common):
    first = fitted(plain_ppo(seed=1))
    second = fitted(plain_ppo(seed=1))
    assert common.number == 1
    assert_equal_weights(first, second)
    # Numbers are part of a program, so that no training depends on others.
    fitted(plain_ppo(seed=1, gamma=0.5))
    assert common.number == 2
    # The last two are kept.
    other = fitted(plain_ppo(seed=1, clip_ratio=0.3))
    assert common.number == 2
    held = weakref.ref(other)
    del other
    gc.collect()
    assert held() is None


def test_code_of_a_user_is_traced_each_time(common, monkeypatch):
    class Mine(rl.PPO):
        """An agent of a user."""

    network = keras.Sequential(
        [keras.Input((3,)), Doubled(), keras.layers.Dense(3)]
    )
    critic = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    changed = plain_ppo()
    loss_terms = changed.loss_terms
    changed.loss_terms = lambda *given: loss_terms(*given)
    rate = keras.optimizers.schedules.ExponentialDecay(1e-3, 10, 0.9)
    rate.__class__ = type("Rate", (type(rate),), {"__module__": "notebook"})
    scheduled = plain_ppo(
        compile_arguments={"optimizer": keras.optimizers.Adam(rate)}
    )
    mine = Mine.for_env(make_env(), hidden=(8,), seed=0)
    layered = rl.PPO(network, critic, seed=0)
    for agent in (mine, layered, changed, scheduled):
        if agent.compile_arguments is None or agent is mine:
            agent.compile(jit_compile=False)
        fitted(agent)
        assert common.number == 0


def test_checks_of_numbers_are_part_of_a_program(common):
    fitted(plain_ppo())
    tf.debugging.enable_check_numerics()
    try:
        fitted(plain_ppo())
    finally:
        tf.debugging.disable_check_numerics()
    assert common.number == 2
    fitted(plain_ppo())
    assert common.number == 2
