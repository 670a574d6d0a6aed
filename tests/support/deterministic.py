"""Small agents with deterministic policies, and networks to reckon with."""

import keras
import numpy as np
from gymnasium import spaces

import keras_rl2 as rl
from support.agents import make_env

UNIT = spaces.Box(-1.0, 1.0, (1,), np.float32)
# tanh of it is a half.
ATANH_HALF = 0.5493061443340549

#: A minibatch but for its actions. The second transition ends an episode.
BATCH = {
    "observation": np.array([[1.0], [-2.0], [0.5]]),
    "next_observation": np.array([[0.5], [1.0], [-1.0]]),
    "reward": np.array([1.0, -2.0, 0.5]),
    "discount": np.array([0.9, 0.0, 0.5]),
    "weight": np.array([1.0, 0.5, 2.0]),
}


def linear_actor(weight=0.0, bias=0.0):
    """An actor whose action is tanh(weight * observation + bias)."""
    return linear_network([weight], [bias], "actor")


def linear_network(kernel, bias, name="network"):
    """A network from one number to as many as there are biases."""
    inputs = keras.Input((1,))
    layer = keras.layers.Dense(len(bias))
    network = keras.Model(inputs, layer(inputs), name=name)
    layer.set_weights([np.array([kernel]), np.array(bias)])
    return network


def linear_critic(observation=0.0, action=0.0, bias=0.0, name="critic"):
    """A critic that is linear in the observation and the action.

    Several numbers of each are those of several outputs.
    """
    weights = np.broadcast_arrays(
        *map(np.atleast_1d, (observation, action, bias))
    )
    inputs = [keras.Input((1,)), keras.Input((1,))]
    layer = keras.layers.Dense(len(weights[0]))
    both = keras.layers.Concatenate()(inputs)
    critic = keras.Model(inputs, layer(both), name=name)
    layer.set_weights([np.stack(weights[:2]), weights[2]])
    return critic


def squashed_policy(outputs, noise):
    """Actions and the logarithms of their densities, by NumPy."""
    mean, log_std = np.split(outputs, 2, axis=1)
    action = np.tanh(mean + np.exp(log_std) * noise)
    log_prob = -0.5 * noise**2 - log_std - 0.5 * np.log(2 * np.pi)
    return action, (log_prob - np.log(1 - action**2))[:, 0]


def set_linear(network, *numbers):
    """Sets the weights of a linear network: all of the kernel, and the bias."""
    *kernel, bias = numbers
    network.set_weights([np.array(kernel)[:, None], np.array([bias])])


def assert_linear(network, *expected):
    """Asserts all of the kernel and the bias of a linear network."""
    kernel, bias = network.get_weights()
    np.testing.assert_allclose([*kernel.ravel(), *bias], expected, rtol=1e-5)


def linear_agent(make, actor, critics, **settings):
    """An agent of linear networks, all its updates by plain SGD of rate 1."""
    agent = make(
        linear_actor(*actor),
        [linear_critic(*c, name=f"critic_{i}") for i, c in enumerate(critics)],
        observation_space=UNIT,
        action_space=UNIT,
        **{"seed": 0, **settings},
    )
    agent.compile(keras.optimizers.SGD(1.0), run_eagerly=True)
    return agent


def small_agent(make, pair="act_box", **settings):
    """An agent with default networks, of one layer of 8 units."""
    return make.for_env(
        make_env(pair), **{"hidden": (8,), "seed": 0, **settings}
    )


def small_replay(pair="act_box", **arguments):
    """Replay of short rounds: seven updates each."""
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
