"""Default networks, as `for_env` makes them."""

from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from typing import Any

import gymnasium
import keras

from keras_rl2.basics import seeds
from keras_rl2.basics.arguments import given_or
from keras_rl2.distributions import PolicyHead
from keras_rl2.networks import MemoryNetwork
from keras_rl2.networks import critic_for
from keras_rl2.networks import encoder_for
from keras_rl2.networks import network_for
from keras_rl2.networks.building import Initialization
from keras_rl2.networks.building import dense
from keras_rl2.networks.memory import outputs_of
from keras_rl2.networks.memory import seeded_cell
from keras_rl2.networks.network_options import NetworkOptions
from keras_rl2.spaces.supported import IMAGE_FORMAT
from keras_rl2.spaces.supported import is_image
from keras_rl2.spaces.supported import space_tree
from keras_rl2.spaces.trees import leaves


class NetworkBuilder:
    """Makes the networks of one agent, each from a seed of its own.

    Args:
        observation_space: `gymnasium.Space`. Space of the networks' input.
        policy_head: `PolicyHead`. Head for the actor's output.
        options: `NetworkOptions`, with the defaults of the algorithm.
        default_hidden: Sequence of ints. The algorithm's own hidden layers,
            which are not used for images.
        seed: int or None. Seeds all weights.
        dtype: str or None. Dtype policy of all layers; None for the global
            one. Defaults to `None`.

    Attributes:
        head: `PolicyHead`.
        memory: RNN cell of Keras or None. The cell of a recurrent policy.
        seed: int or None.
        shared: bool. Whether policy and value share all layers but their
            outputs.
    """

    def __init__(
        self,
        observation_space: gymnasium.Space[Any],
        policy_head: PolicyHead,
        options: NetworkOptions,
        default_hidden: Sequence[int],
        seed: int | None,
        dtype: str | None = None,
    ) -> None:
        self.memory = options.memory
        self._default_hidden = tuple(default_hidden)
        self.head = policy_head
        self._space = observation_space
        self._options = options
        self.seed = seed
        self._dtype = dtype
        seen = leaves(space_tree(observation_space))
        self.shared = given_or(options.shared, any(map(is_image, seen)))

    @contextmanager
    def _making(self, name: str) -> Iterator[None]:
        """Sets the globals of the layers that are made within."""
        before = keras.config.dtype_policy()
        keras.config.set_dtype_policy(self._dtype or before)
        format_before = IMAGE_FORMAT.set(self._options.data_format)
        try:
            with keras.name_scope(name):
                yield
        finally:
            keras.config.set_dtype_policy(before)
            IMAGE_FORMAT.reset(format_before)

    def _layers(self, of_images: Sequence[int] | None) -> dict[str, Any]:
        """Returns arguments of hidden layers, with widths where none are given.

        Those after the convolutions of images differ.
        """
        own = of_images if is_image(self._space) else self._default_hidden
        return {
            "hidden": given_or(self._options.hidden, own),
            "activation": self._options.activation,
            "normalize_observations": self._options.normalize_observations,
            "normalization": self._options.normalization,
            "initialization": self._options.initialization,
        }

    def seeds(self, count: int) -> list[int]:
        """Returns one seed for each of `count` networks."""
        drawn = seeds.sequence(self.seed).generate_state(count)
        return [int(seed) for seed in drawn]

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
                self._space,
                units,
                output_gain=output_gain,
                seed=seed,
                name=name,
                **self._layers(None),
            )

    def actor(self, units: int, seed: int | None) -> keras.Model:
        """Makes a policy network; an orthogonal one starts nearly uniform."""
        orthogonal = self._options.initialization == "orthogonal"
        return self.network("actor", units, seed, 0.01 if orthogonal else 1.0)

    def actor_critic(self) -> keras.Model:
        """Makes a policy and a value on a shared trunk."""
        trunk_seed, value_seed = self.seeds(2)
        policy = self.actor(self.head.parameter_sizes[0], trunk_seed)
        start = Initialization(self._layers(None)["initialization"], value_seed)
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
        drawn = seeds.sequence(seed).generate_state(3).tolist()
        options = self._layers(())
        normalize = options.pop("normalize_observations")
        with self._making(name):
            cell = seeded_cell(self.memory, drawn[1])
            encoder = encoder_for(
                self._space,
                normalize_observations=normalize,
                initialization=options["initialization"],
                seed=drawn[0],
            )
            head = outputs_of(cell.output_size, units, seed=drawn[2], **options)
            return MemoryNetwork(encoder, cell, head, name=name)

    def critic_of_actions(
        self, name: str, seed: int | None, units: int = 1
    ) -> keras.Model:
        """Makes a network for the Q-value of an observation and an action."""
        with self._making(name):
            return critic_for(
                self._space,
                self.head.noise_shape[0],
                units=units,
                seed=seed,
                name=name,
                **self._layers(self._default_hidden),
            )
