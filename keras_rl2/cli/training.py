"""Training with a preset."""

from collections.abc import Iterable
from typing import Any
from typing import Literal

import keras

from keras_rl2 import agents
from keras_rl2.basics import arguments
from keras_rl2.callbacks.run import updates
from keras_rl2.data.replay import ReplayDataset
from keras_rl2.data.rollouts import RolloutDataset
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.offline.offline import OfflineDataset
from keras_rl2.offline.sources import GivenSource
from keras_rl2.presets import Preset
from keras_rl2.training import from_preset


class Training:
    """An agent with its dataset and callbacks, made from a preset.

    `run` calls `agent.fit(dataset, total_steps=..., callbacks=...)`; the parts
    can also be used without it.

    Args:
        preset: `keras_rl2.presets.Preset`. The settings.
        agent: `keras_rl2.Agent`. Compiled.
        dataset: `RolloutDataset`, `ReplayDataset` or `OfflineDataset`. The
            training data.

    Example:

    >>> import keras_rl2 as rl
    >>> preset = rl.presets.find("PPO", "CartPole-v1")
    >>> preset = preset.with_settings({"total_steps": 512})
    >>> training = Training.from_preset(preset, seed=0)
    >>> history = training.run()
    >>> history.history["env_steps"][-1] == training.agent.env_steps
    True
    """

    def __init__(
        self,
        preset: Preset,
        agent: agents.Agent,
        dataset: RolloutDataset | ReplayDataset | OfflineDataset,
    ) -> None:
        self.preset = preset
        self.agent = agent
        self.dataset = dataset

    @classmethod
    def from_preset(
        cls,
        preset: Preset,
        *,
        env: GivenEnv | None = None,
        num_envs: int | None = None,
        seed: int | None = None,
        data: GivenSource | None = None,
    ) -> "Training":
        """Makes the agent and the dataset that a preset describes.

        If the number of environments differs from the preset's, a minibatch is
        limited to the rollout, and a round of a replay is rounded up so that
        each environment takes the same number of steps. The training's `preset`
        has the settings in use.

        Args:
            preset: `keras_rl2.presets.Preset`. The settings.
            env: An environment, vector environment or id string instead of
                the preset's. Defaults to `None`.
            num_envs: int or None. Environments to make of an id; None for the
                preset's number. Defaults to `None`.
            seed: int or None. Seeds agent and dataset. Defaults to `None`.
            data: Recorded data, see `OfflineDataset`; only for presets of
                updates, which require it. Defaults to `None`.

        Returns:
            `Training`.

        Raises:
            ValueError: If a setting does not fit the environment, or the data
                does not fit the preset or the environment.
        """
        arguments.check_has("a preset", "algorithm", "updates", preset=preset)
        if (data is None) == bool(preset.updates):
            raise ValueError(
                "Expected `data` with a preset of `updates`, and with no "
                f"other. Received: data={data!r}, updates={preset.updates}"
            )
        kind: type[agents.Agent] = getattr(agents, preset.algorithm)
        preset, agent, dataset = from_preset.make(
            kind, preset, env, num_envs, seed, data
        )
        assert dataset is not None
        return cls(preset, agent, dataset)

    @arguments.refusing_unknown
    def run(
        self,
        callbacks: Iterable[Any] = (),
        verbose: int | Literal["auto"] = 0,
        total_steps: int | None = None,
        *,
        validation_data: object = None,
        validation_freq: int = 1,
    ) -> keras.callbacks.History:
        """Trains until the agent has taken all steps of the run.

        Schedules always span the preset's length, even if this run ends earlier
        or later. On recorded data, it trains until the agent has made all
        updates of the run.

        Args:
            callbacks: Iterable of `keras.callbacks.Callback`. Defaults to
                `()`.
            verbose: See `keras.Model.fit`. Defaults to `0`.
            total_steps: int or None. Environment steps of the agent's life to
                end at, in whole epochs; None for those of the preset. Defaults
                to `None`.
            validation_data: `keras_rl2.EvaluationDataset`, an environment or
                its id, or None. Episodes to evaluate on after epochs. Defaults
                to `None`.
            validation_freq: int. Number of epochs per evaluation. Defaults to
                `1`.

        Returns:
            `keras.callbacks.History`.

        Raises:
            ValueError: If the agent has taken as many steps already, or made
                as many updates; if `total_steps` is set on recorded data.
        """
        arguments.check_positive(**arguments.present(total_steps=total_steps))
        length: dict[str, Any]
        if self.preset.updates:
            length = {"epochs": self._epochs_left(total_steps)}
        else:
            length = {"total_steps": self._steps_left(total_steps)}
        return self.agent.fit(
            self.dataset,
            callbacks=[*callbacks],
            verbose=verbose,
            validation_data=validation_data,
            validation_freq=validation_freq,
            **length,
        )

    def close(self) -> None:
        """Closes the environments, if there are any."""
        self.dataset.close()

    def _epochs_left(self, total_steps: int | None) -> int:
        """Returns the Keras epochs that are left of a run on recorded data."""
        done, length = updates(self.agent), self.preset.updates
        if total_steps is not None or done >= length:
            raise ValueError(
                "Expected no `total_steps` on recorded data, and `updates` of "
                f"the preset to be more than the {done} made so far. "
                f"Received: total_steps={total_steps}, updates={length}"
            )
        return -(-(length - done) // self.dataset.steps_per_epoch)

    def _steps_left(self, total_steps: int | None) -> int:
        """Returns the environment steps that are left of a run."""
        total_steps = total_steps or self.preset.total_steps
        if total_steps <= self.agent.env_steps:
            raise ValueError(
                "Expected `total_steps` to be more than the steps taken so "
                f"far, {self.agent.env_steps}. "
                f"Received: total_steps={total_steps}"
            )
        return total_steps - self.agent.env_steps
