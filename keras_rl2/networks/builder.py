"""Default networks, as `for_env` makes them."""

import dataclasses
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from typing import Any

import gymnasium
import keras

from keras_rl2.basics import seeds
from keras_rl2.distributions import PolicyHead
from keras_rl2.networks import MemoryNetwork
from keras_rl2.networks import critic_for
from keras_rl2.networks import encoder_for
from keras_rl2.networks import network_for
from keras_rl2.networks.building import Initialization
from keras_rl2.networks.building import dense
from keras_rl2.networks.memory import outputs_of
from keras_rl2.networks.memory import seeded_cell
from keras_rl2.spaces.supported import IMAGE_FORMAT
from keras_rl2.spaces.supported import is_image
from keras_rl2.spaces.supported import space_tree
from keras_rl2.spaces.trees import leaves


@dataclasses.dataclass
class NetworkBuilder:
    """Makes the networks of one agent, each from a seed of its own.

    Attributes:
        observation_space: `gymnasium.Space`. Space of the networks' input.
        head: `PolicyHead`. Head for the actor's output.
        options: dict. Arguments of the builders in `keras_rl2.networks`;
            `hidden` may be None there. And `data_format`.
        default_hidden: Sequence of ints. The algorithm's own hidden layers,
            which are not used for images.
        memory: RNN cell of Keras or None. The cell of a recurrent policy.
        seed: int or None. Seeds all weights.
        dtype: str or None. Dtype policy of all layers; None for the global
            one. Defaults to `None`.
        shared: bool or None. Whether policy and value share all layers but
            their outputs; None where the observation contains an image.
            Defaults to `None`.
    """

    observation_space: gymnasium.Space[Any]
    head: PolicyHead
    options: dict[str, Any]
    default_hidden: Sequence[int]
    memory: keras.layers.Layer | None
    seed: int | None
    dtype: str | None = None
    shared: bool | None = None

    def __post_init__(self) -> None:
        """Completes the options."""
        options = dict(self.options)
        self._data_format = options.pop("data_format", None)
        self.options = options
        if self.shared is None:
            spaces = leaves(space_tree(self.observation_space))
            self.shared = any(map(is_image, spaces))

    @contextmanager
    def _making(self, name: str) -> Iterator[None]:
        """Sets the globals of the layers that are made within."""
        before = keras.config.dtype_policy()
        keras.config.set_dtype_policy(self.dtype or before)
        format_before = IMAGE_FORMAT.set(self._data_format)
        try:
            with keras.name_scope(name):
                yield
        finally:
            keras.config.set_dtype_policy(before)
            IMAGE_FORMAT.reset(format_before)

    def _hidden(self, of_images: Sequence[int] | None) -> Any:
        """Returns the widths of hidden layers, unless given those of images."""
        if self.options["hidden"] is not None:
            return self.options["hidden"]
        return (
            of_images
            if is_image(self.observation_space)
            else self.default_hidden
        )

    def seeds(self, count: int) -> list[int]:
        """Returns one seed for each of `count` networks."""
        return seeds.several(self.seed, count)

    def network(
        self,
        name: str,
        units: int | Sequence[int],
        seed: int | None,
        output_gain: float = 1.0,
    ) -> keras.Model:
        """Makes a network of observations."""
        with self._making(name):
            return network_for(
                self.observation_space,
                units,
                output_gain=output_gain,
                seed=seed,
                name=name,
                **self.options | {"hidden": self._hidden(None)},
            )

    def actor(self, units: int, seed: int | None) -> keras.Model:
        """Makes a policy network; an orthogonal one starts nearly uniform."""
        orthogonal = self.options["initialization"] == "orthogonal"
        return self.network("actor", units, seed, 0.01 if orthogonal else 1.0)

    def actor_critic(self) -> keras.Model:
        """Makes a policy and a value on a shared trunk."""
        trunk_seed, value_seed = self.seeds(2)
        policy = self.actor(self.head.parameter_sizes[0], trunk_seed)
        start = Initialization(self.options["initialization"], value_seed)
        with self._making("critic"):
            features = policy.get_layer("output").input
            value = dense(features, 1, start, "value", gain=1.0)
        return keras.Model(
            policy.input, [policy.output, value], name="actor_critic"
        )

    def recurrent(
        self, name: str, units: Sequence[int], seed: int | None
    ) -> keras.Model:
        """Makes a recurrent network with one or several outputs."""
        encoder_seed, cell_seed, head_seed = seeds.several(seed, 3)
        options = dict(self.options, hidden=self._hidden(()))
        normalize = options.pop("normalize_observations")
        with self._making(name):
            cell = seeded_cell(self.memory, cell_seed)
            encoder = encoder_for(
                self.observation_space,
                normalize_observations=normalize,
                initialization=options["initialization"],
                seed=encoder_seed,
            )
            head = outputs_of(
                cell.output_size, units, seed=head_seed, **options
            )
            return MemoryNetwork(encoder, cell, head, name=name)

    def critic_of_actions(self, name: str, seed: int | None) -> keras.Model:
        """Makes a network for the Q-value of an observation and an action."""
        hidden = self._hidden(self.default_hidden)
        with self._making(name):
            return critic_for(
                self.observation_space,
                self.head.noise_shape[0],
                seed=seed,
                name=name,
                **self.options | {"hidden": hidden},
            )
