"""Binding: an agent meets the spaces of its environment."""

import functools
import inspect
from collections.abc import Callable
from typing import Any
from typing import TypeVar
from typing import cast

import gymnasium

from keras_rl2.basics import inherited_arguments
from keras_rl2.networks import checks as network_checks
from keras_rl2.networks.model_layers import all_layers
from keras_rl2.policies.policy import Policy
from keras_rl2.spaces import supported as spaces
from keras_rl2.updates.observing import Normalizing

Constructor = TypeVar("Constructor", bound=Callable[..., None])


def then_bound(constructor: Constructor) -> Constructor:
    """Lets a constructor bind the agent, unless one of a subclass runs it."""

    @functools.wraps(constructor)
    def constructed(agent: Any, *args: Any, **kwargs: Any) -> None:
        constructor(agent, *args, **kwargs)
        if type(agent).__init__ is constructed:
            _bind_requested(agent)

    # Keras also asks for that of the function itself.
    vars(constructed)["__signature__"] = inspect.signature(constructor)
    return cast(Constructor, constructed)


def bind(
    agent: Any,
    observation_space: gymnasium.Space[Any],
    action_space: gymnasium.Space[Any],
) -> None:
    """Binds the agent to the spaces of an environment.

    Args:
        agent: `keras_rl2.Agent`.
        observation_space: `gymnasium.Space`. Of a single environment.
        action_space: `gymnasium.Space`. Of a single environment.

    Raises:
        ValueError: If a space is not supported, differs from the one that
            the agent is bound to, or does not fit its networks.
    """
    if agent._policy is not None:
        spaces.check_same(
            type(agent).__name__,
            observation=(agent.observation_space, observation_space),
            action=(agent.action_space, action_space),
        )
        return
    spaces.check_observation_space(observation_space)
    spaces.check_action_space(action_space)
    scaled = agent.action_units == "half_range"
    head = agent.make_policy_head(action_space, scaled)
    agent._policy = Policy(
        agent, observation_space, action_space, head, agent._generator
    )
    try:
        network_checks.check_supported(agent)
        with agent.devices.scope():
            agent.build_networks()
        network_checks.refuse_stateful(agent)
    except Exception:
        agent._policy = None
        raise
    targets = {
        id(layer)
        for target, _ in agent.target_pairs
        for layer in all_layers(target)
    }
    # Those of the networks that are trained.
    layers = [each for each in all_layers(agent) if id(each) not in targets]
    agent.normalizing = Normalizing(agent._policy, layers)
    agent.skipped.watch(layers)
    agent.reset_targets()
    agent.built = True


def _bind_requested(agent: Any) -> None:
    """Checks the networks, and binds to the constructor's spaces."""
    taken = inherited_arguments.constructor(type(agent)).parameters
    for name, given in agent.given_networks().items():
        if given is None and name in taken and taken[name].default is None:
            continue
        for network in given if isinstance(given, list) else [given]:
            network_checks.check_is_network(name, network)
    observation_space, action_space = agent._requested_spaces
    if observation_space is not None and action_space is not None:
        agent.bind(observation_space, action_space)
