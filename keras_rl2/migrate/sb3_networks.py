"""The networks of Stable-Baselines3 policies, as Keras models."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import gymnasium
import keras
import numpy as np

from keras_rl2.basics.shapes import Tensor
from keras_rl2.layers import ObservationNormalization
from keras_rl2.migrate.sb3_file import Array
from keras_rl2.networks.building import DATA_FORMAT
from keras_rl2.spaces.supported import ACTION
from keras_rl2.spaces.supported import network_shape

# Layer and strides of each convolution of the Nature DQN.
_NATURE = (("cnn.0", 4), ("cnn.2", 2), ("cnn.4", 1))
_LEAKY_SLOPE = 0.01


@dataclasses.dataclass
class SB3Networks:
    """Makes Keras models with the weights of a policy.

    Attributes:
        weights: Mapping of arrays, by PyTorch's names.
        activation: str. Keras' name of the activation of hidden layers, or
            `"leakyrelu"` for PyTorch's.
        space: `gymnasium.Space`. The agent's observation space.
        channels_last: bool. Whether Stable-Baselines3 has transposed the
            observations, so that its networks receive the channels first.
        scaled: bool. Whether bytes are scaled to numbers from 0 to 1.
        normalization: Mapping or None. `mean`, `variance` and optionally
            `count`, `clip` and `epsilon`: the statistics of `VecNormalize`.
        used: set of str. Names of the weights that are in a network.
    """

    weights: Mapping[str, Array]
    activation: str
    space: gymnasium.Space[Any]
    channels_last: bool
    scaled: bool
    normalization: Mapping[str, Any] | None = None
    used: set[str] = dataclasses.field(default_factory=set)

    def array(self, name: str) -> Array:
        """Returns an array of the policy, by PyTorch's name."""
        if name not in self.weights:
            raise ValueError(f"weights without {name}")
        self.used.add(name)
        return self.weights[name]

    def refuse_unused(self) -> None:
        """Raises an error if a part of the policy is in no network."""
        rest = sorted(set(self.weights) - self.used)
        if rest:
            raise ValueError(f"weights of unknown parts: {', '.join(rest[:3])}")

    def actor_critic(self, shared: bool) -> list[keras.Model]:
        """Makes an actor and a critic, or one network if they share layers."""
        # Extractors are saved under several names.
        self.used.update(n for n in self.weights if "features_extractor." in n)
        prefix = "" if shared else "pi_"
        x, observation = self._features(f"{prefix}features_extractor")
        policy = self._head(x, "policy", "action_net")
        if shared and self._has("features_extractor"):
            outputs = [policy, self._head(x, "value", "value_net")]
            return [keras.Model(observation, outputs, name="actor_critic")]
        actor = keras.Model(observation, policy, name="actor")
        prefix = "" if shared else "vf_"
        x, observation = self._features(f"{prefix}features_extractor")
        value = self._head(x, "value", "value_net")
        return [actor, keras.Model(observation, value, name="critic")]

    def gaussian_actor(self) -> keras.Model:
        """Makes the actor of SAC, of means and log standard deviations."""
        x, observation = self._features("actor.features_extractor")
        x = self._hidden(x, self._sequence("actor.latent_pi"), "hidden")
        outputs = self._linear(x, "actor.mu", "actor.log_std", name="output")
        return keras.Model(observation, outputs, name="actor")

    def perceptron(self, prefix: str, part: str, name: str) -> keras.Model:
        """Makes a Q-network, or the actor of TD3 without its final tanh."""
        x, observation = self._features(f"{prefix}.features_extractor")
        x = self._layers(x, f"{prefix}.{part}")
        return keras.Model(observation, x, name=name)

    def critics(self, prefix: str, actions: int) -> list[keras.Model]:
        """Makes the critics of SAC or TD3; convolutions are not shared."""
        critics: list[keras.Model] = []
        while self._has(f"{prefix}.qf{len(critics)}"):
            action = keras.Input((actions,), name=ACTION)
            x, observation = self._features(f"{prefix}.features_extractor")
            x = keras.layers.Concatenate(name="both")([x, action])
            x = self._layers(x, f"{prefix}.qf{len(critics)}")
            name = f"critic_{len(critics)}"
            critics.append(keras.Model([observation, action], x, name=name))
        return critics

    def _has(self, prefix: str) -> bool:
        """Returns whether a layer or part of that name exists."""
        return any(name.startswith(f"{prefix}.") for name in self.weights)

    def _features(self, prefix: str) -> tuple[Tensor, Tensor]:
        """Applies a features extractor to an input; returns both."""
        shape = network_shape(self.space)
        picture = self.space.dtype == np.uint8 and len(shape) in (3, 4)
        dtype = "uint8" if picture else "float32"
        observation = keras.Input(shape, dtype=dtype, name="observation")
        x: Tensor = observation
        if self.normalization is not None:
            x = _normalized(x, **self.normalization)
        if picture or self.scaled:
            # A scale of 1 converts bytes to floats.
            scale = 1.0 / 255.0 if self.scaled else 1.0
            x = keras.layers.Rescaling(scale, name="rescaling")(x)
        if self._has(prefix):
            return self._nature(x, prefix), observation
        if self.channels_last:
            x = keras.layers.Permute((3, 1, 2), name="channels_first")(x)
        if len(x.shape) != 2:
            x = keras.layers.Flatten(data_format=DATA_FORMAT, name="flatten")(x)
        return x, observation

    def _nature(self, x: Tensor, prefix: str) -> Tensor:
        """Applies the convolutions of the Nature DQN."""
        if not self.channels_last:
            x = keras.layers.Permute((2, 3, 1), name="channels_last")(x)
        for name, strides in _NATURE:
            # [filters, channels, height, width] -> channels and filters last
            kernel = self.array(f"{prefix}.{name}.weight").transpose(2, 3, 1, 0)
            layer = keras.layers.Conv2D(
                kernel.shape[-1],
                kernel.shape[:2],
                strides,
                activation="relu",
                data_format=DATA_FORMAT,
                name=f"{prefix}.{name}".replace(".", "_"),
            )
            x = layer(x)
            layer.set_weights([kernel, self.array(f"{prefix}.{name}.bias")])
        # PyTorch flattens with the channels first.
        x = keras.layers.Permute((3, 1, 2), name="filters_first")(x)
        x = keras.layers.Flatten(data_format=DATA_FORMAT, name="flatten")(x)
        last = f"{prefix}.linear.0"
        return self._linear(x, last, name="features", activation="relu")

    def _head(self, x: Tensor, name: str, last: str) -> Tensor:
        """Applies the layers of PPO's or A2C's policy or value."""
        x = self._hidden(x, self._sequence(f"mlp_extractor.{name}_net"), name)
        return self._linear(x, last, name=name)

    def _layers(self, x: Tensor, prefix: str) -> Tensor:
        """Applies the linear layers of a part, the last one as it is."""
        *hidden, last = self._sequence(prefix) or [prefix]
        return self._linear(
            self._hidden(x, hidden, "hidden"), last, name="output"
        )

    def _hidden(self, x: Tensor, layers: list[str], name: str) -> Tensor:
        """Applies linear layers with the activation after each."""
        for index, layer in enumerate(layers):
            full = f"{name}_{index}"
            x = self._linear(x, layer, name=full, activation=self.activation)
        return x

    def _sequence(self, prefix: str) -> list[str]:
        """Returns the names of linear layers with an activation after each."""
        names = [n for n in self.weights if n.startswith(f"{prefix}.")]
        count = sum(name.endswith(".weight") for name in names)
        return [f"{prefix}.{2 * index}" for index in range(count)]

    def _linear(
        self, x: Tensor, *names: str, name: str, activation: str = "linear"
    ) -> Tensor:
        """Applies linear layers, and concatenates their outputs."""
        kernel = np.concatenate([self.array(f"{n}.weight") for n in names])
        bias = np.concatenate([self.array(f"{n}.bias") for n in names])
        leaky = activation == "leakyrelu"
        inner = "linear" if leaky else activation
        layer = keras.layers.Dense(len(kernel), activation=inner, name=name)
        x = layer(x)
        layer.set_weights([kernel.T, bias])
        if leaky:
            # The activation of Keras has another slope.
            x = keras.layers.LeakyReLU(_LEAKY_SLOPE, name=f"{name}_leaky")(x)
        return x


def _normalized(
    x: Tensor, mean: Any, variance: Any, count: float = 1.0, **settings: Any
) -> Tensor:
    """Applies the statistics of `VecNormalize`."""
    layer = ObservationNormalization(name="normalization", **settings)
    x = layer(x)
    mean, variance = np.float32(mean), np.float32(variance)
    layer.set_weights([mean, variance, mean, variance, np.float32(count)])
    return x
