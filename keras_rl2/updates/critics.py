"""Critics: one or several Q-networks of an agent."""

from collections.abc import Sequence
from typing import Any
from typing import TypeAlias
from typing import cast

import keras
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.distributions.discrete_head import DiscreteHead
from keras_rl2.networks import checks as network_checks
from keras_rl2.networks.builder import NetworkBuilder
from keras_rl2.networks.inputs import inputs_for
from keras_rl2.networks.inputs import one_value_each
from keras_rl2.networks.inputs import run_network
from keras_rl2.networks.network_copies import copy_of
from keras_rl2.networks.network_copies import sibling
from keras_rl2.networks.outputs import check_value_ending
from keras_rl2.networks.task import Task
from keras_rl2.spaces.supported import check_critic_space
from keras_rl2.updates.updater import Terms

GivenCritics: TypeAlias = keras.Model | Sequence[keras.Model]
"""One critic, or all that there are."""


def as_critics(critic: GivenCritics, number: int) -> list[keras.Model]:
    """Returns given critics as a list: all of them, or one as a template.

    Args:
        critic: `keras.Model`, or a sequence of them.
        number: int. Number of the algorithm's critics.

    Returns:
        list of one or `number` models.

    Raises:
        ValueError: If there are others, or some are no models.
    """
    critics: list[Any] = [critic]
    if isinstance(critic, (list, tuple)):
        critics = list(critic)
    for each in critics:
        network_checks.check_is_network("critic", each)
    if len(critics) not in (1, number):
        raise ValueError(
            f"Expected one `critic` or {number} of them. "
            f"Received: {len(critics)}"
        )
    return critics


def complete(
    task: Task,
    actor: keras.Model,
    critics: Sequence[keras.Model],
    number: int,
    units: int | None = None,
) -> list[keras.Model]:
    """Checks and builds critics, and makes those that are missing.

    Args:
        task: `Task`. The agent's task.
        actor: `keras.Model`. Must be built.
        critics: Sequence of `keras.Model`. One, or all.
        number: int. Number of the algorithm's critics. Missing ones are made
            like the first, with their own weights.
        units: int or None. Width of the output of critics without an action
            input, one for each action. Defaults to `None`.

    Returns:
        list of `number` models.

    Raises:
        ValueError: If a critic does not fit the spaces, or shares variables
            with another network.
    """
    action = critic_action(task, units)
    if action is not None:
        check_critic_space(task.observation_space)
    seen = task.encode.network_input
    for critic in critics:
        network_checks.check_critic(task, critic, action, units or 1)
        check_value_ending(critic, inputs_for(critic, seen, action))
    missing = range(len(critics), number)
    made = [*critics, *(sibling(critics[0], index) for index in missing)]
    for critic in made[len(critics) :]:
        network_checks.check_critic(task, critic, action, units or 1)
    check_apart([actor, *made])
    return made


def critic_action(task: Task, units: int | None) -> keras.KerasTensor | None:
    """Returns a symbolic batch of actions for the critics' input.

    Args:
        task: `Task`. The agent's task.
        units: int or None. See `complete`.

    Returns:
        `keras.KerasTensor`, or None where critics have no action input.
    """
    if units is not None:
        return None
    shape = (None, *task.head.action_shape)
    return keras.KerasTensor(shape, "float32")


def targets_of(critics: Sequence[keras.Model]) -> list[keras.Model]:
    """Returns a target network for each critic."""
    return [copy_of(critic, f"target_{critic.name}") for critic in critics]


def default_networks(
    build: NetworkBuilder, actor_units: int, number: int, discrete: bool = False
) -> tuple[keras.Model, list[keras.Model]]:
    """Makes an actor and critics for `for_env`.

    Args:
        build: `NetworkBuilder`.
        actor_units: int. Width of the actor's output.
        number: int. Number of critics.
        discrete: bool. Whether critics return the Q-values of all actions at
            once. Defaults to `False`.

    Returns:
        The actor and the critics.
    """
    actor_seed, *critic_seeds = build.seeds(1 + number)
    actor = build.actor(actor_units, actor_seed)
    names = [f"critic_{index}" for index in range(number)]
    if discrete:
        critics = [
            build.network(name, cast(DiscreteHead, build.head).n, seed)
            for name, seed in zip(names, critic_seeds, strict=True)
        ]
    else:
        critics = [
            build.critic_of_actions(name, seed)
            for name, seed in zip(names, critic_seeds, strict=True)
        ]
    return actor, critics


def action_values(
    critics: Sequence[keras.Model],
    encoded: Any,
    action: Tensor,
    training: bool = False,
) -> list[Tensor]:
    """Returns each critic's Q-values of the given actions.

    Args:
        critics: Sequence of `keras.Model`.
        encoded: tree of `[B, ...]`. Observations as networks take them.
        action: `[B, A]`. Within the unit box.
        training: bool. Passed on to the critics. Defaults to `False`.

    Returns:
        list of `[B]` float32.
    """
    return [
        one_value_each(run_network(critic, encoded, training, action))
        for critic in critics
    ]


def all_values(
    critics: Sequence[keras.Model], encoded: Any, training: bool = False
) -> list[Tensor]:
    """Returns each critic's Q-values of all Discrete actions.

    Args:
        critics: Sequence of `keras.Model`.
        encoded: tree of `[B, ...]`. Observations as networks take them.
        training: bool. Passed on to the critics. Defaults to `False`.

    Returns:
        list of `[B, n]` float32.
    """
    return [
        ops.cast(run_network(critic, encoded, training), "float32")
        for critic in critics
    ]


def values_of_taken(
    critics: Sequence[keras.Model],
    encoded: Any,
    action: Tensor,
    discrete: bool,
    training: bool = False,
) -> list[Tensor]:
    """Returns each critic's Q-values of the given actions, of either kind.

    Args:
        critics: Sequence of `keras.Model`.
        encoded: tree of `[B, ...]`. Observations as networks take them.
        action: `[B]` int where actions are Discrete, else `[B, A]`.
        discrete: bool. Which of the two.
        training: bool. Passed on to the critics. Defaults to `False`.

    Returns:
        list of `[B]` float32.
    """
    if not discrete:
        return action_values(critics, encoded, action, training)
    # [B, n] -> [B]
    index = ops.cast(action, "int32")[:, None]
    return [
        ops.take_along_axis(values, index, axis=1)[:, 0]
        for values in all_values(critics, encoded, training)
    ]


def td_terms(values: Sequence[Tensor], target: Tensor, weight: Tensor) -> Terms:
    """Compares the critics' Q-values with their common target.

    Args:
        values: Sequence of `[B]`. Q-values of each critic.
        target: `[B]`. Counts as a constant.
        weight: `[B]`. Weight of each transition.

    Returns:
        dict: `loss`, half the mean squared error, summed over critics;
        `td_error` `[B]`, the mean of the critics'; `q_value`, the mean of the
        first one's values.
    """
    errors = [ops.stop_gradient(target) - value for value in values]
    return {
        "loss": cast(
            Tensor, sum(ops.mean(weight * 0.5 * ops.square(e)) for e in errors)
        ),
        "td_error": ops.stop_gradient(cast(Tensor, sum(errors)) / len(errors)),
        "q_value": ops.mean(values[0]),
    }


def check_apart(networks: Sequence[keras.Model]) -> None:
    """Raises if networks with separate losses share variables.

    Args:
        networks: Sequence of `keras.Model`. Built.

    Raises:
        ValueError: If two own the same variable.
    """
    owners: dict[int, str] = {}
    for network in networks:
        for variable in network.trainable_variables:
            if id(variable) in owners:
                raise ValueError(
                    "Expected actor and critics without common variables. "
                    f"Received: {owners[id(variable)]!r} and "
                    f"{network.name!r} both own {variable.path!r}"
                )
            owners[id(variable)] = network.name
