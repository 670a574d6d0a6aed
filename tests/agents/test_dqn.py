import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.data import ActorSnapshot
from support.agents import assert_equal_weights
from support.agents import slow
from support.agents import weights_of
from support.linear_q import linear_agent

# Tracing would take longer than a few updates.
EAGER = {"optimizer": "sgd", "run_eagerly": True}


def make_replay(env="CartPole-v1", **arguments):
    arguments = {
        "batch_size": 4,
        "steps_per_round": 4,
        "updates_per_round": 2,
        "warm_up": 4,
        "rounds_per_epoch": 1,
        "seed": 0,
        **arguments,
    }
    return rl.ReplayDataset(env, **arguments)


def make_agent(env="CartPole-v1", compile_arguments=None, **settings):
    settings = {"hidden": (4, 4), "atoms": 3, "seed": 0, **settings}
    agent = rl.DQN.for_env(env, **settings)
    agent.compile(**(compile_arguments or {"run_eagerly": True}))
    return agent


@pytest.mark.parametrize(
    ("double", "dueling", "kind"),
    [
        (True, True, "categorical"),
        *slow((False, True, "quantile"), (True, False, None)),
    ],
)
def test_flags_train_together(double, dueling, kind):
    agent = make_agent(
        hidden=(4,),
        compile_arguments=EAGER,
        double=double,
        dueling=dueling,
        distributional=kind,
    )
    for arguments in ({}, {"prioritized": True, "n_step": 3}):
        replay = make_replay(updates_per_round=1, **arguments)
        before = weights_of(agent.q_network)
        history = agent.fit(replay, verbose=0).history
        assert (
            ActorSnapshot(agent.policy, replay.env.num_envs).backend == "litert"
        )
        assert np.isfinite(history["loss"]).all()
        assert set(agent.statistics_names) | {"epsilon"} < set(history)
        # Gradients reach every layer of all streams.
        for old, new in zip(before, weights_of(agent.q_network), strict=True):
            assert np.isfinite(new).all()
            assert (old != new).any()
    assert (agent.td_errors.numpy() >= 0).all()


@pytest.mark.parametrize("by_fit", [True, False])
def test_the_target_begins_as_the_network_that_was_given_weights(by_fit):
    agent = make_agent(hidden=(4,), target_every=100)
    replay = make_replay(updates_per_round=1)
    assert agent.tau == 0.01
    given = [weight + 1.0 for weight in weights_of(agent.q_network)]
    agent.q_network.set_weights(given)
    if by_fit:
        agent.fit(replay, verbose=0)
    else:
        replay.bind(agent)
        replay.fill(4)
        agent.train_step(replay.sample(4))
    assert_equal_weights(agent.target_network, given)


# Exploration.


def actions_of(agent, count=20_000, **arguments):
    return agent.act(np.tile([[1.0, 0.0]], (count, 1)), **arguments)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_a_share_of_actions_is_random(epsilon):
    table = [[0.0, 9.0, 1.0, 2.0], [0.0] * 4]
    agent = linear_agent(table, actions=4, epsilon=epsilon, seed=0)
    shares = np.bincount(actions_of(agent), minlength=4) / 20_000
    expected = np.full(4, epsilon / 4)
    expected[1] += 1 - epsilon
    # Four standard deviations of a share of 20 000 draws.
    np.testing.assert_allclose(
        shares, expected, atol=2 / np.sqrt(20_000) * (epsilon > 0)
    )
    assert set(actions_of(agent, deterministic=True)) == {1}


def test_noise_forces_one_action_in_rows_that_explore_only():
    agent = linear_agent(np.zeros((2, 3)), actions=3, epsilon=0.25)
    noise, state = agent.noise.draw(np.random.default_rng(0), (50, 40), "kept")
    assert state == "kept"
    assert noise.shape == (50, 40, 3)
    assert noise.dtype == np.float32
    forced = (noise > 0).sum(axis=-1)
    assert set(forced.ravel()) == {0, 1}
    assert forced.mean() == pytest.approx(0.25, abs=0.04)
    # Beyond every value, also of the largest float16.
    assert noise.max() > 65504.0 * 1e6


def test_a_schedule_goes_by_environment_steps_of_the_rounds_start():
    schedule = keras.optimizers.schedules.PolynomialDecay(1.0, 20, 0.5)
    agent = make_agent(hidden=(4,), epsilon=schedule)
    assert agent.exploration_logs() == {"epsilon": 1.0}
    replay = make_replay(warm_up=8, steps_per_round=8, updates_per_round=1)
    history = agent.fit(replay, epochs=2, verbose=0).history
    steps = np.array(history["env_steps"])
    assert steps[0] < 20 < steps[-1]
    expected = 1 - 0.5 * np.minimum(steps / 20, 1)
    np.testing.assert_allclose(history["epsilon"], expected)
    assert agent.exploration_logs()["epsilon"] == 0.5
    # By default it falls from 1 to a twentieth.
    agent, seen = linear_agent(np.zeros((2, 2))), []
    for agent.env_steps in (0, 5_000, 10_000, 10**9):
        seen.append(agent.exploration_logs()["epsilon"])
    np.testing.assert_allclose(seen, [1.0, 0.525, 0.05, 0.05], rtol=1e-6)


# Wrong arguments.


def plain_network(units=2):
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(units)])


def test_wrong_arguments_are_refused():
    network = plain_network()
    for arguments, message in (
        ({"epsilon": 1.5}, "epsilon"),
        ({"epsilon": "high"}, "epsilon"),
        ({"distributional": "gaussian"}, "'categorical' or 'quantile'"),
        ({"distributional": "quantile", "atoms": 1}, "atoms"),
        ({"distributional": "categorical", "atoms": 2.5}, "atoms"),
        ({"support": (1.0, 1.0)}, "support"),
        ({"support": (0.0, np.inf)}, "support"),
        ({"support": 3.0}, "support"),
        ({"support": (0, 1, 2)}, "support"),
        ({"loss": "mae"}, "'huber' or 'mse'"),
        ({"gamma": 2.0}, "gamma"),
        ({"max_gradient_norm": 0.0}, "max_gradient_norm"),
    ):
        message = f"(?s)Expected.*{message}.*Received"
        with pytest.raises(ValueError, match=message):
            rl.DQN(network, **arguments)
    with pytest.raises(ValueError, match=message):
        rl.DQN.for_env("CartPole-v1", **arguments)
    with pytest.raises(ValueError, match="DQN can act in, Discrete"):
        rl.DQN.for_env("Pendulum-v1")
    agent = rl.DQN(plain_network())
    with pytest.raises(ValueError, match="DQN can act in, Discrete"):
        agent.fit(make_replay("Pendulum-v1"), verbose=0)
    with pytest.raises(ValueError, match=r"`q_network` .* Received: 'mlp'"):
        rl.DQN("mlp")
    with pytest.raises(ValueError, match="no separate critic"):
        agent.compile("adam", critic_optimizer="sgd")


def test_a_width_that_does_not_fit_is_named():
    replay = make_replay()
    for units, settings, message in (
        (3, {}, r"2 units: 2 actions"),
        (2, {"dueling": True}, r"3 units: the value of the state and 2"),
        (
            2,
            {"distributional": "categorical"},
            r"102 units: 2 actions, 51 for each",
        ),
        (
            2,
            {"distributional": "quantile", "atoms": 5, "dueling": True},
            r"15 units: .* and 2 actions, 5 for each",
        ),
    ):
        agent = rl.DQN(plain_network(units), **settings)
        message = f"(?s)q_network.*{message}.*Received"
        with pytest.raises(ValueError, match=message):
            agent.fit(replay, verbose=0)
        assert agent.env_steps == 0
