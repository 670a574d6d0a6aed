"""Training as a preset says."""

from collections.abc import Iterable
from typing import Any

import keras

from keras_rl2 import agents
from keras_rl2 import presets
from keras_rl2.callbacks import TargetNetworkSync
from keras_rl2.data import ReplayDataset
from keras_rl2.data import RolloutDataset
from keras_rl2.envs import as_vector_env
from keras_rl2.exploration import GaussianNoise
from keras_rl2.presets import Preset
from keras_rl2.presets.kinds import is_schedule


class Training:
    """An agent and all that its training takes, made from a preset.

    What `run` does is `agent.fit(dataset, total_steps=..., callbacks=...)`:
    take the parts and go on with them as you like.

    Args:
        preset: `keras_rl2.presets.Preset`. The settings.
        agent: `keras_rl2.Agent`. Compiled.
        dataset: `RolloutDataset` or `ReplayDataset`. What it is trained on.
        callbacks: list of `keras.callbacks.Callback`. Those of the preset.
            Defaults to none.

    Attributes:
        env_id: str. Id of the environment, or the name of its class.
        total_steps: int. Environment steps of the run.

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
        agent: Any,
        dataset: Any,
        callbacks: Iterable[Any] = (),
    ) -> None:
        self.preset = preset
        self.agent = agent
        self.dataset = dataset
        self.callbacks = list(callbacks)
        self.env_id = preset.environment
        self.total_steps = preset.total_steps

    @classmethod
    def from_preset(
        cls,
        preset: Preset,
        *,
        env: Any = None,
        num_envs: int | None = None,
        seed: int | None = None,
    ) -> "Training":
        """Makes the agent and the dataset that a preset describes.

        With another number of environments than the preset's, a minibatch is
        at most the rollout, and a round of a replay is made longer until each
        environment takes as many steps. `preset` of the training is what was
        made.

        Args:
            preset: `keras_rl2.presets.Preset`. The settings.
            env: An environment, vector environment or id string instead of
                the preset's. Defaults to `None`.
            num_envs: int or None. Environments to make of an id; None for as
                many as the preset says. Defaults to `None`.
            seed: int or None. Seeds agent and dataset. Defaults to `None`.

        Returns:
            `Training`.

        Raises:
            ValueError: If a setting does not fit the environment.
        """
        if env is None:
            env = preset.environment
        if isinstance(env, str):
            name = env
            wanted = preset.num_envs if num_envs is None else num_envs
            env = as_vector_env(env, num_envs=wanted)
        else:
            env = as_vector_env(
                env, num_envs=1 if num_envs is None else num_envs
            )
            name = env.name
        preset = _fitted(preset, name, env.num_envs)
        kind = RolloutDataset if _on_policy(preset) else ReplayDataset
        dataset = kind(env, seed=seed, **preset.dataset)
        return cls(
            preset,
            _make_agent(preset, dataset, seed),
            dataset,
            []
            if preset.target_sync is None
            else [TargetNetworkSync(**preset.target_sync)],
        )

    @classmethod
    def default(
        cls,
        algorithm: str,
        env: Any,
        *,
        num_envs: int | None = None,
        seed: int | None = None,
    ) -> "Training":
        """Makes the training of an algorithm with its own defaults.

        For an environment that there is no preset for: 100 000 steps.

        Args:
            algorithm: str. Its name, in upper or lower case.
            env: An environment, vector environment or id string.
            num_envs: int or None. Environments to make of an id; None for 1.
                Defaults to `None`.
            seed: int or None. Seeds agent and dataset. Defaults to `None`.

        Returns:
            `Training`.

        Raises:
            ValueError: If there is no such algorithm, or it does not apply to
                the environment.
        """
        name = env if isinstance(env, str) else as_vector_env(env).name
        preset = presets.default(algorithm, name)
        return cls.from_preset(preset, env=env, num_envs=num_envs, seed=seed)

    def run(
        self,
        callbacks: Iterable[Any] = (),
        verbose: Any = 0,
        total_steps: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Trains until the agent has taken all steps of the run.

        Schedules are those of a run of the preset's length, wherever this
        one ends.

        Args:
            callbacks: Iterable of `keras.callbacks.Callback`, beside the
                training's own. Defaults to none.
            verbose: As of `keras.Model.fit`. Defaults to `0`.
            total_steps: int or None. Environment steps of the agent's life to
                end at, in whole epochs; None for those of the preset. Defaults
                to `None`.
            **kwargs: Further arguments of `fit`: `validation_data`, say.

        Returns:
            `keras.callbacks.History`.

        Raises:
            ValueError: If the agent has taken as many steps already.
        """
        if total_steps is None:
            total_steps = self.total_steps
        if total_steps <= self.agent.env_steps:
            raise ValueError(
                "Expected `total_steps` to be more than the steps taken so "
                f"far, {self.agent.env_steps}. "
                f"Received: total_steps={total_steps}"
            )
        return self.agent.fit(
            self.dataset,
            total_steps=total_steps - self.agent.env_steps,
            callbacks=[*self.callbacks, *callbacks],
            verbose=verbose,
            **kwargs,
        )


def _on_policy(preset: Preset) -> bool:
    """Says whether an algorithm learns from rollouts."""
    return bool(getattr(agents, preset.algorithm).on_policy)


def _fitted(preset: Preset, environment: str, num_envs: int) -> Preset:
    """Returns a preset for as many environments as there are."""
    settings = {"environment": environment, "num_envs": num_envs}
    if _on_policy(preset):
        size = preset.dataset.get("batch_size")
        if isinstance(size, int) and "horizon" in preset.dataset:
            steps = preset.dataset["horizon"] * num_envs
            settings["dataset.batch_size"] = min(size, steps)
        return preset.with_settings(settings)
    steps = preset.dataset.get("steps_per_round")
    if steps is not None and steps % num_envs:
        longer = -(-steps // num_envs) * num_envs
        settings["dataset.steps_per_round"] = longer
        updates = preset.dataset.get("updates_per_round")
        if updates is not None:
            updates = max(round(updates * longer / steps), 1)
            settings["dataset.updates_per_round"] = updates
    return preset.with_settings(settings)


def _make_agent(preset: Preset, dataset: Any, seed: int | None) -> Any:
    """Makes and compiles the agent of a preset."""
    kind = getattr(agents, preset.algorithm)
    updates = _updates(preset, dataset, kind)
    settings = {
        name: _present(
            value, updates if name == "clip_ratio" else preset.total_steps
        )
        for name, value in preset.agent.items()
    }
    if is_schedule(preset.agent.get("exploration")):
        settings["exploration"] = GaussianNoise(settings["exploration"])
    agent = kind.for_env(dataset.env, seed=seed, **preset.networks, **settings)
    if preset.optimizer:
        _compile(agent, preset.optimizer, updates)
    return agent


def _compile(agent: Any, settings: dict[str, Any], updates: int | None) -> None:
    """Compiles an agent with the optimizer of a preset."""
    if agent.compile_arguments.critic_optimizer is None:
        agent.compile(_optimizer(settings, updates))
        return
    delay = getattr(agent, "policy_delay", 1)
    # Each counts its own updates, of which a delayed actor has fewer.
    agent.compile(
        _optimizer(settings, updates and updates // delay, "actor"),
        critic_optimizer=_optimizer(settings, updates, "critic"),
    )


def _optimizer(
    settings: dict[str, Any], updates: int | None, name: str | None = None
) -> keras.optimizers.Optimizer:
    """Makes the optimizer of a preset."""
    arguments = {
        key: _present(value, updates)
        for key, value in settings.items()
        if key != "name"
    }
    if name is not None:
        arguments["name"] = name
    return getattr(keras.optimizers, settings["name"])(**arguments)


def _updates(preset: Preset, dataset: Any, kind: Any) -> int | None:
    """Returns the updates of the run; None where rounds differ in length."""
    if kind.whole_episodes:
        return None
    per_round = dataset.updates_per_round
    if not per_round:
        # Left to the algorithm, which the dataset is not bound to yet.
        updates = round(kind.updates_per_step * dataset.steps_per_round)
        per_round = max(updates, 1)
    steps = max(preset.total_steps - dataset.steps_before_first_round, 1)
    rounds = -(-steps // dataset.steps_per_round)
    return int(rounds * per_round)


def _present(value: Any, length: int | None) -> Any:
    """Returns a setting as its constructor takes it.

    Args:
        value: Plain data.
        length: int or None. What a whole run counts, for schedules.
    """
    if not is_schedule(value):
        return value
    if length is None:
        raise ValueError(
            "Expected a number where rounds are whole episodes, so that nobody "
            f"knows how many updates there will be. Received: {value}"
        )
    steps = max(round(value.get("fraction", 1.0) * length), 1)
    return keras.optimizers.schedules.PolynomialDecay(
        value["initial"], steps, value["final"]
    )
