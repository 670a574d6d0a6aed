"""Replayed sequences of recurrent networks, as R2D2 learns from them."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.networks.inputs import flat
from keras_rl2.networks.inputs import sequences_like
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.updates.updater import Batch

Run = Callable[..., tuple[Tensor, Sequence[Tensor]]]


def as_steps(
    batch: Batch,
    run: Run,
    networks: tuple[keras.Model, keras.Model],
    allowed_values: Callable[[Any, Tensor], Tensor],
    double: bool,
) -> tuple[Tensor, Batch]:
    """Runs a network and its target on M sequences of L steps.

    Args:
        batch: dict; see `keras_rl2.data.SequenceReplayBuffer.sample`.
        run: Callable; see `ValuePolicy.run_sequences`.
        networks: tuple of two `keras.Model`. The network and its target.
        allowed_values: Callable; see `ValuePolicy.allowed_values`.
        double: bool. Whether the network chooses the next action, not its
            target.

    Returns:
        Outputs of the network for M * L steps, and the steps, with
        `next_outputs` and `selector`; see `DQN.loss_terms`.
    """
    steps: dict[str, Any] = dict(batch)
    span, state = steps.pop("span"), steps.pop("state")
    burn_in, begins = steps.pop("burn_in"), steps.pop("begins")
    seen = steps.pop("observation")
    learned = span.shape[1]

    def outputs_of(network: keras.Model, training: bool) -> Tensor:
        warm = _after_burn_in(run, network, burn_in, state)
        return run(network, seen, begins, warm, training)[0]

    outputs = outputs_of(networks[0], training=True)
    next_outputs = outputs_of(networks[1], training=False)
    choosing = ops.stop_gradient(outputs) if double else next_outputs
    values = allowed_values(map_leaves(flat, seen), flat(choosing))
    selector = sequences_like(begins)(values)
    first = map_leaves(lambda each: flat(each[:, :learned]), seen)
    return flat(outputs[:, :learned]), {
        **map_leaves(flat, steps),
        "observation": first,
        "next_outputs": _where_bootstrapped(next_outputs, span),
        "selector": _where_bootstrapped(selector, span),
    }


def _after_burn_in(
    run: Run,
    network: keras.Model,
    burn_in: Mapping[str, Any],
    state: Sequence[Tensor],
) -> Sequence[Tensor]:
    """Returns the state after the burn-in, as a constant.

    Args:
        run: Callable; see `as_steps`.
        network: `keras.Model`. The network or its target.
        burn_in: Mapping. `observation` and `begins` of the steps of the
            burn-in, which may be none.
        state: Sequence of `[M, ...]`. State before them.

    Returns:
        Sequence of `[M, ...]`.
    """
    if not burn_in["begins"].shape[1]:
        return state
    _, warm = run(network, **burn_in, state=state)
    constant: Sequence[Tensor] = map_leaves(ops.stop_gradient, tuple(warm))
    return constant


def _where_bootstrapped(array: Tensor, span: Tensor) -> Tensor:
    """Returns the entries at the steps from which each step bootstraps.

    Args:
        array: `[M, L + n, ...]`. Entries of all steps of sequences.
        span: `[M, L]`. Number of steps until the bootstrap.

    Returns:
        `[M * L, ...]`.
    """
    places = ops.arange(span.shape[1], dtype="int32") + span
    return flat(tf.gather(array, places, axis=1, batch_dims=1))
