"""Every agent fulfils the contract of `keras.Model`, or refuses by name."""

import re

import gymnasium
import keras
import numpy as np
import pytest
from keras import layers

import keras_rl2 as rl
from keras_rl2.envs import as_vector_env
from keras_rl2.networks.model_layers import drawing_layers
from keras_rl2.training import rounds
from keras_rl2.training.rounds import TrajectoryRound
from support.agents import EITHER_DATASET
from support.agents import EVERY_AGENT
from support.agents import KINDS
from support.agents import assert_equal_weights
from support.agents import differ
from support.agents import make_agent
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import make_replay
from support.agents import make_rollouts
from support.agents import networks_of
from support.agents import slow
from support.agents import weights_of
from support.any_space_env import AnySpaceEnv
from support.minibatches import small_agent
from support.plain_networks import dense
from support.plain_networks import dense_of_both
from support.plain_networks import plain_networks
from support.stock_layers import LAYERS
from support.stock_layers import OBSERVATIONS
from support.stock_layers import network

over_datasets = pytest.mark.parametrize("name", EITHER_DATASET)


def derived(kind, **methods):
    """Makes a class as a user would write it."""
    return type("Mine", (kind,), {"__module__": "mine", **methods})


def agent_of(case, **methods):
    """Makes a small agent of a class with methods of its own."""
    agent = derived(case.make, **methods).for_env(
        make_env(case.pair), hidden=(8,), seed=0
    )
    agent.compile(run_eagerly=True, steps_per_execution=1)
    return agent


# Methods that Keras says may be overridden.


def own_train_step(self, data):
    self.env_steps += 1000
    logs = super(type(self), self).train_step(data)
    return {**logs, "own": 2.0 * logs["loss"]}


def test_an_own_train_step_is_called():
    case = EVERY_AGENT["SAC"]
    agent = agent_of(case, train_step=own_train_step)
    dataset = case.make_dataset(make_env(case.pair), **case.one_update)
    history = agent.fit(dataset, verbose=0).history
    assert agent.env_steps >= 1000
    np.testing.assert_allclose(history["own"], [2.0 * history["loss"][0]])


def test_a_round_of_one_update_is_made_by_methods_of_the_user():
    """A2C would otherwise learn from the trajectory, without these methods."""
    case = EVERY_AGENT["A2C"]

    def train_step(self, data):
        self.seen = sorted(data)
        return super(type(self), self).train_step(data)

    def prepare(self, trajectory):
        samples, statistics = super(type(self), self).prepare(trajectory)
        samples["advantage"] = 0.0 * samples["advantage"]
        samples["returns"] = samples["value"]
        return samples, statistics

    def objectives(self):
        found = super(type(self), self).objectives()
        return {"own": found["actor_critic"]}

    def trained(**methods):
        agent = agent_of(case, **methods)
        agent.compile()
        before = weights_of(agent)
        agent.fit(make_rollouts(make_env(), batch_size=None), verbose=0)
        assert isinstance(agent.rounds, TrajectoryRound) == (not methods)
        return agent, before

    trained()
    trained(objectives=objectives)
    agent, _ = trained(train_step=train_step)
    assert "advantage" in agent.seen
    agent, before = trained(prepare=prepare)
    for old, new in zip(before, agent.get_weights(), strict=True):
        np.testing.assert_allclose(old, new, atol=1e-3)


@over_datasets
def test_an_own_train_function_is_called_with_minibatches(name):
    case, calls = EVERY_AGENT[name], []

    def make_train_function(self, force=False):
        def train(iterator):
            calls.append(sorted(next(iterator)))
            return {"own": 3.0}

        self.train_function = train
        return train

    agent = agent_of(case, make_train_function=make_train_function)
    dataset = case.make_dataset(make_env(case.pair))
    history = agent.fit(dataset, verbose=0).history
    assert history["own"] == [3.0]
    assert len(calls) == 2
    assert all("observation" in entries for entries in calls)


def test_methods_that_are_never_called_are_refused():
    """The message names methods that the agent has."""
    case, plain = EVERY_AGENT["PPO"], agent_of(EVERY_AGENT["PPO"])
    for method in ("test_step", "make_test_function", "compute_loss", "call"):
        with pytest.raises(TypeError) as caught:
            agent_of(case, **{method: lambda self, *args: 0.0})
        text = str(caught.value)
        assert f"Received: `Mine.{method}`, which" in text
        named = re.findall(r"`(\w+)`", text)
        assert named
        assert all(hasattr(plain, each) for each in named)


def test_a_train_step_of_a_subclass_may_call_compute_loss():
    def train_step(self, data):
        return {"own": self.compute_loss(data)}

    case = EVERY_AGENT["PPO"]
    four = {"compute_loss": lambda self, x: keras.ops.convert_to_tensor(4.0)}
    agent = agent_of(case, train_step=train_step, **four)
    assert agent.fit(make_rollouts(make_env()), verbose=0).history["own"] == [
        4.0
    ]
    # That of the library does not.
    agent = agent_of(case, train_step=own_train_step, **four)
    with pytest.raises(TypeError, match=r"Received: `Mine\.compute_loss`"):
        agent.fit(make_rollouts(make_env()), verbose=0)


def test_predictions_equal_the_outputs_of_call():
    def predict_step(self, data):
        return -super(type(self), self).predict_step(data)

    agent = agent_of(EVERY_AGENT["PPO"], predict_step=predict_step)
    observations = np.random.default_rng(0).uniform(-1, 1, (5, 3))
    expected = -np.asarray(agent(observations))
    for predicted in (
        agent.predict(observations, batch_size=2, verbose=0),
        agent.predict_on_batch(observations),
    ):
        np.testing.assert_allclose(predicted, expected, rtol=1e-4, atol=1e-6)


def test_own_metrics_are_shown_and_reset():
    case = EVERY_AGENT["PPO"]
    own = keras.metrics.Mean(name="own")

    def train_step(self, data):
        own.update_state(5.0)
        return super(type(self), self).train_step(data)

    agent = agent_of(
        case,
        train_step=train_step,
        metrics=property(lambda self: [*super(type(self), self).metrics, own]),
    )
    history = agent.fit(make_rollouts(make_env()), epochs=2, verbose=0).history
    assert history["own"] == [5.0, 5.0]
    assert own.count == 2


# Weights of samples.


@pytest.mark.parametrize("name", ["PPO", *slow("SAC")])
def test_sample_weights_are_weights_of_the_minibatch(name):
    some, ones = np.arange(8, dtype="float32") / 4.0, np.ones(8, "float32")
    agent, batch = small_agent(EVERY_AGENT[name])
    batch = {key: batch[key] for key in batch if key != "weight"}
    # Samples of no weight teach nothing.
    before = [v.numpy() for v in agent.trainable_variables]
    agent.train_on_batch(batch, sample_weight=0.0 * some)
    trained = [v.numpy() for v in agent.trainable_variables]
    assert_equal_weights(trained, before)
    start = weights_of(agent)

    def after(weight, **arguments):
        agent.set_weights(start)
        agent.train_on_batch({**batch, **weight}, **arguments)
        return weights_of(agent)

    one, other = after({"weight": some}), after({}, sample_weight=some)
    assert_equal_weights(one, other)
    # Without weights every row counts.
    whole = after({})
    assert_equal_weights(whole, after({"weight": ones}))
    assert differ(one, whole)


def test_train_on_batch_refuses_arguments_without_meaning():
    agent, batch = small_agent(EVERY_AGENT["PPO"])
    before = weights_of(agent)
    for arguments, message in (
        ({"y": np.zeros(8)}, "Received: targets `y` beside it"),
        ({"class_weight": {0: 1.0}}, "there are none. Received: class_weight="),
        ({"sample_weight": np.ones(3)}, r"\(8,\)\. Received: \(3,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            agent.train_on_batch(batch, **arguments)
    with pytest.raises(ValueError, match="Expected a minibatch to be a dict"):
        agent.train_on_batch(np.zeros((8, 3)))
    assert_equal_weights(agent, before)


def test_fit_refuses_arguments_without_meaning():
    agent = make_eager_agent(EVERY_AGENT["PPO"], make_env())
    rollouts = make_rollouts(make_env())
    for name in ("steps_per_epoch", "class_weight", "batch_size", "y"):
        with pytest.raises(ValueError, match=f"`fit` without `{name}`; use"):
            agent.fit(rollouts, **{name: 3})
    minibatches = rollouts.as_dataset(agent)
    for argument in ("y", "sample_weight", "validation_split"):
        with pytest.raises(ValueError, match=f"without `{argument}`.*Received"):
            agent.fit(minibatches, steps_per_epoch=2, **{argument: {0: 1.0}})
    assert agent.env_steps == 0
    with_targets = minibatches.map(lambda batch: (batch, batch["action"]))
    refresh = rl.callbacks.RolloutRefresh(rollouts)
    with pytest.raises(ValueError, match="targets `y` beside it"):
        agent.fit(with_targets, steps_per_epoch=2, callbacks=[refresh])


# What is frozen.


def test_training_a_frozen_agent_is_refused():
    agent, batch = small_agent(EVERY_AGENT["PPO"])
    agent.trainable = False
    for use, given in (
        (agent.fit, make_rollouts(make_env())),
        (agent.train_on_batch, batch),
        (agent.train_step, batch),
    ):
        with pytest.raises(ValueError, match=r"Expected something.*are frozen"):
            use(given)


@pytest.mark.parametrize(
    ("name", "frozen"),
    [
        ("PPO", "actor"),
        ("TD3", "critic"),
        *slow(("PPO", "critic"), ("TD3", "actor")),
        *slow(("SAC", "actor"), ("SAC", "critic")),
    ],
)
def test_frozen_networks_stay_as_they_are(name, frozen):
    case = EVERY_AGENT[name]
    agent = make_eager_agent(
        case, make_env(case.pair), normalize_observations=True
    )
    networks = keras.tree.flatten(networks_of(agent)[frozen])
    for each in networks:
        each.trainable = False
    before = [each.get_weights() for each in networks]
    all_before = weights_of(agent)
    agent.fit(case.make_dataset(make_env(case.pair)), verbose=0)
    for each, weights in zip(networks, before, strict=True):
        assert_equal_weights(each, weights)
    assert differ(all_before, agent.get_weights())


def test_a_layer_frozen_between_two_fits_stays():
    """Though Keras would go on with the function that it has traced."""
    agent = make_agent(EVERY_AGENT["PPO"], make_env())
    rollouts = make_rollouts(make_env())
    agent.fit(rollouts, verbose=0)
    agent.actor.trainable = False
    before, critic = agent.actor.get_weights(), agent.critic.get_weights()
    agent.fit(rollouts, verbose=0)
    assert_equal_weights(agent.actor.get_weights(), before)
    assert differ(critic, agent.critic.get_weights())


@pytest.mark.parametrize("name", ["PPO", *slow("SAC", "TD3", "CrossQ")])
def test_unfrozen_layers_require_a_new_compile(name):
    case = EVERY_AGENT[name]
    agent = make_eager_agent(case, make_env(case.pair))
    layer = agent.acting_networks[0].layers[-1]
    layer.trainable = False
    dataset = case.make_dataset(make_env(case.pair))
    agent.fit(dataset, verbose=0)
    before = layer.get_weights()
    layer.trainable = True
    with pytest.raises(ValueError, match=f"`compile`.*{layer.name}"):
        agent.fit(dataset, verbose=0)
    agent.compile(run_eagerly=True)
    agent.fit(dataset, verbose=0)
    assert differ(before, layer.get_weights())


@pytest.mark.parametrize("name", ["PPO", *slow("A2C")])
def test_numbers_that_change_between_two_fits_count(name):
    env = make_env()
    agent = make_agent(
        EVERY_AGENT[name],
        env,
        compile_arguments={"optimizer": "sgd", "jit_compile": False},
    )
    agent.optimizer.learning_rate = 0.0
    rollouts = make_rollouts(env, passes=1, batch_size=None)
    agent.fit(rollouts, verbose=0)
    seen = []
    agent.observers.add(seen.append)
    agent.gamma = 0.0
    loss = agent.fit(rollouts, verbose=0).history["value_loss"][0]
    # Then a return is the reward.
    observation = seen[0].observation[:-1].reshape(-1, 3)
    errors = seen[0].reward.ravel() - agent.value(observation).numpy()
    assert loss == pytest.approx(np.mean(errors[seen[0].valid.ravel()] ** 2))


def test_rewards_are_scaled_by_the_present_discount():
    env = make_env()
    agent = make_eager_agent(EVERY_AGENT["PPO"], env)
    rollouts = make_rollouts(env, scale_rewards=True)
    agent.fit(rollouts, verbose=0)
    agent.gamma = 0.5
    rollouts.bind(agent)
    assert rollouts.scaler.gamma == 0.5


def test_targets_are_never_trained():
    """`trainable = True` of the agent is said to all of its layers."""
    agent = make_eager_agent(EVERY_AGENT["DQN"], make_env())
    agent.trainable = False
    agent.trainable = True
    agent.fit(make_replay(make_env()), verbose=0)
    assert agent.trainable_variables
    assert not agent.target_network.trainable_variables


# Before there is an environment.


def unbound():
    return rl.PPO(**plain_networks(EVERY_AGENT["PPO"], units=3))


_ROWS = np.zeros((4, 3), "float32")
_BATCH = {"observation": _ROWS, "action": np.zeros(4, int)}


def test_an_agent_without_spaces_refuses_to_act_and_train():
    agent = unbound()
    for use, given in (
        *((agent.act, [_ROWS]), (agent, [_ROWS]), (agent.value, [_ROWS])),
        *((agent.predict_on_batch, [_ROWS]), (agent.distribution, [_ROWS])),
        *((agent.train_step, [_BATCH]), (agent.train_on_batch, [_BATCH])),
        *((agent.export, ["nowhere"]), (agent.get_state, [])),
        *((getattr, [agent, "noise"]),),
    ):
        with pytest.raises(ValueError, match="a PPO that knows its spaces"):
            use(*given)


def test_an_update_wants_an_optimizer():
    agent = unbound()
    agent.bind(make_env().observation_space, make_env().action_space)
    with pytest.raises(ValueError, match="Expected `compile` before an update"):
        agent.train_step(_BATCH)


# Keras' other verbs.


def test_unsupported_methods_of_keras_are_refused():
    agent = make_agent(EVERY_AGENT["PPO"], make_env())
    message = r"`evaluate.env.`.*`test_on_batch` of PPO"
    with pytest.raises(NotImplementedError, match=message):
        agent.test_on_batch({"observation": _ROWS})
    agent = rl.PPO.for_env("CartPole-v1", memory=layers.GRUCell(4), seed=0)
    for verb in (agent.predict, agent.predict_on_batch):
        with pytest.raises(NotImplementedError, match=r"Expected `act.observ"):
            verb(np.zeros((3, 4), "float32"))


def test_weights_of_other_networks_change_nothing_or_are_skipped(tmp_path):
    made = []
    for width in (8, 9):
        critic = keras.Sequential([layers.Dense(width), layers.Dense(1)])
        agent = rl.PPO(dense((3,), 3), critic)
        agent.bind(make_env().observation_space, make_env().action_space)
        agent.compile()
        made.append(agent)
    one, other = made
    one.env_steps = 77
    path = tmp_path / "one.weights.h5"
    one.save_weights(path)
    before = weights_of(other)
    with pytest.raises(ValueError, match="could not be loaded"):
        other.load_weights(path)
    assert_equal_weights(other, before)
    assert other.env_steps == 0
    kept = other.critic.layers[0].get_weights()
    with pytest.warns(UserWarning, match="could not be loaded"):
        other.load_weights(path, skip_mismatch=True)
    assert_equal_weights(other.actor, one.actor)
    assert_equal_weights(other.critic.layers[0].get_weights(), kept)


# Layers.


@pytest.mark.parametrize(
    "scaled",
    [
        lambda x: 2.0 * x,
        layers.Rescaling(2.0, offset=0.5),
        lambda x: x * np.array([2.0], "float32"),
    ],
)
def test_an_actor_that_scales_its_tanh_is_warned_of(scaled):
    inputs = keras.Input((3,))
    outputs = scaled(layers.Dense(1, "tanh")(inputs))
    with pytest.warns(UserWarning, match="leave the scaling out"):
        rl.TD3(
            keras.Model(inputs, outputs),
            dense_of_both((3,), 1),
            observation_space=gymnasium.spaces.Box(-1.0, 1.0, (3,)),
            action_space=gymnasium.spaces.Box(-2.0, 2.0, (1,)),
        )


DRAWING = {
    "Dropout",
    "GaussianNoise",
    "GaussianDropout",
    "AlphaDropout",
    "LSTM with dropout",
    "MultiHeadAttention with dropout",
}


@pytest.mark.usefixtures("as_users_run")
def test_layers_that_draw_random_numbers_are_compiled_on_a_gpu(monkeypatch):
    for layer in LAYERS:
        assert bool(drawing_layers(network(layer, 3))) == (layer in DRAWING)
    agent = rl.DQN(
        network("Dropout", 3),
        observation_space=OBSERVATIONS["vector"],
        action_space=gymnasium.spaces.Discrete(3),
    )
    assert not rounds.pays_to_compile(agent)
    monkeypatch.setattr(type(agent.devices), "has_gpu", True)
    assert rounds.pays_to_compile(agent)
    idle = [layers.Dropout(0.0), layers.LSTM(4), layers.GaussianNoise(0.0)]
    assert not drawing_layers(keras.Sequential(idle))


def agent_with(case, layer):
    """Makes an agent of networks with a layer, as its class wants them."""
    space = OBSERVATIONS[LAYERS[layer][0]]
    env = as_vector_env(
        gymnasium.vector.SyncVectorEnv(
            [lambda: AnySpaceEnv(space, case.action_space)] * 2,
            autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP,
        )
    )
    valued = not case.on_policy and case.action_space.shape != ()
    given = {
        key: network(
            layer,
            case.widths[key],
            actions=1 if key == "critic" and valued else None,
        )
        for key in case.networks
    }
    agent = case.make(seed=0, **given, **case.every_update)
    agent.compile(run_eagerly=True)
    return agent, env


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("PPO", "Dropout"),
        ("SAC", "BatchNormalization"),
        ("PPO", "Embedding"),
        *slow(
            ("SAC", "LSTM"),
            *((name, layer) for name in ("DQN", "TD3") for layer in LAYERS),
            *(
                (name, layer)
                for name in EVERY_AGENT
                if name not in KINDS
                for layer in ("Dropout", "BatchNormalization")
                # Its critics value sampled actions, too.
                if (name, layer) != ("BoxCQL", "BatchNormalization")
            ),
        ),
    ],
)
def test_each_layer_of_keras_trains(name, layer):
    case = EVERY_AGENT[name]
    agent, env = agent_with(case, layer)
    agent.bind(env.observation_space, env.action_space)
    before = weights_of(agent)
    agent.fit(case.make_dataset(env), verbose=0)
    assert agent.trainable_variables
    for old, variable in zip(before, agent.weights, strict=True):
        new = np.asarray(variable.value)
        assert np.isfinite(new).all()
        assert (old != new).any() or not variable.trainable
