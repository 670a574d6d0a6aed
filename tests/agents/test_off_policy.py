"""The behaviour that all agents that learn from replay share."""

import inspect

import gymnasium
import keras
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import keras_rl2 as rl
from keras_rl2.envs import as_vector_env
from keras_rl2.networks import network_copies
from support.agents import OFF_POLICY
from support.agents import assert_equal_weights
from support.agents import differ
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import make_replay
from support.agents import slow
from support.agents import weights_of
from support.errors import raises
from support.plain_networks import dense
from support.plain_networks import dense_of_both
from support.plain_networks import plain_networks
from support.probe_envs import CountingEnv

sync = rl.callbacks.TargetNetworkSync


@pytest.fixture
def case(name):
    return OFF_POLICY[name]


@pytest.fixture
def env(case):
    return make_env(case.pair)


# Target networks.


@pytest.mark.parametrize("name", ["DQN", *slow("TD3", "SAC")])
def test_fit_moves_targets_by_tau_and_target_every(case, env):
    agent = make_eager_agent(case, env, tau=0.25, target_every=2)
    seen = []

    class Look(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            moves = agent.target_networks.present
            seen.append({(move.tau, move.every) for move in moves})

    replay = make_replay(env, updates_per_round=1)
    agent.fit(replay, callbacks=[Look()], verbose=0)
    # One that is given is the only one, and for this `fit`.
    agent.fit(replay, callbacks=[sync(tau=0.5), Look()], verbose=0)
    agent.fit(replay, callbacks=[Look()], verbose=0)
    assert seen == [{(0.25, 2)}, {(0.5, 1)}, {(0.25, 2)}]


# Going on.


@pytest.mark.parametrize(
    ("name", "prioritized"),
    [("DQN", True), *slow(("SAC", False))],
)
def test_two_fits_are_one(case, prioritized):
    results = []
    for epochs in ((2,), (1, 1)):
        env = make_env(case.pair)
        agent = make_eager_agent(case, env)
        replay = make_replay(env, prioritized=prioritized, updates_per_round=1)
        for each in epochs:
            agent.fit(replay, epochs=each, verbose=0)
        assert agent.updates.numpy() == 2
        results.append((agent.get_weights(), replay.get_state()["buffer"]))
    assert_equal_weights(results[0][0], results[1][0])
    np.testing.assert_equal(results[0][1], results[1][1])


# Interruptions.


class InterruptedEnv(CountingEnv):
    """Raises Ctrl-C at one step, counted over all episodes."""

    def __init__(self, index, at):
        super().__init__(index)
        self._left = at if index == 1 else 10**6

    def step(self, action):
        self._left -= 1
        if not self._left:
            raise KeyboardInterrupt
        return super().step(action)


def counting_env(mode, at=10**6):
    makers = [lambda i=i: InterruptedEnv(i, at) for i in range(2)]
    return as_vector_env(
        gymnasium.vector.SyncVectorEnv(makers, autoreset_mode=mode)
    )


def assert_holds_what_happened(replay):
    """Asserts that each transition could be one of `CountingEnv`."""
    batch = replay.sample(512)
    index, episode, step, _ = batch["observation"].T
    following = batch["next_observation"]
    np.testing.assert_array_equal(following[:, 0], index)
    np.testing.assert_array_equal(following[:, 1], episode)
    np.testing.assert_array_equal(following[:, 2], step + 1)
    reward = 100 * index + 10 * episode + step + 1
    np.testing.assert_array_equal(batch["reward"], reward)
    # Of 3 and 5 steps; those of 1 step between them are cut off.
    kind = episode % 3
    ends = ((kind == 0) & (step == 2)) | ((kind == 2) & (step == 4))
    np.testing.assert_array_equal(batch["discount"] == 0, ends)


@pytest.mark.parametrize(
    ("mode", "at"),
    [
        (AutoresetMode.NEXT_STEP, 13),
        # In the warm-up.
        *slow((AutoresetMode.SAME_STEP, 5)),
    ],
)
def test_ctrl_c_leaves_the_dataset_usable(mode, at):
    env = counting_env(mode, at)
    agent = make_eager_agent(OFF_POLICY["DQN"], env)
    replay = make_replay(env, warm_up=8, updates_per_round=1)
    with pytest.raises(KeyboardInterrupt):
        agent.fit(replay, epochs=5, verbose=0)
    # Whole rounds. Resets are steps too, but not of the environment.
    held = replay.buffer.steps
    assert held == {5: 0, 13: 32 if env.masks_reset_rows else 16}[at]
    before = weights_of(agent)
    agent.fit(replay, epochs=2, verbose=0)
    assert differ(before, agent.get_weights())
    assert replay.buffer.steps == held + 2 * 16 + (16 if at == 5 else 0)
    assert_holds_what_happened(replay)


@pytest.mark.parametrize(
    "mode",
    [
        AutoresetMode.NEXT_STEP,
        *slow(AutoresetMode.SAME_STEP, AutoresetMode.DISABLED),
    ],
)
def test_evaluating_on_the_training_environment(mode):
    """The buffer cuts the episodes that were broken off."""
    env = counting_env(mode)
    agent = make_eager_agent(OFF_POLICY["DQN"], env)
    replay = make_replay(env, updates_per_round=1)
    replay.bind(agent)
    for _ in range(3):
        replay.refresh()
        agent.evaluate(env, episodes=2)
    replay.refresh()
    assert_holds_what_happened(replay)
    # None is lost, and none waits for a step that never comes.
    assert len(replay.buffer) == agent.env_steps


# Networks of the user.


def bound(name, networks):
    """Makes an agent of networks, and binds it to spaces."""
    case = OFF_POLICY[name]
    agent, env = case.make(**networks), make_env(case.pair)
    agent.bind(env.observation_space, env.action_space)
    return agent


@pytest.mark.parametrize("name", ["DQN", "TD3"])
def test_targets_begin_as_copies_that_are_not_trained(name):
    agent = bound(name, plain_networks(OFF_POLICY[name]))
    trained = {id(variable) for variable in agent.trainable_variables}
    assert agent.target_pairs
    for target, source in agent.target_pairs:
        assert_equal_weights(target.get_weights(), source.get_weights())
        assert not trained & {id(each) for each in target.variables}


def test_a_twin_of_a_network_with_fixed_seeds_has_others():
    start = keras.initializers.GlorotUniform(seed=3)
    network = keras.Sequential(
        [keras.Input((3,)), keras.layers.Dense(2, kernel_initializer=start)]
    )
    twins = [network_copies.sibling(network, index) for index in (1, 1, 2)]
    kernels = [each.get_weights()[0] for each in (network, *twins)]
    np.testing.assert_array_equal(kernels[1], kernels[2])
    assert (kernels[0] != kernels[1]).any()
    assert (kernels[1] != kernels[3]).any()


@pytest.mark.parametrize("name", ["TD3", "DDPG"])
def test_as_many_critics_as_an_agent_has_stay_as_they_are(name):
    case = OFF_POLICY[name]
    critics = [dense_of_both((3,), 1) for _ in range(3)]
    with raises("Expected one `critic`", "3"):
        case.make(**{**plain_networks(case), "critic": critics})
    number = inspect.signature(case.make).parameters["num_critics"].default
    critics = critics[:number]
    agent = bound(name, {**plain_networks(case), "critic": critics})
    assert all(a is b for a, b in zip(agent.critics, critics, strict=True))


def test_networks_that_do_not_fit_are_refused():
    for name in ("DQN", "TD3"):
        case = OFF_POLICY[name]
        who = "q_network" if name == "DQN" else "actor"
        with raises(
            f"the {who}'s output to have {case.widths[who]} units", "7"
        ):
            bound(name, plain_networks(case, units=7))
        if name == "DQN":
            continue
        with raises("the critic's output to have 1 or 2 units", "3 units"):
            bound(name, plain_networks(case, value_units=3))
        networks = {**plain_networks(case), "critic": dense((3,), 1)}
        with raises("the critic to take observations of .*, action of", ""):
            bound(name, networks)


def test_critics_of_discrete_actions_value_each_of_them():
    case, env = OFF_POLICY["SAC"], make_env("act_discrete")
    agent = case.make(dense((3,), 3), dense((3,), 3), seed=0)
    agent.compile(run_eagerly=True)
    agent.fit(make_replay(env, updates_per_round=1), verbose=0)
    wrong = case.make(dense((3,), 3), dense((3,), 1))
    with raises("the critic's output to have 3 or 6 units", "1 units"):
        wrong.bind(env.observation_space, env.action_space)


def test_the_state_holds_the_random_generator_of_updates():
    agents = [rl.SAC.for_env("Pendulum-v1", hidden=(4,)) for _ in range(2)]
    agents[1].set_state(agents[0].get_state())
    one, other = (agent.draw_normal((4,), 0) for agent in agents)
    np.testing.assert_array_equal(one, other)
