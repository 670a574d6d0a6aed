"""A `keras.Model` that knows what it observes and what it can do."""

import abc
from typing import Any
from typing import Self

import gymnasium
import keras
from keras import ops

from keras_rl2 import spaces
from keras_rl2.agents import network_checks
from keras_rl2.agents.normalizing import Normalizing
from keras_rl2.policy_heads import policy_head
from keras_rl2.shapes import Tensor


class BoundModel(keras.Model, abc.ABC):
    """The half of `Agent` that ties networks to spaces.

    Args:
        observation_space: `gymnasium.Space` or its config, or None.
        action_space: `gymnasium.Space` or its config, or None.
        seed: int or None.
        name: str or None.
        dtype: str or None.
    """

    def __init__(
        self,
        *,
        observation_space: Any,
        action_space: Any,
        seed: int | None,
        name: str | None,
        dtype: str | None,
    ) -> None:
        # Observations are not to lose precision before they are normalised;
        # each network casts for itself.
        super().__init__(name=name, dtype=dtype, autocast=False)
        self.seed = seed
        # None until the agent is bound.
        self.observation_space: Any = None
        self.action_space: Any = None
        self.policy_head: Any = None
        self._requested_spaces = (
            spaces.as_space(observation_space),
            spaces.as_space(action_space),
        )

    @abc.abstractmethod
    def _check_and_build(self) -> None:
        """Checks networks against the spaces and makes all variables."""

    def _bind_requested(self) -> None:
        """Binds to the spaces of the constructor, once networks are there."""
        observation_space, action_space = self._requested_spaces
        if observation_space is not None and action_space is not None:
            self.bind(observation_space, action_space)

    def bind(
        self,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
    ) -> None:
        """Ties the agent to the spaces of an environment.

        Args:
            observation_space: `gymnasium.Space`. Of a single environment.
            action_space: `gymnasium.Space`. Of a single environment.

        Raises:
            ValueError: If a space is not supported, differs from the one the
                agent is tied to, or does not fit its networks.
        """
        if self.policy_head is not None:
            self._check_same(observation_space, action_space)
            return
        spaces.check_observation_space(observation_space)
        spaces.check_action_space(action_space)
        self.observation_space = observation_space
        self.action_space = action_space
        self.policy_head = self._make_policy_head(action_space)
        try:
            self._check_and_build()
        except Exception:
            self.policy_head = None
            raise
        self.normalizing = Normalizing(self, self._learning_layers())
        self.built = True

    def _learning_layers(self) -> list[keras.layers.Layer]:
        """Returns all layers of the networks that are trained."""
        return network_checks.all_layers(self)

    def _make_policy_head(self, action_space: gymnasium.Space[Any]) -> Any:
        """Returns what stands between the network and the action space."""
        return policy_head(action_space)

    def _check_same(self, observation_space: Any, action_space: Any) -> None:
        """Refuses spaces other than those the agent is tied to."""
        for what, ours, theirs in (
            ("observation", self.observation_space, observation_space),
            ("action", self.action_space, action_space),
        ):
            if not spaces.same_space(ours, theirs):
                raise ValueError(
                    f"Expected an environment with the {what} space that "
                    f"{type(self).__name__} was made for, "
                    f"{spaces.describe(ours)}. "
                    f"Received: {spaces.describe(theirs)}"
                )

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Shape of one observation as it is stored."""
        self._require_bound()
        return tuple(self.observation_space.shape or ())

    @property
    def observation_dtype(self) -> str:
        """Dtype of observations as they are stored."""
        self._require_bound()
        return spaces.observation_dtype(self.observation_space).name

    @property
    def observation_start(self) -> int:
        """Smallest value of a Discrete observation."""
        return int(getattr(self.observation_space, "start", 0))

    def encode(self, observation: Tensor) -> Tensor:
        """Turns observations into what the networks take.

        Args:
            observation: `[B, ...]`. Raw observations.

        Returns:
            One-hot rows `[B, n]` for a Discrete space, else the same; numbers
            other than uint8 images as floats.
        """
        space = self.observation_space
        if isinstance(space, gymnasium.spaces.Discrete):
            index = observation - self.observation_start
            return ops.one_hot(index, int(space.n), dtype="float32")
        if self.observation_dtype == "uint8" and len(observation.shape) == 4:
            return observation
        return ops.cast(observation, "float32")

    def _require_bound(self) -> None:
        """Refuses to act before the spaces are known."""
        if self.policy_head is None:
            raise ValueError(
                f"Expected a {type(self).__name__} that knows its spaces: "
                "pass `observation_space` and `action_space` to the "
                "constructor, use `for_env`, or call `fit` first. "
                "Received: an agent bound to no environment"
            )

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor as plain data."""
        bound = self.policy_head is not None
        return {
            "name": self.name,
            "dtype": self.dtype_policy.name,
            "seed": self.seed,
            "observation_space": (
                spaces.space_to_config(self.observation_space)
                if bound
                else None
            ),
            "action_space": (
                spaces.space_to_config(self.action_space) if bound else None
            ),
        }

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Any = None
    ) -> Self:
        """Makes an agent from `get_config`."""
        arguments = {
            key: keras.saving.deserialize_keras_object(
                value, custom_objects=custom_objects
            )
            if isinstance(value, dict) and "class_name" in value
            else value
            for key, value in config.items()
        }
        return cls(**arguments)
