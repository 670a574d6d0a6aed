"""Agents to be exported: each kind, with all that a policy may be made of."""

import gymnasium
import keras
import numpy as np

from keras_rl2.collecting.litert import for_environment
from keras_rl2.layers import ObservationNormalization
from keras_rl2.spaces.supported import action_spec
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves
from support.agents import EVERY_AGENT
from support.agents import OBSERVATION_SPACES
from support.agents import AnySpaceEnv
from support.agents import make_agent
from support.structured_envs import HYBRID_ACTIONS
from support.structured_envs import OBSERVATIONS
from support.structured_envs import MaskedEnv
from support.structured_envs import StructuredEnv
from support.structured_envs import batch_of
from support.structured_envs import masked_batch


def _agents(condition):
    """Returns the names of agents whose cases meet a condition."""
    return tuple(name for name, case in EVERY_AGENT.items() if condition(case))


OPTIONS = {
    "plain": tuple(EVERY_AGENT),
    "normalized": tuple(EVERY_AGENT),
    "pictures": tuple(EVERY_AGENT),
    "trees": tuple(EVERY_AGENT),
    "masks": _agents(lambda case: "discrete" in case.actions),
    "memory": _agents(lambda case: case.make.takes_memory),
    "several actions": _agents(
        lambda case: case.make.action_kinds == (gymnasium.Space,)
    ),
}
"""What a policy may be made of, with the agents that can be."""

GIVEN_NOISE = ("plain", "masks", "memory", "several actions")
"""Options that have to do with how actions are drawn."""

COUNT, STEPS = 64, 4
"""Observations of a step, and steps: a policy that remembers has several."""


def fits_eight_bits(option, name, deterministic):
    """Whether a policy can be exported in int8; the others are refused."""
    forced = "epsilon" in EVERY_AGENT[name].make.argument_names()
    forced = forced and not deterministic
    return option != "masks" and not forced


def env_of(option, case):
    """Makes the environment of an option."""
    if option == "pictures":
        space = OBSERVATION_SPACES["image"]
        return AnySpaceEnv(space, case.action_space)
    if option == "trees":
        return StructuredEnv(OBSERVATIONS["nested"], case.action_space)
    if option == "masks":
        return MaskedEnv()
    vector = gymnasium.spaces.Box(-1.0, 1.0, (3,), np.float32)
    if option == "several actions":
        return StructuredEnv(vector, HYBRID_ACTIONS["dict"])
    return AnySpaceEnv(vector, case.action_space)


def agent_of(option, name):
    """Makes an agent that is sure of itself, as new ones are not."""
    case = EVERY_AGENT[name]
    settings = {}
    if option == "normalized":
        settings["normalize_observations"] = True
    if option == "memory":
        settings["memory"] = keras.layers.LSTMCell(6)
    agent = make_agent(case, env_of(option, case), **settings)
    generator = np.random.default_rng(0)
    for network in agent.acting_networks:
        for variable in network.trainable_variables:
            variable.assign(
                2.0 * variable.numpy()
                + 0.1 * generator.normal(size=variable.shape)
            )
        for layer in network.layers:
            if isinstance(layer, ObservationNormalization):
                layer.mean.assign(generator.normal(size=layer.mean.shape))
                layer.variance.assign(
                    generator.uniform(0.1, 9.0, layer.variance.shape)
                )
    return agent


def observations_of(agent, count=COUNT, seed=0):
    """Draws observations `[B, ...]` that allow something each."""
    if agent.policy.is_masked:
        batch = masked_batch(agent.action_space, count, seed)
    else:
        batch = batch_of(agent.observation_space, count, seed)
    return map_leaves(
        lambda spec, array: array.astype(spec.dtype),
        agent.policy.observation_spec,
        batch,
    )


def compare(agent, policy, count=COUNT, steps=STEPS):
    """Asks an agent and an exported policy for actions, given equal noise.

    Args:
        agent: Whose policy it is.
        policy: `PolicyFile`.
        count: Observations of each step.
        steps: Steps, over which both remember for themselves.

    Returns:
        The largest difference of a number of an action, and the share of
        choices that are not the same.
    """
    function = agent.policy.function(policy.deterministic)
    generator = np.random.default_rng(0)
    ours = agent.initial_state(count)
    theirs = policy.initial_state(count)
    numbers, choices = [0.0], []
    for step in range(steps):
        batch = observations_of(agent, count, seed=step)
        noise = None
        if policy.deterministic:
            found = agent.act(batch, ours or None, deterministic=True)
            action, ours = found if ours else (found, ours)
        else:
            noise, _ = agent.noise.draw(generator, (count,))
            action, ours = _sampled(agent, function, batch, noise, ours)
        found = policy.act(batch, theirs or None, noise)
        other, theirs = found if theirs else (found, theirs)
        for one, two in zip(leaves(action), leaves(other), strict=True):
            assert one.shape == two.shape
            assert one.dtype == two.dtype
            if one.dtype.kind == "f":
                numbers.append(np.abs(one - two).max())
            else:
                choices.append(np.mean(one != two))
        for one, two in zip(ours, theirs, strict=True):
            numbers.append(np.abs(one - two).max())
    return float(max(numbers)), float(np.mean(choices)) if choices else 0.0


def _sampled(agent, function, batch, noise, state):
    """Returns the agent's actions for noise, as the environment takes them."""
    begins = [np.zeros(len(noise), np.float32)] if state else []
    outputs = function(*leaves(batch), noise, *begins, *state)
    outputs = [each.numpy() for each in outputs]
    count = len(outputs) - len(state)
    spec = action_spec(agent.action_space)
    action = map_leaves(
        lambda one, array: array.astype(one.dtype),
        spec,
        for_environment(spec, outputs[:count]),
    )
    return action, tuple(outputs[count:])
