import itertools
import json
import math

import gymnasium
import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.agents import value_distributions
from support.probe_envs import ActionProbe
from support.probe_envs import CountingEnv
from support.probe_envs import ImageEnv
from support.probe_envs import WalkEnv

OBSERVATIONS = gymnasium.spaces.Box(-9.0, 9.0, (2,), np.float32)
# Tracing would take longer than a few updates.
EAGER = {"optimizer": "sgd", "run_eagerly": True}
KINDS = (None, "categorical", "quantile")


def linear_agent(online, target=None, actions=2, rate=0.1, **settings):
    """Makes an agent whose networks are tables of two states.

    Args:
        online: Two rows, the outputs in state (1, 0) and in state (0, 1).
        target: The same of the target network.
        actions: Number of actions.
        rate: Learning rate of plain gradient descent.
        **settings: Of `DQN`.
    """
    online = np.array(online, "float32")
    table = keras.Sequential(
        [
            keras.Input((2,)),
            keras.layers.Dense(online.shape[1], use_bias=False),
        ]
    )
    agent = rl.DQN(
        table,
        observation_space=OBSERVATIONS,
        action_space=gymnasium.spaces.Discrete(actions),
        **{"max_gradient_norm": None, **settings},
    )
    agent.compile(keras.optimizers.SGD(rate), run_eagerly=True)
    agent.q_network.set_weights([online])
    target = online if target is None else np.array(target, "float32")
    agent.target_network.set_weights([target])
    return agent


def transitions(*rows):
    """Makes a minibatch from state (1, 0) to state (0, 1).

    Args:
        *rows: Of action, reward, discount and, by default 1, weight.
    """
    action, reward, discount, weight = zip(
        *((*row, 1.0)[:4] for row in rows), strict=True
    )
    batch = {
        "observation": [[1.0, 0.0]] * len(rows),
        "next_observation": [[0.0, 1.0]] * len(rows),
        "reward": reward,
        "discount": discount,
        "weight": weight,
    }
    batch = {k: np.array(v, "float32") for k, v in batch.items()}
    return {**batch, "action": np.array(action, "int32")}


def update(agent, *rows):
    """Makes one update; returns scalars, TD errors and how outputs moved."""
    before = agent.q_network.get_weights()[0]
    terms, td_error = agent.update(transitions(*rows))
    moved = agent.q_network.get_weights()[0] - before
    terms = {name: float(value) for name, value in terms.items()}
    return terms, td_error.numpy().tolist(), moved


# The losses, by hand.


@pytest.mark.parametrize(
    ("loss", "expected", "slope"), [("huber", 2.0, 1.0), ("mse", 3.125, 2.5)]
)
def test_loss_is_of_the_td_error_to_the_best_value_of_the_target(
    loss, expected, slope
):
    # 0.5 + 0.5 * max(4, 6) - 1 = 2.5
    agent = linear_agent([[1, 2], [30, 10]], [[9, 9], [4, 6]], loss=loss)
    terms, td_error, moved = update(agent, (0, 0.5, 0.5))
    assert terms["loss"] == pytest.approx(expected)
    assert terms["q_value"] == 1.0
    assert terms["td_error"] == 2.5
    assert terms["gradient_norm"] == pytest.approx(slope)
    assert td_error == [2.5]
    # Only the value of the action taken moves: no gradient through targets.
    np.testing.assert_allclose(moved, [[0.1 * slope, 0], [0, 0]], rtol=1e-6)
    assert agent.target_network.get_weights()[0].tolist() == [[9, 9], [4, 6]]


def test_double_chooses_by_the_network_that_learns():
    # Q chooses action 0, which Q' values at 4: 0.5 + 0.5 * 4 - 1 = 1.5
    agent = linear_agent([[1, 2], [30, 10]], [[9, 9], [4, 6]], double=True)
    terms, td_error, moved = update(agent, (0, 0.5, 0.5))
    assert td_error == [1.5]
    assert terms["loss"] == 1.0
    np.testing.assert_allclose(moved, [[0.1, 0], [0, 0]], rtol=1e-6)


@pytest.mark.parametrize("double", [False, True])
def test_nothing_follows_the_end(double):
    agent = linear_agent([[1, 2], [3, 4]], [[0, 0], [1e9, 1e9]], double=double)
    terms, td_error, _ = update(agent, (1, 0.5, 0.0))
    assert td_error == [1.5]
    assert terms["loss"] == 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_weights_multiply_the_loss_of_each_transition(kind):
    def run(*rows):
        size = 2 if kind is None else 4
        table = np.linspace(0, 1, 2 * size).reshape(2, size)
        agent = linear_agent(table, distributional=kind, atoms=2)
        return update(agent, *rows)

    first, second = (0, 3.0, 0.5), (1, -5.0, 0.5)
    alone = [run(row)[0]["loss"] for row in (first, second)]
    terms, td_error, _ = run((*first, 3.0), (*second, 0.25))
    assert terms["loss"] == pytest.approx((3 * alone[0] + alone[1] / 4) / 2)
    # Priorities are of the transition itself, not of how often it is drawn.
    assert td_error == run(first, second)[1]


def test_gradients_are_clipped_to_their_global_norm():
    agent = linear_agent(np.zeros((2, 2)), loss="mse", max_gradient_norm=10.0)
    terms, _, moved = update(agent, (0, 100.0, 0.0))
    assert terms["gradient_norm"] == pytest.approx(100.0)
    np.testing.assert_allclose(moved, [[0.1 * 10.0, 0], [0, 0]], rtol=1e-5)


def test_n_step_targets_are_those_of_the_replay():
    env = CountingEnv(lengths=(3, 5), truncates=(False, True))
    network = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    agent = rl.DQN(network, gamma=0.5)
    replay = rl.ReplayDataset(
        env, batch_size=16, steps_per_round=32, warm_up=0, n_step=2, seed=0
    )
    agent.compile(run_eagerly=True)
    replay.bind(agent)
    replay.fill(32)
    kernel = np.zeros((4, 3))
    network.set_weights([kernel, np.array([1.0, 2.0, 3.0])])
    agent.target_network.set_weights([kernel, np.array([7.0, 8.0, 6.0])])
    batch = replay.sample(64)
    # Rewards are 10 * episode + step, of which observations tell.
    _, episode, step, _ = batch["observation"].T
    length = np.where(episode % 2 == 0, 3, 5)
    steps = np.minimum(length - step, 2)
    reward = 10 * episode + step + 1
    reward += np.where(steps == 2, 0.5 * (10 * episode + step + 2), 0)
    ended = (step + steps == length) & (episode % 2 == 0)
    target = reward + np.where(ended, 0, 0.5**steps * 8.0)
    assert {1.0, 2.0} == set(steps)
    assert 0 < ended.mean() < 1
    _, td_error = agent.update(batch)
    expected = np.abs(target - (batch["action"] + 1.0))
    np.testing.assert_allclose(td_error, expected, rtol=1e-6)


# Dueling.


def test_dueling_adds_the_value_to_centred_advantages():
    agent = linear_agent([[1, 2, 4], [0, -3, 3]], dueling=True, loss="mse")
    values = agent(np.eye(2, dtype="float32")).numpy()
    assert values.tolist() == [[0.0, 2.0], [-3.0, 3.0]]
    assert agent.value(np.eye(2, dtype="float32")).numpy().tolist() == [2, 3]
    # The error of Q(s, 0) is 2: V moves by all of it, A by what is centred.
    _, td_error, moved = update(agent, (0, 2.0, 0.0))
    assert td_error == [2.0]
    np.testing.assert_allclose(moved, [[0.2, 0.1, -0.1], [0] * 3], atol=1e-7)


def test_dueling_combines_logits_before_the_softmax():
    value, advantages = [0.0, 1.0], [[2.0, 0.0], [4.0, 8.0]]
    row = np.concatenate([value, *advantages])
    agent = linear_agent(
        [row, row],
        dueling=True,
        distributional="categorical",
        atoms=2,
        support=(0.0, 10.0),
    )
    # Means of advantages are 3 and 4: logits (-1, -3) and (1, 5).
    expected = [10 / (1 + math.exp(2)), 10 / (1 + math.exp(-4))]
    values = agent(np.eye(2, dtype="float32")[:1]).numpy()[0]
    np.testing.assert_allclose(values, expected, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_reach_every_layer_of_both_streams(kind):
    agent = rl.DQN.for_env(
        "CartPole-v1",
        hidden=(8, 6),
        activation="tanh",
        dueling=True,
        distributional=kind,
        atoms=3,
        seed=0,
    )
    widths = [
        layer.units
        for layer in agent.q_network.layers
        if isinstance(layer, keras.layers.Dense)
    ]
    assert sorted(widths) == sorted(
        [8, 6, 6, *((1, 2) if not kind else (3, 6))]
    )
    agent.compile(run_eagerly=True)
    before = [v.numpy() for v in agent.q_network.trainable_variables]
    observation = np.ones((1, 4), "float32")
    agent.update(
        {
            "observation": observation,
            "next_observation": observation,
            "action": np.zeros(1, "int32"),
            "reward": np.full(1, 5.0, "float32"),
            "discount": np.ones(1, "float32"),
            "weight": np.ones(1, "float32"),
        }
    )
    after = [v.numpy() for v in agent.q_network.trainable_variables]
    assert len(before) == 10
    for old, new in zip(before, after, strict=True):
        assert (old != new).any()


# Distributions.


def test_categorical_is_the_cross_entropy_to_the_projected_target():
    # Atoms 0, 1, 2. Logits of action 0 are those of 1/4, 1/2, 1/4; the target
    # network is certain that action 1 returns 1, and action 0 returns 0.
    chosen = np.log([0.25, 0.5, 0.25])
    certain = [99.0, 0, 0, 0, 99.0, 0]
    agent = linear_agent(
        [[*chosen, 0, 0, 0], [0] * 6],
        [[0] * 6, certain],
        distributional="categorical",
        atoms=3,
        support=(0, 2),
    )
    state = np.eye(2, dtype="float32")
    np.testing.assert_allclose(agent(state), [[1, 1], [1, 1]], rtol=1e-6)
    # 0.75 + 0.5 * 1 lies at 1.25: 3/4 of it goes to 1 and 1/4 to 2.
    terms, td_error, moved = update(agent, (0, 0.75, 0.5))
    loss = 0.75 * math.log(2) + 0.25 * math.log(4)
    assert terms["loss"] == pytest.approx(loss)
    assert terms["q_value"] == pytest.approx(1.0)
    # The gradient of the logits is p - target.
    assert td_error == pytest.approx([loss])
    gradient = np.array([0.25, 0.5 - 0.75, 0.25 - 0.25])
    np.testing.assert_allclose(moved[0, :3], -0.1 * gradient, atol=1e-7)
    assert not moved[0, 3:].any()
    assert not moved[1].any()


@pytest.mark.parametrize(("double", "following"), [(False, 1), (True, 0)])
@pytest.mark.parametrize("kind", KINDS[1:])
def test_distributions_of_the_action_with_the_best_mean_follow(
    kind, double, following
):
    # The target network prefers action 1, that which learns action 0.
    def table(best):
        rows = {
            "categorical": [[99, 0, 0], [0, 99, 0]],
            "quantile": [[-1.0, 0, 1], [1, 2, 3]],
        }[kind]
        worse, better = rows
        return [worse, better] if best == 1 else [better, worse]

    target = np.array(table(1), "float32")
    agent = linear_agent(
        [[0] * 6, np.ravel(table(0))],
        [[0] * 6, target.ravel()],
        distributional=kind,
        double=double,
        atoms=3,
        support=(0, 2),
    )
    terms, _, _ = update(agent, (0, 0.25, 0.5))
    if kind == "categorical":
        expected = math.log(3)
        assert terms["loss"] == pytest.approx(expected)
        moved = update(agent, (1, 0.0, 1.0))[2][0, 3:]
        # All mass of the target is on one atom, which alone rises.
        assert (moved > 0).tolist() == [following == 0, following == 1, False]
    else:
        error = 0.25 + 0.5 * target[following]
        size = np.abs(error)
        huber = np.where(size < 1, size**2 / 2, size - 0.5)
        taus = np.array([1, 3, 5]) / 6
        weight = np.where(error < 0, 1 - taus[:, None], taus[:, None])
        assert terms["loss"] == pytest.approx((weight * huber).mean(1).sum())


def test_quantiles_are_fitted_by_the_quantile_huber_loss():
    # Fractions 1/4 and 3/4. Targets: 1 + 0.5 * (2, 6) = 2 and 4.
    agent = linear_agent(
        [[0, 3, 9, 9], [0] * 4],
        [[0] * 4, [2, 6, 0, 0]],
        distributional="quantile",
        atoms=2,
        loss="mse",
    )
    state = np.eye(2, dtype="float32")
    assert agent(state).numpy().tolist() == [[1.5, 9.0], [0.0, 0.0]]
    terms, td_error, moved = update(agent, (0, 1.0, 0.5))
    # Errors: of 0, 2 and 4 (Huber 1.5, 3.5); of 3, -1 and 1 (0.5, 0.5).
    loss = (0.25 * 1.5 + 0.25 * 3.5) / 2 + (0.25 * 0.5 + 0.75 * 0.5) / 2
    assert terms["loss"] == pytest.approx(loss)
    assert td_error == pytest.approx([loss])
    slopes = [(0.25 + 0.25) / 2, (-0.25 + 0.75) / 2]
    np.testing.assert_allclose(
        moved, [[0.1 * slopes[0], 0.1 * slopes[1], 0, 0], [0] * 4], atol=1e-7
    )


def test_mean_of_logits_is_what_tf_agents_publishes():
    values = value_distributions.CategoricalValues(3, (10.0, 30.0))
    logits = np.array([[[2.0, 4.0, 2.0], [1.0, 1.0, 20.0]]], "float32")
    np.testing.assert_allclose(values.mean(logits), [[20.0, 30.0]], rtol=1e-3)


# All flags together.


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


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("dueling", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_all_combinations_of_flags_train(double, dueling, kind):
    agent = None
    for prioritized, n_step in itertools.product((False, True), (1, 3)):
        agent = agent or make_agent(
            hidden=(4,),
            compile_arguments=EAGER,
            double=double,
            dueling=dueling,
            distributional=kind,
        )
        replay = make_replay(
            updates_per_round=1, prioritized=prioritized, n_step=n_step
        )
        before = agent.get_weights()
        history = agent.fit(replay, epochs=2, verbose=0).history
        assert replay._actor.backend == "litert"
        assert np.isfinite(history["loss"]).all()
        assert set(agent.statistics_names) | {"epsilon"} < set(history)
        after = agent.get_weights()
        assert all(np.isfinite(weight).all() for weight in after)
        assert any((a != b).any() for a, b in zip(before, after, strict=True))
        if prioritized:
            assert (agent.td_errors.numpy() >= 0).all()


@pytest.mark.parametrize("kind", KINDS[1:])
def test_a_round_is_compiled_as_a_whole(kind):
    """By XLA, with the same numbers as TensorFlow's own kernels."""
    losses = []
    for arguments in ({"optimizer": "sgd"}, EAGER):
        agent = make_agent(
            compile_arguments=arguments,
            hidden=(4,),
            double=True,
            dueling=True,
            distributional=kind,
        )
        replay = make_replay(prioritized=True, n_step=3)
        history = agent.fit(replay, epochs=3, verbose=0).history
        losses.append(history["loss"])
        assert arguments is EAGER or agent.round_size.compiled
    np.testing.assert_allclose(*losses, rtol=1e-4)


@pytest.mark.parametrize("dueling", [False, True])
def test_images_and_discrete_observations(dueling):
    for env, hidden in ((ImageEnv(), "hidden"), (WalkEnv(start=5), "hidden_0")):
        agent = make_agent(env, dueling=dueling, hidden=(4,))
        ends = ("_stream_0", "_stream_1") if dueling else ("",)
        names = {layer.name for layer in agent.q_network.layers}
        assert {hidden + end for end in ends} <= names
        agent.fit(make_replay(env), verbose=0)
        observation, _ = env.reset(seed=0)
        action = agent.act(observation, deterministic=True)
        assert env.action_space.contains(action)


def test_target_is_copied_every_so_many_updates():
    agent = make_agent()
    replay = make_replay(updates_per_round=3)
    callback = rl.callbacks.TargetNetworkSync(every=3)
    agent.fit(replay, callbacks=[callback], verbose=0)
    for target, source in zip(
        agent.target_network.get_weights(),
        agent.q_network.get_weights(),
        strict=True,
    ):
        np.testing.assert_array_equal(target, source)
    assert agent.default_sync().tau == 1.0
    before = agent.target_network.get_weights()
    agent.fit(replay, verbose=0)
    assert agent.default_sync().every > 6
    for old, new in zip(
        before, agent.target_network.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(old, new)


def test_an_update_trains_in_training_mode_and_bootstraps_in_inference_mode():
    seen = []

    @keras.saving.register_keras_serializable(package="test_dqn")
    class Watcher(keras.layers.Layer):
        def call(self, inputs, training=False):
            seen.append(bool(training))
            return inputs

    network = keras.Sequential(
        [keras.Input((2,)), keras.layers.Dense(2), Watcher()]
    )
    agent = rl.DQN(
        network,
        double=True,
        observation_space=OBSERVATIONS,
        action_space=gymnasium.spaces.Discrete(2),
    )
    agent.compile(run_eagerly=True)
    del seen[:]
    agent.update(transitions((0, 1.0, 0.5)))
    assert seen == [False, False, True]
    agent.act(np.zeros(2))
    assert not any(seen[3:])


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
    np.testing.assert_allclose(shares, expected, atol=2 / np.sqrt(20_000))
    if epsilon == 0.0:
        assert shares[1] == 1.0
    assert set(actions_of(agent, deterministic=True)) == {1}


def test_noise_forces_one_action_in_rows_that_explore_only():
    agent = linear_agent(np.zeros((2, 3)), actions=3, epsilon=0.25)
    noise, state = agent.draw_noise(np.random.default_rng(0), (50, 40), "kept")
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
    agent = make_agent(epsilon=schedule)
    assert agent.exploration_logs() == {"epsilon": 1.0}
    history = agent.fit(make_replay(warm_up=8), epochs=6, verbose=0).history
    steps = np.array(history["env_steps"])
    assert steps[0] < 20 < steps[-1]
    expected = 1 - 0.5 * np.minimum(steps / 20, 1)
    np.testing.assert_allclose(history["epsilon"], expected)
    assert agent.exploration_logs()["epsilon"] == 0.5


def test_the_default_schedule_falls_from_1_to_a_twentieth():
    agent = linear_agent(np.zeros((2, 2)))
    seen = []
    for agent.env_steps in (0, 5_000, 10_000, 10**9):
        seen.append(agent.exploration_logs()["epsilon"])
    np.testing.assert_allclose(seen, [1.0, 0.525, 0.05, 0.05], rtol=1e-6)


def test_the_replay_holds_random_actions_in_the_share_of_epsilon():
    agent = make_agent(ActionProbe(), epsilon=0.5)
    agent.bind(ActionProbe().observation_space, ActionProbe().action_space)
    # Prefers action 0 whatever happens.
    *_, kernel, bias = agent.q_network.weights
    kernel.assign(np.zeros(kernel.shape))
    bias.assign([1.0, 0.0])
    replay = make_replay(ActionProbe(), steps_per_round=2000, warm_up=0)
    replay.bind(agent)
    trajectory = replay.collect()
    assert np.mean(trajectory.action) == pytest.approx(0.25, abs=0.05)


# Saving.


def test_save_and_load_keeps_everything(tmp_path):
    schedule = keras.optimizers.schedules.PolynomialDecay(0.9, 50, 0.1)
    agent = make_agent(
        double=True,
        dueling=True,
        distributional="categorical",
        support=(-1, 30),
        loss="mse",
        epsilon=schedule,
        gamma=0.9,
        max_gradient_norm=None,
    )
    agent.fit(make_replay(), epochs=2, verbose=0)
    path = tmp_path / "agent.keras"
    agent.save(path)
    loaded = keras.models.load_model(path)
    observation = np.random.default_rng(0).normal(size=(5, 4)).astype("float32")
    np.testing.assert_array_equal(loaded(observation), agent(observation))
    for one, other in zip(
        loaded.get_weights(), agent.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert loaded.env_steps == agent.env_steps == 12
    assert loaded.exploration_logs() == agent.exploration_logs()
    assert loaded.support == (-1.0, 30.0)
    assert (loaded.double, loaded.dueling, loaded.atoms) == (True, True, 3)
    assert loaded.epsilon.get_config() == schedule.get_config()
    # Goes on as the agent that was saved.
    losses = [
        each.fit(make_replay(), epochs=2, verbose=0).history["loss"]
        for each in (agent, loaded)
    ]
    np.testing.assert_allclose(*losses, rtol=1e-5)


def test_config_is_plain_data_and_has_every_argument():
    agent = make_agent(distributional="quantile", epsilon=0.2, loss="mse")
    config = json.loads(json.dumps(agent.get_config()))
    again = rl.DQN.from_config(config)
    for key in ("double", "dueling", "distributional", "atoms", "support"):
        assert getattr(again, key) == getattr(agent, key)
    assert again.epsilon == 0.2
    assert json.loads(json.dumps(again.get_config()))["loss"] == "mse"


# Wrong arguments.


def plain_network(units=2):
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(units)])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 1.5}, "epsilon"),
        ({"epsilon": -0.1}, "epsilon"),
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
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=f"(?s)Expected.*{message}.*Received"):
        rl.DQN(plain_network(), **arguments)
    with pytest.raises(ValueError, match=f"(?s)Expected.*{message}.*Received"):
        rl.DQN.for_env("CartPole-v1", **arguments)


@pytest.mark.parametrize(
    ("units", "settings", "message"),
    [
        (3, {}, r"\(batch, 2\): 2 actions\. "),
        (2, {"dueling": True}, r"\(batch, 3\): the value of the state and"),
        (
            2,
            {"distributional": "categorical"},
            r"\(batch, 102\): 2 actions, 51 atoms each",
        ),
        (
            2,
            {"distributional": "quantile", "atoms": 5, "dueling": True},
            r"\(batch, 15\): .* the advantages of 2 actions, 5 atoms each",
        ),
    ],
)
def test_a_width_that_does_not_fit_is_named(units, settings, message):
    agent = rl.DQN(plain_network(units), **settings)
    with pytest.raises(ValueError, match=f"(?s)q_network.*{message}.*Received"):
        agent.fit(make_replay(), verbose=0)
    assert agent.env_steps == 0


def test_other_action_spaces_and_networks_are_refused():
    with pytest.raises(ValueError, match="DQN can act in, Discrete"):
        rl.DQN.for_env("Pendulum-v1")
    agent = rl.DQN(plain_network())
    with pytest.raises(ValueError, match="DQN can act in, Discrete"):
        agent.fit(make_replay("Pendulum-v1"), verbose=0)
    with pytest.raises(ValueError, match=r"`q_network` .* Received: 'mlp'"):
        rl.DQN("mlp")
    with pytest.raises(ValueError, match="one network"):
        agent.compile("adam", critic_optimizer="sgd")
