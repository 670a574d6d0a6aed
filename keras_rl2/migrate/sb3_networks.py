"""The networks of Stable-Baselines3 policies, as Keras models."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import gymnasium
import keras
import numpy as np

from keras_rl2.basics.shapes import Tensor
from keras_rl2.layers import ObservationNormalization
from keras_rl2.migrate.torch_layers import TorchLayers
from keras_rl2.networks.building import DATA_FORMAT
from keras_rl2.spaces.supported import ACTION
from keras_rl2.spaces.supported import network_shape

# Layer and strides of each convolution.
_NATURE = (("cnn.0", 4), ("cnn.2", 2), ("cnn.4", 1))
_ON_POLICY = ("features_extractor", "pi_features_extractor")


@dataclasses.dataclass(frozen=True)
class Seen:
    """The observations of a policy, and their preprocessing.

    Attributes:
        space: `gymnasium.Space`. The agent's observation space.
        channels_last: bool. Whether Stable-Baselines3 has transposed the
            observations, so that its networks receive the channels first.
        scaled: bool. Whether bytes are scaled to numbers from 0 to 1.
        normalization: Mapping or None. `mean`, `variance` and further
            arguments: the statistics of `VecNormalize`.
    """

    space: gymnasium.Space[Any]
    channels_last: bool
    scaled: bool
    normalization: Mapping[str, Any] | None

    def input(self) -> Tensor:
        """Makes the first layers of a network."""
        shape = network_shape(self.space)
        picture = self.space.dtype == np.uint8 and len(shape) in (3, 4)
        dtype = "uint8" if picture else "float32"
        return keras.Input(shape, dtype=dtype, name="observation")


def actor_critic(layers: TorchLayers, seen: Seen) -> list[keras.Model]:
    """Makes the networks of a policy of PPO or A2C.

    Args:
        layers: `TorchLayers`.
        seen: `Seen`.

    Returns:
        list of an actor and a critic, or of one network with both outputs if
        they share a part.
    """
    joint = "mlp_extractor.shared_net"
    extractor, of_actor = _ON_POLICY
    of_critic = "vf_features_extractor"
    shared = layers.alike(extractor, of_actor)
    shared = layers.alike(extractor, of_critic) and shared
    together = shared and (layers.has(extractor) or layers.has(joint))
    if not shared:
        # One of the two networks, under another name.
        layers.alike(of_actor, extractor)
    observation = seen.input()
    if together:
        x = _features(layers, seen, observation, extractor)
        x = layers.hidden(x, joint, "shared")
        outputs = [_policy(layers, x), _value(layers, x)]
        return [keras.Model(observation, outputs, name="actor_critic")]
    x = _features(layers, seen, observation, of_actor)
    actor = keras.Model(observation, _policy(layers, x), name="actor")
    observation = seen.input()
    x = _features(layers, seen, observation, of_critic)
    return [actor, keras.Model(observation, _value(layers, x), name="critic")]


def _policy(layers: TorchLayers, x: Tensor) -> Tensor:
    """Applies the layers from features to a policy's parameters."""
    x = layers.hidden(x, "mlp_extractor.policy_net", "policy")
    return layers.linear(x, "action_net", name="policy")


def _value(layers: TorchLayers, x: Tensor) -> Tensor:
    """Applies the layers from features to a value."""
    x = layers.hidden(x, "mlp_extractor.value_net", "value")
    return layers.linear(x, "value_net", name="value")


def q_network(layers: TorchLayers, seen: Seen, prefix: str) -> keras.Model:
    """Makes a Q-network.

    Args:
        layers: `TorchLayers`.
        seen: `Seen`.
        prefix: str. Its name in PyTorch.

    Returns:
        `keras.Model`.
    """
    return _perceptron(layers, seen, prefix, "q_net", "q_network")


def gaussian_actor(layers: TorchLayers, seen: Seen) -> keras.Model:
    """Makes the actor of SAC, which returns means and log standard deviations.

    Args:
        layers: `TorchLayers`.
        seen: `Seen`.

    Returns:
        `keras.Model`.
    """
    observation = seen.input()
    x = _features(layers, seen, observation, "actor.features_extractor")
    x = layers.hidden(x, "actor.latent_pi", "hidden")
    outputs = layers.linear(x, "actor.mu", "actor.log_std", name="output")
    return keras.Model(observation, outputs, name="actor")


def deterministic_actor(
    layers: TorchLayers, seen: Seen, prefix: str
) -> keras.Model:
    """Makes the actor of TD3, without the final tanh.

    Args:
        layers: `TorchLayers`.
        seen: `Seen`.
        prefix: str. Its name in PyTorch.

    Returns:
        `keras.Model`.
    """
    return _perceptron(layers, seen, prefix, "mu", "actor")


def _perceptron(
    layers: TorchLayers, seen: Seen, prefix: str, part: str, name: str
) -> keras.Model:
    """Makes the network from observations to one part of a policy."""
    observation = seen.input()
    x = _features(layers, seen, observation, f"{prefix}.features_extractor")
    outputs = layers.perceptron(x, f"{prefix}.{part}")
    return keras.Model(observation, outputs, name=name)


def critics(
    layers: TorchLayers, seen: Seen, prefix: str, actions: int
) -> list[keras.Model]:
    """Makes the critics of SAC or TD3.

    Shared convolutions are copied to each critic.

    Args:
        layers: `TorchLayers`.
        seen: `Seen`.
        prefix: str. Their name in PyTorch.
        actions: int. Size of one action.

    Returns:
        list of `keras.Model`.
    """
    made: list[keras.Model] = []
    while layers.has(f"{prefix}.qf{len(made)}"):
        observation = seen.input()
        action = keras.Input((actions,), name=ACTION)
        extractor = f"{prefix}.features_extractor"
        x = _features(layers, seen, observation, extractor)
        x = keras.layers.Concatenate(name="both")([x, action])
        outputs = layers.perceptron(x, f"{prefix}.qf{len(made)}")
        name = f"critic_{len(made)}"
        made.append(keras.Model([observation, action], outputs, name=name))
    return made


def _features(
    layers: TorchLayers, seen: Seen, observation: Tensor, prefix: str
) -> Tensor:
    """Applies the features extractor of a policy: `[B, F]`."""
    x = observation
    if seen.normalization is not None:
        x = _normalized(x, seen.normalization)
    if observation.dtype == "uint8" or seen.scaled:
        # Also by 1, since this converts bytes to floats.
        scale = 1.0 / 255.0 if seen.scaled else 1.0
        x = keras.layers.Rescaling(scale, name="rescaling")(x)
    if layers.has(prefix):
        return _nature(layers, x, prefix, seen.channels_last)
    if seen.channels_last:
        x = keras.layers.Permute((3, 1, 2), name="channels_first")(x)
    if len(x.shape) != 2:
        x = keras.layers.Flatten(data_format=DATA_FORMAT, name="flatten")(x)
    return x


def _nature(
    layers: TorchLayers, x: Tensor, prefix: str, channels_last: bool
) -> Tensor:
    """Applies the convolutions of the Nature DQN."""
    if len(x.shape) != 4:
        raise ValueError("convolutions for observations that are not images")
    if not channels_last:
        x = keras.layers.Permute((2, 3, 1), name="channels_last")(x)
    for name, strides in _NATURE:
        x = layers.convolution(x, f"{prefix}.{name}", strides)
    _, height, width, channels = x.shape
    x = keras.layers.Flatten(data_format=DATA_FORMAT, name="flatten")(x)
    return layers.linear(
        x,
        f"{prefix}.linear.0",
        name="features",
        activation="relu",
        picture=(channels, height, width),
    )


def _normalized(x: Tensor, statistics: Mapping[str, Any]) -> Tensor:
    """Applies the statistics of `VecNormalize`."""
    given = dict(statistics)
    mean = np.asarray(given.pop("mean"), "float32")
    variance = np.asarray(given.pop("variance"), "float32")
    count = np.float32(given.pop("count", 1.0))
    shape = tuple(x.shape[1:])
    for name, array in (("mean", mean), ("variance", variance)):
        if array.shape != shape or not np.isfinite(array).all():
            raise ValueError(
                f"`normalization` with {name} of shape {array.shape}, for "
                f"observations of shape {shape}, or not finite"
            )
    layer = ObservationNormalization(name="normalization", **given)
    normalized: Tensor = layer(x)
    layer.set_weights([mean, variance, mean, variance, count])
    return normalized
