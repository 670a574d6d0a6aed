"""An update differentiates networks in training mode, and nothing else.

Dropout and BatchNormalization depend on that mode: they are active in trained
networks, and inactive in target networks.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

from support.agents import ACTOR_CRITICS
from support.agents import AGENTS
from support.agents import EVERY_AGENT
from support.agents import differ
from support.agents import make_env
from support.agents import make_rollouts
from support.agents import networks_of
from support.agents import slow
from support.minibatches import bound
from support.minibatches import small_agent as small_plain_agent
from support.minibatches import update
from support.plain_networks import plain_networks
from support.tabular import make_published
from support.tabular import published_case
from support.tabular import terms_of

CALLS = []
by_losses = pytest.mark.parametrize(
    "name",
    ["PPO", "SAC", *slow(*sorted(set(EVERY_AGENT) - {"PPO", "SAC", "BoxCQL"}))],
)


@keras.saving.register_keras_serializable(package="test_gradients")
class Recording(keras.layers.Layer):
    """Writes down each call and its mode, and whose weights were in use.

    A target may run the layers of the network that it follows, with weights
    of its own.
    """

    def build(self, input_shape):
        self.owner = self.add_weight(
            shape=(), initializer="zeros", trainable=False, name="owner"
        )

    def call(self, inputs, training=None):
        owner = keras.ops.convert_to_tensor(self.owner)
        # In a graph that is traced nobody knows.
        owner = int(owner) if tf.executing_eagerly() else None
        CALLS.append((owner, bool(training)))
        return inputs


@keras.saving.register_keras_serializable(package="test_gradients")
class OpenInTraining(keras.layers.Layer):
    """Lets its inputs through in training mode, else their ninth part."""

    def call(self, inputs, training=None):
        return inputs if training else inputs / 9.0


def with_layer(network, layer):
    """Puts a layer before a network's last one."""
    *hidden, last = network.layers
    outputs = last(layer(hidden[-1].output if hidden else network.inputs[0]))
    return keras.Model(network.inputs, outputs, name=network.name)


def agent_with(name, make_layer):
    """Makes an agent with a layer in each network, and a minibatch for it."""
    case = EVERY_AGENT[name]
    networks = {
        key: with_layer(network, make_layer())
        for key, network in plain_networks(case).items()
    }
    agent = case.make(**networks, **case.every_update, gamma=0.9, seed=0)
    agent.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
    return agent, bound(case, agent, make_env(case.pair))


def learning_networks(agent):
    """Returns the networks that an update trains, by name."""
    return {
        f"{name}_{i}": network
        for name, given in networks_of(agent).items()
        for i, network in enumerate(keras.tree.flatten(given))
    }


def modes_of_calls(agent, function):
    """Returns the modes in which learning networks and targets were called."""
    networks = learning_networks(agent)
    for i, target in enumerate(
        t for t, _ in getattr(agent, "target_pairs", ())
    ):
        networks[f"target_{i}"] = target
    owners = {}
    for owner, (name, network) in enumerate(networks.items(), start=1):
        owners[owner] = name
        for variable in network.non_trainable_variables:
            if variable.shape == ():
                variable.assign(owner)
    del CALLS[:]
    function()
    modes = {name: set() for name in networks}
    for owner, mode in CALLS:
        modes[owners[owner]].add(mode)
    return (
        {k: v for k, v in modes.items() if not k.startswith("target")},
        {k: v for k, v in modes.items() if k.startswith("target")},
    )


@by_losses
def test_an_update_calls_trained_networks_in_training_mode(name):
    agent, batch = agent_with(name, Recording)
    # Before the first one, targets are made equal to what they follow.
    update(agent, batch)
    learning, targets = modes_of_calls(agent, lambda: update(agent, batch))
    for network, modes in learning.items():
        assert True in modes, network
    assert set(map(frozenset, targets.values())) <= {frozenset({False})}
    # Nothing else is in that mode.
    observation = batch["observation"].numpy()
    case = EVERY_AGENT[name]
    del CALLS[:]
    agent.act(observation)
    agent.act(observation, deterministic=True)
    bound(case, agent, make_env(case.pair))
    assert CALLS
    assert not any(mode for _, mode in CALLS)


@pytest.mark.parametrize("name", ["A2C", *slow("REINFORCE")])
def test_a_round_of_one_update_trains_in_training_mode(name):
    """The values of the same pass may also become the targets."""
    agent, _ = agent_with(name, Recording)
    agent.compile(keras.optimizers.SGD(0.1), jit_compile=False)
    env = make_env(AGENTS[name].pair)
    rollouts = make_rollouts(env, batch_size=None)
    del CALLS[:]
    agent.fit(rollouts, verbose=0)
    # One call of each network is traced, of that which the gradient is of.
    traced = [mode for owner, mode in CALLS if owner is None]
    assert traced.count(True) == len(learning_networks(agent))


# The penalty of BoxCQL is of actions that its actor gives in inference mode.
@by_losses
def test_the_gradient_is_that_of_training_mode(name):
    """The gradient is that of the pass of the loss, and of no other pass.

    A layer that passes a ninth outside of training mode makes the gradient
    of the layers after it nine times smaller there.
    """
    agent, batch = agent_with(name, OpenInTraining)
    always, _ = agent_with(name, lambda: keras.layers.Activation("linear"))
    always.set_weights(agent.get_weights())
    if "discount" in batch:
        # Nothing follows, so that targets, of inference mode, are the rewards.
        batch = {**batch, "discount": 0.0 * batch["reward"]}
    moved = {}
    for each in (agent, always):
        # The gradient of other actors goes through critics, in either mode.
        networks = learning_networks(each)
        if name not in AGENTS:
            networks.pop("actor_0", None)
        # The values of states are told by target critics, of inference mode.
        networks.pop("value_network_0", None)
        variables = [v for n in networks.values() for v in n.weights]
        before = [v.numpy() for v in variables]
        update(each, batch)
        moved[each] = [
            variable.numpy() - old
            for variable, old in zip(variables, before, strict=True)
        ]
        assert all(np.any(by) for by in moved[each])
    for one, other in zip(moved[agent], moved[always], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "settings"),
    [("PPO", {"normalize_advantages": True}), *slow(("APPO", {}))],
)
def test_no_gradient_flows_through_prepared_samples(name, settings):
    """Advantages, old log-probabilities, values and returns are constants."""
    agent, batch = small_plain_agent(ACTOR_CRITICS[name], **settings)
    held = [batch[key] for key in ("advantage", "log_prob", "value", "returns")]
    assert all(np.any(each) for each in held)
    with tf.GradientTape() as tape:
        tape.watch(held)
        policy, value = agent.policy_and_value(
            batch["observation"], training=True
        )
        loss = agent.loss_terms(policy, value, batch)["policy_loss"]
    for slope in tape.gradient(loss, held):
        assert slope is None or not np.any(slope)


@pytest.mark.parametrize(("share", "stops"), [(1.45, False), (1.55, True)])
def test_updates_stop_at_one_and_a_half_times_the_target(share, stops):
    inputs, batch, _ = published_case()
    divergence = terms_of(make_published(inputs), batch)["approx_kl"]
    agent = make_published(inputs, target_kl=divergence / share)
    agent.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
    agent.optimizer.build(agent.trainable_variables)
    before = agent.get_weights()
    agent.train_step(batch)
    assert differ(before, agent.get_weights()) != stops
