"""TD3: targets and gradients by hand, delays counted, noise measured."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces

import keras_rl2 as rl
from support.agents import assert_equal_weights
from support.agents import make_env
from support.probe_envs import PROBES

UNIT = spaces.Box(-1.0, 1.0, (1,), np.float32)
# tanh of it is a half.
ATANH_HALF = 0.5493061443340549


def linear_actor(weight=0.0, bias=0.0):
    """An actor whose action is tanh(weight * observation + bias)."""
    inputs = keras.Input((1,))
    layer = keras.layers.Dense(1)
    actor = keras.Model(inputs, layer(inputs), name="actor")
    layer.set_weights([np.array([[weight]]), np.array([bias])])
    return actor


def linear_critic(observation=0.0, action=0.0, bias=0.0, name="critic"):
    """A critic that is linear in the observation and the action."""
    inputs = [keras.Input((1,)), keras.Input((1,))]
    layer = keras.layers.Dense(1)
    both = keras.layers.Concatenate()(inputs)
    critic = keras.Model(inputs, layer(both), name=name)
    layer.set_weights([np.array([[observation], [action]]), np.array([bias])])
    return critic


def linear_agent(actor=(0.0, 0.0), critics=((0.0,), (0.0,)), **settings):
    """An agent of linear networks, all its updates by plain SGD of rate 1."""
    settings = {"target_noise": 0.0, "seed": 0, **settings}
    agent = rl.TD3(
        linear_actor(*actor),
        [linear_critic(*c, name=f"critic_{i}") for i, c in enumerate(critics)],
        observation_space=UNIT,
        action_space=UNIT,
        **settings,
    )
    agent.compile(keras.optimizers.SGD(1.0), run_eagerly=True)
    return agent


def batch(observation, action, reward, discount, following, weight=None):
    """A minibatch of transitions of one number each."""
    column = {
        "observation": observation,
        "action": action,
        "next_observation": following,
    }
    row = {
        "reward": reward,
        "discount": discount,
        "weight": np.ones(len(reward)) if weight is None else weight,
    }
    return {
        **{k: tf.constant(v, "float32")[:, None] for k, v in column.items()},
        **{k: tf.constant(v, "float32") for k, v in row.items()},
    }


def set_linear(network, *numbers):
    """Sets the weights of a linear network: all of the kernel, and the bias."""
    *kernel, bias = numbers
    network.set_weights([np.array(kernel)[:, None], np.array([bias])])


def zeros(count):
    return [0.0] * count


# Targets.


def test_targets_by_hand():
    agent = linear_agent((9.0, 9.0), ((9.0, 9.0, 9.0), (-9.0, -9.0, -9.0)))
    # Next actions tanh(± atanh ½) = ± ½, by target networks only.
    set_linear(agent.target_actor, ATANH_HALF, 0.0)
    set_linear(agent.target_critics[0], 2.0, 4.0, 0.0)
    set_linear(agent.target_critics[1], 1.0, 8.0, 0.0)
    data = batch(
        observation=zeros(4),
        action=zeros(4),
        reward=[1.0, 2.0, 3.0, 4.0],
        # The third one ends an episode.
        discount=[0.5, 0.25, 0.0, 1.0],
        following=[1.0, -1.0, 1.0, 0.0],
    )
    # min(2 + 2, 1 + 4) = 4; min(-2 - 2, -1 - 4) = -5; of the last one 0.
    np.testing.assert_allclose(
        agent.targets(data), [3.0, 0.75, 3.0, 4.0], rtol=1e-6
    )


def value_of_noise(agent, count):
    """The next actions, as the critics of an agent see them."""
    for critic in agent.target_critics:
        set_linear(critic, 0.0, 1.0, 0.0)
    ones, none = np.ones(count), zeros(count)
    data = batch(none, none, none, ones, ones)
    return np.array(agent.targets(data))


def test_smoothing_noise_is_clipped():
    agent = linear_agent(target_noise=1e6, target_noise_clip=0.25)
    set_linear(agent.target_actor, ATANH_HALF, 0.0)
    actions = value_of_noise(agent, 1000)
    values, counts = np.unique(actions.round(6), return_counts=True)
    np.testing.assert_array_equal(values, np.float32([0.25, 0.75]))
    assert counts.min() > 400


def test_smoothed_actions_are_clipped_to_the_unit_box():
    agent = linear_agent(target_noise=1e6, target_noise_clip=0.75)
    set_linear(agent.target_actor, ATANH_HALF, 0.0)
    np.testing.assert_array_equal(
        np.unique(value_of_noise(agent, 100).round(6)), np.float32([-0.25, 1.0])
    )


def test_smoothing_noise_is_normal_and_new_at_each_update():
    agent = linear_agent(target_noise=0.2, target_noise_clip=0.5)
    first = value_of_noise(agent, 10_000)
    # Clipping at 2.5 deviations takes 2 % off.
    assert first.mean() == pytest.approx(0.0, abs=0.01)
    assert first.std() == pytest.approx(0.195, abs=0.005)
    assert np.abs(first).max() == 0.5
    np.testing.assert_array_equal(value_of_noise(agent, 10_000), first)
    agent.updates.assign(1)
    assert np.corrcoef(value_of_noise(agent, 10_000), first)[0, 1] < 0.05


# Updates.

DATA = batch(
    observation=[1.0, 2.0],
    action=[0.5, -1.0],
    reward=[1.0, 0.0],
    discount=[0.0, 0.0],
    following=[0.0, 0.0],
    weight=[1.0, 0.5],
)


BY_HAND = {
    "actor": (0.0, ATANH_HALF),
    "critics": ((1.0, 2.0, 0.5), (0.0, 1.0, 0.0)),
}


def assert_linear(network, *expected):
    """Asserts all of the kernel and the bias of a linear network."""
    kernel, bias = network.get_weights()
    np.testing.assert_allclose([*kernel.ravel(), *bias], expected, rtol=1e-5)


def test_update_by_hand():
    agent = linear_agent(**BY_HAND, policy_delay=1)
    logs = agent.train_step(DATA)
    # Values 2.5, 0.5 and 0.5, -1: TD errors -1.5, -0.5 and 0.5, 1. Weights
    # gain the means of weight * error * (observation, action, 1):
    # -1, -0.25, -0.875 and 0.75, -0.125, 0.5.
    assert_linear(agent.critics[0], 0.0, 1.75, -0.375)
    assert_linear(agent.critics[1], 0.75, 0.875, 0.5)
    # Half of (2.25 + 0.5 * 0.25) / 2 + (0.25 + 0.5 * 1) / 2.
    assert float(logs["critic_loss"]) == pytest.approx(0.78125)
    assert float(logs["q_value"]) == pytest.approx(1.5)
    assert float(logs["gradient_norm"]) == pytest.approx(2.65625**0.5)
    # Q_1 of the action ½ is 2.5 and 3.5. Its slope of 2 is that before the
    # update; that of tanh is ¾: the means of weight * 1.5 * (observation, 1).
    assert float(logs["actor_loss"]) == pytest.approx(-2.125)
    assert_linear(agent.actor, 1.5, ATANH_HALF + 1.125)
    assert float(logs["loss"]) == pytest.approx(0.78125 - 2.125)


def test_delayed_update_by_hand():
    agent = linear_agent(**BY_HAND, policy_delay=2)
    logs = agent.train_step(DATA)
    assert_linear(agent.critics[0], 0.0, 1.75, -0.375)
    assert_linear(agent.actor, 0.0, ATANH_HALF)
    assert float(logs["actor_loss"]) == 0.0
    agent.statistics.reset_state()
    logs = agent.train_step(DATA)
    # Q_1 of the action ½ is ½ by now, and its slope 1.75.
    assert float(logs["actor_loss"]) == pytest.approx(-0.375)
    assert_linear(agent.actor, 1.3125, ATANH_HALF + 0.984375)
    logs = agent.train_step(DATA)
    # The third one reports the loss of the second: so their mean is the same.
    assert float(logs["actor_loss"]) == pytest.approx(-0.375)


def test_td_errors_are_the_mean_of_both_critics():
    _, td_error = linear_agent(**BY_HAND).update(DATA)
    np.testing.assert_allclose(td_error, [-0.5, 0.25])


def test_gradients_are_clipped_each_for_itself():
    agent = linear_agent(**BY_HAND, policy_delay=1, max_gradient_norm=0.1)
    before = [np.concatenate([w.ravel() for w in agent.actor.get_weights()])]
    logs = agent.train_step(DATA)
    after = np.concatenate([w.ravel() for w in agent.actor.get_weights()])
    assert np.linalg.norm(after - before) == pytest.approx(0.1, rel=1e-4)
    assert float(logs["gradient_norm"]) == pytest.approx(2.65625**0.5)


def minibatches(updates):
    """DATA so many times, for `fit`."""
    return tf.data.Dataset.from_tensors(DATA).repeat(updates)


def test_targets_move_with_the_policy():
    agent = linear_agent(**BY_HAND, policy_delay=2)
    agent.fit(minibatches(1), verbose=0)
    # The first fit began with a copy, and one update is none of the actor.
    assert_linear(agent.target_critics[0], 1.0, 2.0, 0.5)
    agent.fit(minibatches(1), verbose=0)
    assert_linear(
        agent.target_actor, 0.005 * 1.3125, ATANH_HALF + 0.005 * 0.984375
    )
    for target, critic, old in zip(
        agent.target_critics, agent.critics, BY_HAND["critics"], strict=True
    ):
        kernel, bias = critic.get_weights()
        new = np.array([*kernel.ravel(), *bias])
        assert_linear(target, *(0.995 * np.array(old) + 0.005 * new))
    before = agent.target_actor.get_weights()
    agent.fit(minibatches(1), verbose=0)
    assert_equal_weights(agent.target_actor.get_weights(), before)


def test_default_sync_follows_the_delay():
    sync = linear_agent(policy_delay=3).default_sync()
    assert (sync.tau, sync.every) == (0.005, 3)


# Counts, in `fit`.


def small_agent(pair="act_box", **settings):
    settings = {"hidden": (8,), "seed": 0, **settings}
    return rl.TD3.for_env(make_env(pair), **settings)


def small_replay(pair="act_box", **arguments):
    arguments = {
        "capacity": 200,
        "batch_size": 8,
        "steps_per_round": 4,
        "updates_per_round": 7,
        "warm_up": 8,
        "rounds_per_epoch": 1,
        "seed": 0,
        **arguments,
    }
    return rl.ReplayDataset(make_env(pair), **arguments)


def iterations(agent):
    """Updates of the actor, of the critics and of both, as counted by Keras."""
    arguments = agent.compile_arguments
    optimizers = arguments.optimizer, arguments.critic_optimizer
    return [int(x.iterations.numpy()) for x in (*optimizers, agent.optimizer)]


MODES = {
    "eager": {"run_eagerly": True},
    "graph": {"jit_compile": False},
    "xla": {"jit_compile": True},
}


@pytest.fixture(scope="module")
def trained():
    """Agents after a round of seven updates in one execution; made once."""
    made = {}

    def get(mode, delay):
        if (mode, delay) not in made:
            agent = small_agent(policy_delay=delay, target_noise=0.0)
            agent.compile(**MODES[mode])
            agent.fit(small_replay(), verbose=0)
            made[mode, delay] = agent
        return made[mode, delay]

    return get


@pytest.mark.parametrize(
    ("mode", "delay"),
    [("eager", 1), ("eager", 2), ("eager", 3), ("graph", 3), ("xla", 2)],
)
def test_actor_updates_are_counted_exactly(mode, delay, trained):
    agent = trained(mode, delay)
    assert agent.updates.numpy() == 7
    assert iterations(agent) == [7 // delay, 7, 7]


@pytest.mark.parametrize(("mode", "delay"), [("graph", 3), ("xla", 2)])
def test_compiled_updates_are_those_of_eager_ones(mode, delay, trained):
    eager, compiled = trained("eager", delay), trained(mode, delay)
    for one, other in zip(
        eager.get_weights(), compiled.get_weights(), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("delay", [1, 2, 3])
def test_training_goes_on_after_loading(delay, tmp_path):
    agent = small_agent(policy_delay=delay)
    agent.compile(run_eagerly=True)
    agent.fit(small_replay(), verbose=0)
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    assert iterations(loaded) == [7 // delay, 7, 7]
    histories = [
        one.fit(small_replay(seed=1), verbose=0).history
        for one in (agent, loaded)
    ]
    assert iterations(loaded) == [14 // delay, 14, 14]
    assert_equal_weights(loaded, agent)
    assert_equal_weights(
        [v.numpy() for v in loaded.optimizer.variables],
        [v.numpy() for v in agent.optimizer.variables],
    )
    for key in rl.TD3.statistics_names:
        assert histories[0][key] == histories[1][key], key


# Optimizers.


def rates(agent):
    """Learning rates of the actor's and of the critics' optimizer."""
    arguments = agent.compile_arguments
    optimizers = arguments.optimizer, arguments.critic_optimizer
    return [float(x.learning_rate.numpy()) for x in optimizers]


def test_default_optimizers():
    agent = small_agent()
    agent.compile(run_eagerly=True)
    history = agent.fit(small_replay(updates_per_round=1), verbose=0).history
    assert rates(agent) == pytest.approx([1e-3, 1e-3])
    assert history["learning_rate_actor"] == pytest.approx([1e-3])
    assert history["learning_rate_critic"] == pytest.approx([1e-3])


@pytest.mark.parametrize("critic_optimizer", ["auto", None])
def test_one_optimizer_is_copied_for_the_critics(critic_optimizer):
    agent = small_agent()
    schedule = keras.optimizers.schedules.PolynomialDecay(0.1, 10, 0.2)
    given = keras.optimizers.RMSprop(schedule, rho=0.8)
    agent.compile(given, critic_optimizer=critic_optimizer)
    arguments = agent.compile_arguments
    assert arguments.optimizer is given
    copy = arguments.critic_optimizer
    assert type(copy) is keras.optimizers.RMSprop
    assert copy is not given
    assert copy.rho == 0.8
    assert rates(agent) == pytest.approx([0.1, 0.1])


def test_two_optimizers_own_their_networks(tmp_path):
    agent = small_agent()
    agent.compile(
        keras.optimizers.Adam(1e-2),
        critic_optimizer=keras.optimizers.SGD(2e-2),
        run_eagerly=True,
    )
    agent.fit(small_replay(updates_per_round=2), verbose=0)
    adam, sgd = agent.optimizer.optimizers
    # Iterations, learning rate and two moments for each of the actor's.
    assert len(adam.variables) == 2 + 2 * len(agent.actor.trainable_variables)
    assert len(sgd.variables) == 2
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    assert rates(loaded) == pytest.approx([1e-2, 2e-2])


def test_two_optimizers_may_not_be_one():
    adam = keras.optimizers.Adam()
    with pytest.raises(ValueError, match="the same object"):
        small_agent().compile(adam, critic_optimizer=adam)


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision_trains_and_is_saved(dtype, tmp_path):
    keras.config.set_dtype_policy(dtype)
    try:
        agent = small_agent("act_box_matrix", policy_delay=1)
    finally:
        keras.config.set_dtype_policy("float32")
    agent.compile(run_eagerly=True)
    before = agent.get_weights()
    agent.fit(small_replay("act_box_matrix", updates_per_round=2), verbose=0)
    assert iterations(agent) == [2, 2, 2]
    for old, new in zip(before, agent.get_weights(), strict=True):
        assert np.isfinite(new).all()
        assert (old != new).any()
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    assert type(loaded.optimizer) is type(agent.optimizer)
    assert_equal_weights(loaded, agent)


# Acting.


def explore(agent, steps, envs=8):
    """Draws a policy's actions on observations of zero."""
    generator = np.random.default_rng(0)
    noise, _ = agent.draw_noise(generator, (steps, envs))
    observation = np.zeros((steps * envs, 1), "float32")
    return np.array(agent.sample_action(observation, noise.reshape(-1, 1)))


def test_exploration_adds_noise_in_the_unit_box():
    agent = linear_agent((0.0, ATANH_HALF), exploration=0.1)
    actions = explore(agent, 1000)
    assert actions.mean() == pytest.approx(0.5, abs=0.005)
    assert actions.std() == pytest.approx(0.1, rel=0.05)


def test_actions_are_clipped_at_the_bounds():
    agent = linear_agent((0.0, 20.0), exploration=0.5)
    actions = explore(agent, 100)
    assert actions.max() == 1.0
    assert (actions == 1.0).mean() == pytest.approx(0.5, abs=0.1)
    assert actions.min() < 0.0


@pytest.mark.parametrize("shape", [(5, 3), (3,), (1,)])
def test_noise_has_the_shape_that_is_asked_for(shape):
    agent = linear_agent(exploration=0.1)
    noise, state = agent.draw_noise(np.random.default_rng(0), shape)
    assert noise.shape == (*shape, 1)
    assert noise.dtype == np.float32
    assert state is None
    agent = linear_agent(exploration=None)
    noise, _ = agent.draw_noise(np.random.default_rng(0), shape)
    np.testing.assert_array_equal(noise, np.zeros((*shape, 1), "float32"))


def test_noise_that_remembers_goes_on():
    agent = linear_agent(exploration="ornstein_uhlenbeck")
    whole, last = agent.draw_noise(np.random.default_rng(0), (6, 2))
    generator = np.random.default_rng(0)
    first, state = agent.draw_noise(generator, (4, 2))
    second, state = agent.draw_noise(generator, (2, 2), state)
    np.testing.assert_array_equal(np.concatenate([first, second]), whole)
    np.testing.assert_array_equal(state, last)


def test_scale_of_the_noise_follows_the_environment_steps():
    schedule = keras.optimizers.schedules.PolynomialDecay(1.0, 100, 0.0)
    agent = linear_agent(exploration=rl.exploration.GaussianNoise(schedule))
    assert agent.exploration_logs() == {"exploration_scale": 1.0}
    agent.env_steps = 75
    assert agent.exploration_logs() == {"exploration_scale": 0.25}
    assert explore(agent, 1000).std() == pytest.approx(0.25, rel=0.05)
    assert linear_agent().exploration_logs() == {}


def test_act_explores_unless_it_is_deterministic():
    agent = linear_agent((0.0, ATANH_HALF), exploration=0.1)
    observation = np.zeros((500, 1))
    np.testing.assert_allclose(
        agent.act(observation, deterministic=True), np.full((500, 1), 0.5)
    )
    assert agent.act(observation).std() == pytest.approx(0.1, rel=0.1)
    assert agent.act(observation[0]).shape == (1,)


def test_environment_never_sees_more_than_its_bounds():
    """It raises if it does. The nearest float32 of 0.3 is outside of them."""
    agent = small_agent("act_box_matrix", exploration=2.0)
    agent.compile(run_eagerly=True)
    replay = small_replay(
        "act_box_matrix", steps_per_round=32, updates_per_round=1
    )
    agent.fit(replay, epochs=2, verbose=0)
    assert replay._actor.backend == "litert"
    actions = replay.sample(64)["action"]
    assert actions.shape == (64, 4)
    assert (actions.min(), actions.max()) == (-1.0, 1.0)
    greedy = agent.act(np.zeros((1, 3)), deterministic=True)
    # Half way between the bounds: the first weights of the output are small.
    np.testing.assert_allclose(greedy, np.full((1, 2, 2), 0.1), atol=0.02)


def test_exported_policy_stretches_to_the_bounds(tmp_path):
    agent = small_agent("act_box_matrix")
    agent.export(str(tmp_path / "policy"))
    observation = np.full((3, 3), 0.5, "float32")
    policy = tf.saved_model.load(str(tmp_path / "policy"))
    np.testing.assert_allclose(
        policy.serve(observation),
        agent.act(observation, deterministic=True),
        rtol=1e-6,
    )


# Making one.

SETTINGS = {
    "policy_delay": 3,
    "target_noise": 0.3,
    "target_noise_clip": 0.4,
    "exploration": rl.exploration.OrnsteinUhlenbeckNoise(0.3, dt=0.1),
    "gamma": 0.9,
    "max_gradient_norm": 0.5,
    "seed": 3,
    "name": "my_agent",
}


def test_config_round_trip_with_nothing_at_its_default():
    agent = small_agent(**SETTINGS)
    config = json.loads(json.dumps(agent.get_config()))
    again = rl.TD3.from_config(config)
    for key, value in SETTINGS.items():
        assert getattr(again, key) == value, key
    assert again.action_space == agent.action_space
    shapes = [v.shape for v in agent.variables]
    assert [v.shape for v in again.variables] == shapes


def test_a_single_critic_gets_a_twin():
    agent = rl.TD3(
        keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)]),
        rl.networks.critic_for(UNIT, 1, hidden=(8,), seed=0),
        observation_space=UNIT,
        action_space=UNIT,
    )
    one, other = agent.critics
    assert one.count_params() == other.count_params()
    assert (one.get_weights()[0] != other.get_weights()[0]).any()
    assert_equal_weights(agent.target_critics[1], other)
    assert_equal_weights(agent.target_actor, agent.actor)


@pytest.mark.parametrize(
    "setting",
    [
        {"policy_delay": 0},
        {"policy_delay": 1.5},
        {"target_noise": -0.1},
        {"target_noise_clip": -0.1},
        {"exploration": -0.1},
        {"exploration": "loud"},
        {"gamma": 1.5},
    ],
)
def test_settings_out_of_range_are_refused(setting):
    [name] = setting
    with pytest.raises(ValueError, match=f"(?i){name}|scale.*0 or more"):
        rl.TD3(linear_actor(), linear_critic(), **setting)


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (spaces.Discrete(3), "TD3 can act in, Box"),
        (spaces.Box(-1.0, np.inf, (1,), np.float32), "finite bounds"),
    ],
)
def test_actions_that_are_no_bounded_box_are_refused(space, message):
    env = PROBES[1](space)
    with pytest.raises(ValueError, match=message):
        rl.TD3.for_env(env)
    agent = rl.TD3(linear_actor(), linear_critic())
    agent.compile()
    with pytest.raises(ValueError, match=message):
        agent.fit(rl.ReplayDataset(env), verbose=0)
    assert agent.env_steps == 0


def test_networks_that_do_not_fit_are_refused():
    bound = {"observation_space": UNIT, "action_space": UNIT}
    wide = keras.Sequential([keras.Input((1,)), keras.layers.Dense(2)])
    with pytest.raises(ValueError, match="actor's output"):
        rl.TD3(wide, linear_critic(), **bound)
    critic = linear_critic()
    with pytest.raises(ValueError, match="without common variables"):
        rl.TD3(linear_actor(), [critic, critic], **bound)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_probe_of_a_continuous_action(seed):
    """As soon as SAC of Stable-Baselines3: 960 steps until it has held."""
    env = PROBES[9]()
    agent = rl.TD3.for_env(env, hidden=(32,), gamma=0.5, seed=seed)
    agent.compile(keras.optimizers.Adam(1e-2), jit_compile=False)
    replay = rl.ReplayDataset(
        env, batch_size=64, warm_up=64, rounds_per_epoch=1, seed=seed
    )
    actions = []
    watch = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: actions.append(
            agent.act(np.zeros(1), deterministic=True)[0]
        )
    )
    agent.fit(replay, total_steps=960, callbacks=[watch], verbose=0)
    assert agent.env_steps <= 960
    np.testing.assert_allclose(actions[-5:], np.full(5, 0.5), atol=0.05)
