"""Networks as a user would write them, for `make_env` of a case's pair."""

import keras


def dense(inputs, units):
    """Makes a network of one layer, from observations `[B, *inputs]`."""
    return keras.Sequential([keras.Input(inputs), keras.layers.Dense(units)])


def dense_of_both(inputs, units):
    """Makes a network of one layer, from observations and an action."""
    observation, action = keras.Input(inputs), keras.Input((1,))
    both = keras.layers.Concatenate()([observation, action])
    return keras.Model([observation, action], keras.layers.Dense(units)(both))


def plain_networks(case, inputs=(3,), units=None, value_units=None):
    """Makes the networks of an agent.

    Args:
        case: `AgentCase`.
        inputs: Shape of an observation.
        units: Width of the network that acts; None for the right one.
        value_units: Width of the critic; None for the right one.

    Returns:
        dict of networks by the constructor's arguments.
    """
    units = case.units if units is None else units
    critic = dense if case.on_policy else dense_of_both
    if value_units is None and "critic" in case.networks:
        value_units = case.value_units
    networks = {
        "actor": (dense, units),
        "q_network": (dense, units),
        "critic": (critic, value_units),
        "value_network": (dense, 1),
    }
    return {
        name: make(inputs, width)
        for name, (make, width) in networks.items()
        if name in case.networks
    }
