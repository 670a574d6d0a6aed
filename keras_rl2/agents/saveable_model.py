"""Models that are saved and loaded as Keras does it."""

import abc
import os
from collections.abc import Sequence
from typing import Any
from typing import Self

import numpy as np

from keras_rl2.agents.exportable_model import ExportableModel
from keras_rl2.basics.arguments import present
from keras_rl2.saving import agent_state
from keras_rl2.saving import saved_networks
from keras_rl2.saving import saving
from keras_rl2.spaces import space_configs
from keras_rl2.updates import finite_weights
from keras_rl2.updates.normalizing import Normalizing
from keras_rl2.updates.skipped_updates import SkippedUpdates


class SaveableModel(ExportableModel):
    """Base of models that are saved, whole or not at all, and loaded.

    In three ways: as a model, by `save`; as weights; and as the state that a
    training goes on from. A subclass names its networks.

    Its arguments are those of an `ActingModel`.
    """

    #: Environment steps that it has seen.
    env_steps = 0
    #: Updates that were not made, which a subclass counts.
    skipped: SkippedUpdates
    #: Statistics of observations, which a subclass keeps.
    normalizing: Normalizing
    _is_loaded = False

    @abc.abstractmethod
    def given_networks(self) -> dict[str, Any]:
        """Returns the networks by the constructor's argument for them."""

    # Keras' own verbs.

    def save(
        self,
        filepath: str | os.PathLike[str],
        overwrite: bool = True,
        zipped: bool | None = None,
    ) -> None:
        """Saves the agent as `keras.Model.save` does, whole or not at all.

        What was there stays until the new file is on the disk. A `.keras`
        file is sealed, so that `keras_rl2.load` finds damage.

        Args:
            filepath: str or path. Where to write, a `.keras` file.
            overwrite: bool. Whether what is there is replaced without asking,
                as of [`keras.Model.save`](
                https://keras.io/api/models/model_saving_apis/model_saving_and_loading/).
                Defaults to `True`.
            zipped: bool or None. Whether it is an archive rather than a
                folder, as of `keras.Model.save`. Defaults to `None`.

        Raises:
            ValueError: If a network could not be made again when it is
                loaded, or a weight is not finite; nothing is written then.
            OSError: If it cannot be written.
        """
        finite_weights.refuse_non_finite(self, "save")
        saved_networks.check_can_be_loaded(self.given_networks())
        saving.save(super().save, filepath, overwrite, zipped)

    def save_weights(
        self,
        filepath: str | os.PathLike[str],
        overwrite: bool = True,
        max_shard_size: float | None = None,
    ) -> None:
        """Saves weights as `keras.Model.save_weights`, whole or not at all.

        Args:
            filepath: str or path. Where to write, a `.weights.h5` file.
            overwrite: bool. Whether what is there is replaced without asking.
                Defaults to `True`.
            max_shard_size: float or None. Gigabytes of each of several files,
                as of `keras.Model.save_weights`. Defaults to `None`.

        Raises:
            ValueError: If a weight is not finite; nothing is written then.
            OSError: If they cannot be written.
        """
        finite_weights.refuse_non_finite(self, "save")
        saving.save_weights(
            super().save_weights, filepath, overwrite, max_shard_size
        )

    def load_weights(
        self,
        filepath: str | os.PathLike[str],
        skip_mismatch: bool = False,
        *,
        objects_to_skip: Sequence[Any] | None = None,
    ) -> None:
        """Loads weights as `keras.Model.load_weights` does.

        Args:
            filepath: str or path. A `.weights.h5` or `.keras` file.
            skip_mismatch: bool. Whether weights of other shapes are left out,
                as of `keras.Model.load_weights`. Defaults to `False`.
            objects_to_skip: Sequence of layers or None. What is left as it is,
                as of `keras.Model.load_weights`. Defaults to `None`.

        Raises:
            ValueError: If the weights are those of other networks, or one of
                the file is not finite; all are then what they were before.
        """
        before, env_steps = finite_weights.values_of(self), self.env_steps
        try:
            super().load_weights(
                filepath,
                skip_mismatch,
                **present(objects_to_skip=objects_to_skip),
            )
            self.check_loaded()
        except Exception:
            finite_weights.put_back(before)
            self.env_steps, self._is_loaded = env_steps, False
            raise

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor as plain data."""
        bound = self._is_bound
        space_config = space_configs.space_to_config
        return {
            "name": self.name,
            "dtype": self.dtype_policy.name,
            "seed": self.seed,
            "observation_space": (
                space_config(self.observation_space) if bound else None
            ),
            "action_space": space_config(self.action_space) if bound else None,
            **saved_networks.to_config(self.given_networks()),
        }

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Any = None
    ) -> Self:
        """Makes an agent from `get_config`."""
        return cls(**saved_networks.from_config(config, custom_objects))

    def save_own_variables(self, store: Any) -> None:
        """Saves the count of environment steps with the weights."""
        super().save_own_variables(store)
        store["env_steps"] = np.array(self.env_steps, np.int64)

    def load_own_variables(self, store: Any) -> None:
        """Loads what `save_own_variables` saved."""
        # The store of Keras has `keys` but cannot be iterated over.
        values = {key: store[key] for key in list(store.keys())}
        env_steps = int(np.array(values.pop("env_steps", 0)))
        if env_steps < 0:
            raise ValueError(
                "Expected a count of environment steps. "
                f"Received: env_steps={env_steps}"
            )
        self.env_steps = env_steps
        self._is_loaded = True
        super().load_own_variables(values)

    # What a training goes on from.

    def get_state(self) -> dict[str, Any]:
        """Returns all that later updates and actions depend on.

        Returns:
            dict of plain data: the variables of networks and optimizers, the
            count of steps, and the random state of `act`.
        """
        self._require_bound()
        return {
            **agent_state.read(self),
            "acting": self._acting.get_state(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes back what `get_state` gave, in an agent made in the same way.

        Args:
            state: dict, as returned by `get_state`.

        Raises:
            ValueError: If it is the state of another kind of agent.
        """
        self._require_bound()
        agent_state.write(self, state)
        self._acting.set_state(state["acting"])

    # Weights that are not to be used.

    def _check_can_act(self) -> None:
        """Refuses to act with what is not ready for it."""
        super()._check_can_act()
        self.check_loaded()

    def check_loaded(self) -> None:
        """Refuses weights that were loaded and are not finite.

        Keras says when the first of them are loaded, not when all are: those
        of a whole file are looked at when they are used.
        """
        if self._is_loaded:
            self._is_loaded = False
            finite_weights.refuse_non_finite(self, "go on with the loaded")
