"""What the hidden units of an agent's networks give."""

from typing import Any
from typing import TypeGuard

import keras
from keras import ops

from keras_rl2.callbacks.protocols import LearningAgent
from keras_rl2.callbacks.recent_steps import RecentSteps
from keras_rl2.networks.inputs import inputs_for
from keras_rl2.spaces.supported import ACTION
from keras_rl2.spaces.trees import is_leaf
from keras_rl2.spaces.trees import map_leaves

# Fewer observations say too little: a unit may well be 0 for a few of them.
_FEWEST_ROWS = 64


class HiddenUnits:
    """The hidden ReLU units of an agent's networks.

    Those of `keras.layers.Dense` in functional and sequential networks that
    are trained; what a network of another kind does inside, Keras cannot say.

    Args:
        agent: `keras_rl2.Agent`, bound to its spaces.
    """

    def __init__(self, agent: LearningAgent) -> None:
        self._agent = agent
        seen: set[int] = set()
        self._probes = [
            keras.Model(network.inputs, outputs)
            for network in agent.layers
            if _is_graph(network) and network.trainable
            if (outputs := _hidden_outputs(network, seen))
        ]

    def dead_share(self, steps: RecentSteps) -> float | None:
        """Returns the share of units that give 0 for all observations.

        Args:
            steps: `RecentSteps`. Have the observations.

        Returns:
            float; or None where there are no such units, or too few steps.
        """
        if not self._probes or len(steps) < _FEWEST_ROWS:
            return None
        observation, action = steps.arrays()
        encoded = self._agent.encode(
            map_leaves(ops.convert_to_tensor, observation)
        )
        dead, units = 0, 0
        for probe in self._probes:
            try:
                inputs = inputs_for(
                    probe, encoded, _if_wanted(probe, encoded, action)
                )
            except ValueError:
                continue
            if not _takes(probe.inputs, keras.tree.flatten(inputs)):
                continue
            for output in _list(probe(inputs, training=False)):
                axes = tuple(range(len(output.shape) - 1))
                alive = ops.convert_to_numpy(ops.any(output > 0, axis=axes))
                dead += int((~alive).sum())
                units += alive.size
        return dead / units if units else None


# A unit may be normalised between its products and its activation.
_MAY_BE_RELU = (keras.layers.Dense, keras.layers.Activation)


def _is_graph(network: Any) -> TypeGuard[keras.Model]:
    """Says whether a layer is a model that Keras knows the inside of."""
    return isinstance(network, keras.Model) and bool(
        getattr(network, "inputs", None)
    )


def _hidden_outputs(network: Any, seen: set[int]) -> list[Any]:
    """Returns the outputs of hidden ReLU layers that were not seen yet."""
    last = {id(output) for output in network.outputs}
    outputs = []
    for layer in network.layers:
        if (
            id(layer) in seen
            or not isinstance(layer, _MAY_BE_RELU)
            or layer.activation is not keras.activations.relu
        ):
            continue
        try:
            output = layer.output
            keras.Model(network.inputs, output)
        except (AttributeError, ValueError):
            # What Keras gives belongs to another network that it is part of.
            continue
        if id(output) not in last:
            seen.add(id(layer))
            outputs.append(output)
    return outputs


def _if_wanted(probe: keras.Model, encoded: Any, action: Any) -> Any:
    """Returns the actions if a network is one that values them."""
    if is_leaf(encoded):
        wanted = len(probe.inputs) == 2
    else:
        wanted = any(tensor.name == ACTION for tensor in probe.inputs)
    return ops.convert_to_tensor(action) if wanted else None


def _takes(inputs: list[Any], given: list[Any]) -> bool:
    """Says whether a network's inputs are what there is to give."""
    return len(inputs) == len(given) and all(
        tuple(wanted.shape[1:]) == tuple(array.shape[1:])
        for wanted, array in zip(inputs, given, strict=True)
    )


def _list(outputs: Any) -> list[Any]:
    """Returns one output or several as a list."""
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
