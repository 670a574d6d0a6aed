"""From replayed sequences to steps, by Q-networks that remember."""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

import keras
import tensorflow as tf
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.networks.inputs import flat
from keras_rl2.networks.inputs import sequences_like
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.updates.updater import Batch

if TYPE_CHECKING:
    from keras_rl2.agents.dqn import DQN


def as_steps(agent: "DQN", batch: Batch) -> tuple[Tensor, Batch]:
    """Runs the networks of an agent through M sequences of L steps.

    Args:
        agent: `DQN`. One whose networks remember.
        batch: dict, as of `keras_rl2.data.SequenceReplayBuffer.sample`.

    Returns:
        What `DQN.loss_terms` is given of M * L steps.
    """
    steps: dict[str, Any] = dict(batch)
    span, state = steps.pop("span"), steps.pop("state")
    burn_in, begins = steps.pop("burn_in"), steps.pop("begins")
    seen = steps.pop("observation")
    learned = span.shape[1]

    def outputs_of(network: keras.Model, training: bool) -> Tensor:
        warm = _after_burn_in(agent, network, burn_in, state)
        outputs, _ = agent.run_sequences(network, seen, begins, warm, training)
        return outputs

    outputs = outputs_of(agent.q_network, training=True)
    next_outputs = outputs_of(agent.target_network, training=False)
    choosing = ops.stop_gradient(outputs) if agent.double else next_outputs
    values = agent.allowed(
        map_leaves(flat, seen), agent.q_values(flat(choosing))
    )
    selector = sequences_like(begins)(values)
    first = map_leaves(lambda each: flat(each[:, :learned]), seen)
    return flat(outputs[:, :learned]), {
        **map_leaves(flat, steps),
        "observation": first,
        "next_outputs": _where_bootstrapped(next_outputs, span),
        "selector": _where_bootstrapped(selector, span),
    }


def _after_burn_in(
    agent: "DQN",
    network: keras.Model,
    burn_in: Mapping[str, Any],
    state: Sequence[Tensor],
) -> Sequence[Tensor]:
    """Returns the state from which a network learns, as a constant.

    Args:
        agent: `DQN`.
        network: `keras.Model`. The Q-network or its target.
        burn_in: Mapping. `observation` and `begins` of the steps before, none
            perhaps.
        state: Sequence of `[M, ...]`. Before them.

    Returns:
        Sequence of `[M, ...]`.
    """
    if not burn_in["begins"].shape[1]:
        return state
    _, warm = agent.run_sequences(network, **burn_in, state=state)
    constant: Sequence[Tensor] = map_leaves(ops.stop_gradient, tuple(warm))
    return constant


def _where_bootstrapped(array: Tensor, span: Tensor) -> Tensor:
    """Takes of each step what it bootstraps from.

    Args:
        array: `[M, L + n, ...]`. Of all steps of sequences.
        span: `[M, L]`. How many steps later that is.

    Returns:
        `[M * L, ...]`.
    """
    places = ops.arange(span.shape[1], dtype="int32") + span
    return flat(tf.gather(array, places, axis=1, batch_dims=1))
