"""Arrays for the histograms of a training."""

from typing import Any

import keras
import numpy as np

from keras_rl2.callbacks.protocols import rollouts_of

_SAMPLE_KEYS = ("advantage", "returns", "action")


def of_samples(model: keras.Model) -> dict[str, np.ndarray]:
    """Returns advantages, returns and actions of the last rollout, by tags.

    Args:
        model: `keras.Model`.

    Returns:
        dict of arrays; empty off-policy, where minibatches are drawn.
    """
    rollouts: Any = rollouts_of(model)
    samples = getattr(rollouts, "samples", {})
    return {
        f"rollout/{key}": rollouts.valid_samples(key)
        for key in _SAMPLE_KEYS
        if key in samples
    }


def of_weights(model: keras.Model) -> dict[str, np.ndarray]:
    """Returns all weights by tags that begin with the network's name.

    Args:
        model: `keras.Model`.

    Returns:
        dict of arrays, without counters.
    """
    owners = {
        id(weight): layer.name
        for layer in model.layers
        for weight in layer.weights
    }
    tagged: dict[str, np.ndarray] = {}
    for weight in model.weights:
        array = weight.value.numpy()
        if array.dtype.kind in "iu":
            continue
        owner = owners.get(id(weight), model.name)
        tag = f"weights/{owner}/{weight.path.removeprefix(owner + '/')}"
        # Loaded networks may have layers of the same name.
        while tag in tagged:
            tag += "_"
        tagged[tag] = array
    return tagged
