"""Networks that a user brings, one or two optimizers, mixed precision."""

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from support.agents import EVERY_AGENT
from support.agents import assert_equal_agents
from support.agents import assert_equal_weights
from support.agents import differ
from support.agents import make_agent
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import make_rollouts
from support.agents import slow
from support.agents import weights_of
from support.minibatches import bound
from support.tracing import counted


def dense(units, name):
    return keras.layers.Dense(
        units, kernel_initializer=keras.initializers.GlorotUniform(0), name=name
    )


def unbuilt_sequential(units, name):
    layers = [dense(8, "hidden"), dense(units, "output")]
    return keras.Sequential(layers, name=name)


@keras.saving.register_keras_serializable(
    package="test_networks_and_optimizers"
)
class Subclassed(keras.Model):
    """A network as a user would write it."""

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.hidden = dense(8, "hidden")
        self.out = dense(units, "out")

    def call(self, inputs):
        return self.out(keras.ops.tanh(self.hidden(inputs)))

    def get_config(self):
        return {**super().get_config(), "units": self.units}


# Built ones are what most tests are made of.
@pytest.mark.parametrize("build", [unbuilt_sequential, Subclassed])
def test_networks_of_the_user(build, tmp_path):
    actor, critic = build(3, name="policy"), build(1, name="value")
    # Two optimizers, and before networks have any variables.
    agent = rl.PPO(actor, critic)
    adam = keras.optimizers.Adam()
    with pytest.raises(ValueError, match="the same object"):
        agent.compile(adam, critic_optimizer=adam)
    agent.compile(
        keras.optimizers.Adam(1e-2),
        critic_optimizer=keras.optimizers.SGD(1e-2),
        run_eagerly=True,
    )
    env = make_env("act_discrete")
    agent.fit(make_rollouts(env), verbose=0)
    adam, sgd = agent.optimizer.optimizers
    assert isinstance(adam, keras.optimizers.Adam)
    # Iterations, learning rate and two moments for each variable of the actor.
    assert len(adam.variables) == 2 + 2 * len(actor.trainable_variables)
    assert len(sgd.variables) == 2
    assert [int(o.iterations.numpy()) for o in (adam, sgd)] == [2, 2]
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    assert_equal_weights(loaded, agent)
    batch = np.random.default_rng(0).uniform(-1, 1, (5, 3))
    np.testing.assert_array_equal(
        loaded.act(batch, deterministic=True),
        agent.act(batch, deterministic=True),
    )


def shared_trunk(units):
    inputs = keras.Input((3,))
    trunk = keras.layers.Dense(8, "tanh", name="trunk")(inputs)
    heads = [dense(units, "policy")(trunk), dense(1, "value")(trunk)]
    return keras.Model(inputs, heads, name="trunk_and_heads")


def test_shared_trunk_with_two_outputs(tmp_path):
    env = make_env("act_box")
    agent = rl.PPO(shared_trunk(1))
    agent.compile(keras.optimizers.Adam(1e-2), run_eagerly=True)
    with pytest.raises(ValueError, match="separate critic"):
        agent.compile("adam", critic_optimizer="adam")
    agent.fit(make_rollouts(env), verbose=0)
    # With the logarithm of the standard deviation.
    assert len(agent.trainable_variables) == 6 + 1
    assert agent.optimizer.iterations.numpy() == 2
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    assert_equal_weights(loaded, agent)
    agent.export(str(tmp_path / "policy"))


def test_two_optimizers_refuse_shared_variables():
    trunk = dense(8, "trunk")
    inputs = keras.Input((3,))
    hidden = trunk(inputs)
    agent = rl.PPO(
        keras.Model(inputs, dense(3, "policy")(hidden)),
        keras.Model(inputs, dense(1, "value")(hidden)),
    )
    with pytest.raises(ValueError, match=r"both own.*trunk"):
        agent.compile("adam", critic_optimizer="sgd")
    agent.compile("adam", run_eagerly=True)
    agent.fit(make_rollouts(make_env(), batch_size=None), verbose=0)
    assert len(agent.trainable_variables) == 6


@pytest.mark.parametrize("name", ["PPO", *slow("TD3")])
def test_two_equal_optimizers_train_as_one_does(name):
    """One Adam for each half gives the weights of one Adam for all.

    The two may round differently. With Adam's usual epsilon, whether a
    gradient of 1e-9 is positive or negative would make a step of 1e-2.
    """

    def adam():
        return keras.optimizers.Adam(1e-2, epsilon=1e-3)

    case, agents = EVERY_AGENT[name], []
    for critic_optimizer in (None, adam()):
        env = make_env(case.pair)
        agent = make_eager_agent(
            case,
            env,
            compile_arguments={
                "optimizer": adam(),
                "critic_optimizer": critic_optimizer,
            },
        )
        dataset = case.make_dataset(env, **case.one_update)
        agent.fit(dataset, epochs=2, verbose=0)
        agents.append(agent)
    for one, two in zip(*(a.get_weights() for a in agents), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-7)


def test_minibatches_of_the_users_own_are_traced_once(monkeypatch):
    """TensorFlow traces a function twice that makes variables, as Adam does."""
    case, env = EVERY_AGENT["PPO"], make_env()
    agent = make_agent(case, env)
    batch = bound(case, agent, env)
    calls = counted(agent, "train_step", monkeypatch)
    agent.train_on_batch(batch)
    assert calls == ["train_step"]


def last_kernel_and_bias(network):
    return [w.numpy() for w in network.layers[-1].weights]


def test_weights_at_the_start():
    agent = rl.PPO.for_env("Pendulum-v1", hidden=(256,), seed=0)
    for network, gain in ((agent.actor, 0.01), (agent.critic, 1.0)):
        kernel, bias = last_kernel_and_bias(network)
        np.testing.assert_allclose(np.linalg.norm(kernel), gain, rtol=1e-5)
        assert not bias.any()
    # As layers of PyTorch: uniform within 1 / sqrt(fan_in), with biases.
    agent = rl.PPO.for_env(
        "Pendulum-v1", hidden=(256,), initialization="fan_in", seed=0
    )
    for network in (agent.actor, agent.critic):
        kernel, bias = last_kernel_and_bias(network)
        assert 0.9 / 16 < np.abs(kernel).max() <= 1 / 16
        assert 0.0 < np.abs(bias).max() <= 1 / 16
    with pytest.raises(ValueError, match="Received: initialization='zeros'"):
        rl.PPO.for_env("Pendulum-v1", initialization="zeros")


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("PPO", "mixed_float16"),
        *slow(("SAC", "mixed_bfloat16"), ("TD3", "mixed_float16")),
        *slow(("DQN", "mixed_float16")),
    ],
)
def test_mixed_precision_trains_and_is_saved(name, dtype, tmp_path):
    case = EVERY_AGENT[name]
    matrix = "box_matrix" in case.actions
    env = make_env("act_box_matrix" if matrix else case.pair)
    keras.config.set_dtype_policy(dtype)
    try:
        agent = make_eager_agent(case, env, normalize_observations=True)
    finally:
        keras.config.set_dtype_policy("float32")
    before = weights_of(agent)
    dataset = case.make_dataset(env)
    agent.fit(dataset, verbose=0)
    remembered = len(agent.optimizer.variables)
    agent.fit(dataset, verbose=0)
    assert len(agent.optimizer.variables) == remembered
    assert differ(before, agent.get_weights())
    assert agent.dtype_policy.name == dtype
    assert all(v.dtype == "float32" for v in agent.trainable_variables)
    scaled = isinstance(agent.optimizer, keras.optimizers.LossScaleOptimizer)
    assert scaled == (dtype == "mixed_float16")
    agent.save(tmp_path / "agent.keras")
    # In a process whose global policy is another.
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    assert type(loaded.optimizer) is type(agent.optimizer)
    assert_equal_agents(loaded, agent)
    for weight in agent.get_weights():
        assert np.isfinite(weight).all()
