"""The networks that a user asks for, as one value."""

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any
from typing import Literal
from typing import Self

import gymnasium
import keras
from gymnasium.spaces import Dict

from keras_rl2.basics import arguments
from keras_rl2.networks.building import INITIALIZATIONS
from keras_rl2.spaces import supported as spaces
from keras_rl2.spaces.trees import leaves

_DATA_FORMATS = (None, "channels_first", "channels_last")


@dataclasses.dataclass(frozen=True, kw_only=True)
class NetworkOptions:
    """Arguments of `for_env` about networks.

    Args:
        network: `"simba"` or None. `"simba"`: an `ObservationNormalization`
            layer, a dense layer, residual blocks x + W_2 relu(W_1 LN(x)),
            where LN is layer normalization and W_1 has four times as many
            outputs as x, and layer normalization before the output; initial
            weights are orthogonal, those of blocks He's. None for `hidden`
            layers in sequence, after convolutions where observations are
            images. Defaults to `None`.
        hidden: Sequence of ints or None. Widths of the hidden layers,
            after the convolutions where observations are images; None for
            the algorithm's default, or that of the convolutional network.
            With `network="simba"`, a width for each residual block, all equal;
            None for (128,) in actors and (512, 512) in others. Defaults to
            `None`.
        activation: str or None. Activation of the hidden layers; after the
            convolutions of images it is relu. None for the algorithm's
            default. Defaults to `None`.
        normalize_observations: bool. Whether the networks begin with an
            `ObservationNormalization` layer; not for images. Defaults to
            `False`.
        normalization: str or None. Normalization of the hidden layers:
            `"layer"`, `"batch"`, `"spectral"` or `"none"`, see
            `keras_rl2.networks.mlp`; None for the algorithm's default.
            Defaults to `None`.
        initialization: str or None. `"orthogonal"`, with small weights in
            the last layer of an actor; `"fan_in"`, the default of
            PyTorch's layers; None for the algorithm's default. Defaults to
            `None`.
        critic_dropout: float or None. Rate of dropout in the critics, before
            the layer normalization of each hidden layer, which it implies, as
            in DroQ. It is a `MonteCarloDropout`, active in all passes: of
            losses, of targets, and of the actor's loss. None for no dropout.
            Defaults to `None`.
        critic_sees: str, sequence of str, or None. Keys of a Dict observation
            that only the critics see; they also see all that the actor sees,
            as Yu et al. recommend for the value of MAPPO. The policy acts, and
            is exported, without these entries. Networks are not `shared` then,
            and with `memory` a critic of rollouts has none. Defaults to `None`.
        memory: RNN cell of Keras or None, for example
            `keras.layers.LSTMCell(128)`. Makes the network recurrent; see
            `keras_rl2.networks.MemoryNetwork`. Defaults to `None`.
        shared: bool or None. Whether policy and value share all layers
            but their outputs; None where the observation contains an
            image. Without effect with `memory`. Defaults to `None`.
        state_dependent_noise: bool or float. Whether Box actions are
            explored by noise that is a function of the state (gSDE), with a
            `keras_rl2.layers.StateDependentNoise` in the actor: a number is
            the initial log σ, True is -3. Defaults to `False`.
        resample_every: int or None. Steps after which the matrix of this
            noise is drawn anew; None for once a rollout. Defaults to `None`.
        data_format: str or None. `"channels_first"` or `"channels_last"`
            decides where the shape of an image may be either; None for
            channels last, with a warning. Defaults to `None`.

    Example:

    >>> import keras_rl2 as rl
    >>> seen = gymnasium.spaces.Box(-1.0, 1.0, (3,))
    >>> NetworkOptions(hidden=(8,)).completed(rl.PPO, seen).activation
    'tanh'

    Reference:
        - [Lee et al., 2025](https://arxiv.org/abs/2410.09754), SimBa.
        - [Hiraoka et al., 2022](https://arxiv.org/abs/2110.02034), DroQ.
        - [Yu et al., 2022](https://arxiv.org/abs/2103.01955), MAPPO.
    """

    network: Literal["simba"] | None = None
    hidden: Sequence[int] | None = None
    activation: str | None = None
    normalize_observations: bool = False
    normalization: Literal["none", "layer", "batch", "spectral"] | None = None
    initialization: Literal["orthogonal", "fan_in"] | None = None
    critic_dropout: float | None = None
    critic_sees: str | Sequence[str] | None = None
    memory: keras.layers.Layer | None = None
    shared: bool | None = None
    state_dependent_noise: bool | float = False
    resample_every: int | None = None
    data_format: Literal["channels_first", "channels_last"] | None = None

    def completed(self, kind: Any, space: gymnasium.Space[Any]) -> Self:
        """Returns the options with the defaults of a class of agents.

        Args:
            kind: Class of `keras_rl2.Agent`.
            space: `gymnasium.Space`. Space of observations.

        Raises:
            ValueError: If an option is out of range, or the class does not
                support it.
        """
        for name, value in vars(self).items():
            default, flag = getattr(type(self), name), f"takes_{name}"
            if value is not default and not getattr(kind, flag, True):
                raise ValueError(
                    f"Expected `{name}={default}` for {kind.__name__}, which "
                    f"does not support it. Received: {name}={value}"
                )
        if self.resample_every and self.state_dependent_noise is False:
            raise ValueError(
                "Expected `resample_every=None` without "
                f"`state_dependent_noise`. Received: {self.resample_every}"
            )
        names = ("activation", "normalization", "initialization")
        own = {
            name: getattr(self, name) or getattr(kind, f"default_{name}")
            for name in names
        }
        arguments.check_sizes(**arguments.present(hidden=self.hidden))
        arguments.check_flag(normalize_observations=self.normalize_observations)
        arguments.check_choice(network=(self.network, (None, "simba")))
        if self.network is not None:
            self._check_simba(space)
            own["activation"] = self.activation or "relu"
            own["normalize_observations"] = True
        kinds = kind.normalizations
        if self.critic_dropout is not None:
            kinds = ("none", "layer")
            arguments.check_in_range(
                critic_dropout=(self.critic_dropout, 0.0, 0.99)
            )
        arguments.check_choice(
            normalization=(own["normalization"], kinds),
            initialization=(own["initialization"], INITIALIZATIONS),
            data_format=(self.data_format, _DATA_FORMATS),
        )
        arguments.check_known(
            keras.activations.get,
            "the name of an activation of Keras",
            activation=own["activation"],
        )
        for each in leaves(spaces.space_tree(space)):
            either = spaces.is_image(each) and spaces.may_be_either(each.shape)
            if either and self.data_format is None:
                warnings.warn(
                    "Expected `data_format` where channels may be first or "
                    f"last. Received: images of shape {each.shape}, taken as "
                    "last",
                    stacklevel=4,
                )
        return dataclasses.replace(self, **own)

    def for_actor(self, space: gymnasium.Space[Any]) -> gymnasium.Space[Any]:
        """Returns the space of the observations that the actor sees.

        Args:
            space: `gymnasium.Space`. Space of observations.

        Raises:
            ValueError: If `critic_sees` has other keys than those of a Dict, or
                leaves none to the actor; or with `shared=True`.
        """
        if self.critic_sees is None:
            return space
        given = self.critic_sees
        more = {given} if isinstance(given, str) else {*given}
        entries = space.spaces if isinstance(space, Dict) else {}
        if self.shared or not more < entries.keys() - {spaces.ACTION_MASK}:
            raise ValueError(
                "Expected `critic_sees` to be keys of a Dict observation, with "
                "another one for the actor, and no `shared=True`. Received: "
                f"critic_sees={given!r}, shared={self.shared} and observations "
                f"of {spaces.describe(space)}"
            )
        return Dict({k: each for k, each in entries.items() if k not in more})

    def _check_simba(self, space: gymnasium.Space[Any]) -> None:
        """Raises for options that do not go with SimBa."""
        others = ("normalization", "initialization", "memory", "critic_dropout")
        images = map(spaces.is_image, leaves(spaces.space_tree(space)))
        if (
            any(getattr(self, name) is not None for name in others)
            or len({*arguments.given_or(self.hidden, (1,))}) != 1
            or any(images)
        ):
            raise ValueError(
                "Expected network='simba' without images, with equal widths in "
                f"`hidden`, and without {', '.join(others)}. "
                f"Received: {self} and observations of {space}"
            )
