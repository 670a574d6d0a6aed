"""Default networks, as `for_env` makes them."""

from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from typing import Any

import gymnasium
import keras

from keras_rl2.basics import seeds
from keras_rl2.basics.arguments import given_or
from keras_rl2.distributions import BoxHead
from keras_rl2.distributions import PolicyHead
from keras_rl2.layers import StateDependentNoise
from keras_rl2.networks import MemoryNetwork
from keras_rl2.networks import critic_for
from keras_rl2.networks import encoder_for
from keras_rl2.networks import network_for
from keras_rl2.networks.building import FORM
from keras_rl2.networks.building import Form
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

    Raises:
        ValueError: If noise that depends on the state is not supported.

    Attributes:
        head: `PolicyHead`.
        memory: RNN cell of Keras or None. The cell of a recurrent policy.
        seed: int or None.
        shared: bool. Whether policy and value share all layers but their
            outputs, as with `memory`; never if the critic sees more.
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
        box = isinstance(policy_head, BoxHead) and options.memory is None
        if options.state_dependent_noise is not False and not box:
            raise ValueError(
                "Expected a Box of actions and no memory with "
                "`state_dependent_noise`. Received: "
                f"{type(policy_head).__name__}, memory={options.memory}"
            )
        self.memory = options.memory
        self._spaces = {"actor": options.for_actor(observation_space)}
        self._default_hidden = tuple(default_hidden)
        self.head = policy_head
        self._space = observation_space
        self._options = options
        self.seed = seed
        self._dtype = dtype
        seen = leaves(space_tree(observation_space))
        self._is_simba = options.network == "simba"
        shared = given_or(options.shared, any(map(is_image, seen)))
        together = shared or self.memory is not None
        self.shared = together and options.critic_sees is None

    @contextmanager
    def _making(self, name: str, noisy: bool = False) -> Iterator[None]:
        """Sets the globals of the layers that are made within."""
        # Critics are numbered.
        rate = self._options.critic_dropout if "critic_" in name else None
        form = FORM.set(Form(self._is_simba, noisy, rate or 0.0))
        before = keras.config.dtype_policy()
        keras.config.set_dtype_policy(self._dtype or before)
        format_before = IMAGE_FORMAT.set(self._options.data_format)
        try:
            with keras.name_scope(name):
                yield
        finally:
            keras.config.set_dtype_policy(before)
            IMAGE_FORMAT.reset(format_before)
            FORM.reset(form)

    def _layers(
        self, of_images: Sequence[int] | None, name: str = ""
    ) -> dict[str, Any]:
        """Returns arguments of hidden layers, with widths where none are given.

        Those after the convolutions of images differ, and those of SimBa.
        """
        own = of_images if is_image(self._space) else self._default_hidden
        start = self._options.initialization
        if self._is_simba:
            own = (128,) if name == "actor" else (512, 512)
            start = "orthogonal"
        return {
            "hidden": given_or(self._options.hidden, own),
            "activation": self._options.activation,
            "normalize_observations": self._options.normalize_observations,
            "normalization": self._options.normalization,
            "initialization": start,
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
        noisy: bool = False,
        remembers: bool = True,
    ) -> keras.Model:
        """Makes a network of observations, with `NoisyDense` if `noisy`."""
        if self.memory is not None and remembers:
            width = units if isinstance(units, int) else sum(units)
            return self.recurrent(name, (width,), seed)
        with self._making(name, noisy):
            return network_for(
                self._spaces.get(name, self._space),
                units,
                output_gain=output_gain,
                seed=seed,
                name=name,
                **self._layers(None, name),
            )

    def actor(self, units: int, seed: int | None) -> keras.Model:
        """Makes a policy network; an orthogonal one starts nearly uniform."""
        options = self._options
        gain = 0.01 if options.initialization == "orthogonal" else 1.0
        log_std = options.state_dependent_noise
        if log_std is False:
            return self.network("actor", units, seed, gain)
        log_std = -3.0 if log_std is True else log_std
        units = self.head.parameter_sizes[0]
        means = self.network("actor", units, seed, gain)
        with self._making("actor"):
            layer = StateDependentNoise(units, log_std, options.resample_every)
            parts = [means.output, layer(means.get_layer("output").input)]
            output = keras.layers.Concatenate()(parts)
        return keras.Model(means.input, output, name="actor")

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
        self,
        name: str,
        units: Sequence[int],
        seed: int | None,
        action_size: int = 0,
    ) -> keras.Model:
        """Makes a recurrent network with one or several outputs."""
        drawn = seeds.sequence(seed).generate_state(3).tolist()
        # Values of actions that act through a linear layer have no maximum.
        options = self._layers(self._default_hidden if action_size else ())
        options["action_size"] = action_size
        normalize = options.pop("normalize_observations")
        with self._making(name):
            cell = seeded_cell(self.memory, drawn[1])
            encoder = encoder_for(
                self._spaces.get(name, self._space),
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
        if self.memory is not None:
            return self.recurrent(
                name, (units,), seed, self.head.action_shape[0]
            )
        with self._making(name):
            return critic_for(
                self._space,
                self.head.action_shape[0],
                units=units,
                seed=seed,
                name=name,
                **self._layers(self._default_hidden),
            )
