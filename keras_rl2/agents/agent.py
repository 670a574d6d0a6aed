"""The base of all agents: a `keras.Model` that acts, learns and is saved."""

import abc
from typing import Any

import keras
import numpy as np

from keras_rl2 import presets
from keras_rl2.agents import compiling
from keras_rl2.agents import exporting
from keras_rl2.agents import fitting
from keras_rl2.agents import presetting
from keras_rl2.agents.acting import Acting
from keras_rl2.agents.bound_model import BoundModel
from keras_rl2.data import EvaluationDataset
from keras_rl2.data import Trajectory
from keras_rl2.metrics import MeanOfEach
from keras_rl2.observers import Observers
from keras_rl2.shapes import Tensor


class Agent(BoundModel):
    """Base class of agents.

    An agent knows batches, never an environment's steps. A subclass gives its
    loss in `train_step`, its targets in `prepare`, and its policy in
    `sample_action` and `greedy_action`. All else is Keras.

    Args:
        observation_space: `gymnasium.Space` or its config. What is observed;
            None to learn it from the first environment. Defaults to `None`.
        action_space: `gymnasium.Space` or its config. What can be done; None
            to learn it from the first environment. Defaults to `None`.
        seed: int or None. Seeds the sampling of `act`. Defaults to `None`.
        name: str or None. Name of the model. Defaults to `None`.
        dtype: str or None. Keras dtype policy, `"mixed_float16"` say; None for
            the global one. Defaults to `None`.
    """

    #: Whether it learns from rollouts of its present policy, not from replay.
    on_policy = True
    #: Whether rollouts are whole episodes, begun anew each round.
    whole_episodes = False
    #: Whether a round of a single update may skip `prepare`.
    learns_from_trajectories = False
    #: Names of the scalars that `train_step` reports.
    statistics_names: tuple[str, ...] = ("loss",)
    #: What `fit` runs in one call; None for Keras' own loop.
    round_size: fitting.RoundSize | None = None
    train_function: Any

    def __init__(
        self,
        *,
        observation_space: Any = None,
        action_space: Any = None,
        seed: int | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        super().__init__(
            observation_space=observation_space,
            action_space=action_space,
            seed=seed,
            name=name,
            dtype=dtype,
        )
        self.env_steps = 0
        self.rollouts: Any = None
        self.statistics = MeanOfEach(self.statistics_names, name="statistics")
        self.observers = Observers[Trajectory]()
        self._acting = Acting(self, seed)

    @classmethod
    def from_preset(
        cls,
        preset: Any,
        *,
        env: Any = None,
        num_envs: int | None = None,
        seed: int | None = None,
    ) -> Any:
        """Makes a compiled agent with settings that are known to work.

        Networks, constants, optimizer and schedules are those of the preset.
        `keras_rl2.Training.from_preset` makes the dataset and the sync of
        target networks as well, and trains as the preset says.

        Args:
            preset: str or `keras_rl2.presets.Preset`. Id of an environment
                that the algorithm has a preset for; or a preset, with changes
                of your own perhaps.
            env: An environment, vector environment or id string instead of
                the preset's. Defaults to `None`.
            num_envs: int or None. Environments that the agent will be trained
                on, which the length of schedules depends on; None for as many
                as the preset says. Defaults to `None`.
            seed: int or None. Seeds weights, updates and `act`. Defaults to
                `None`.

        Returns:
            The agent.

        Raises:
            ValueError: If there is no such preset, or it is one of another
                algorithm.

        Example:

        >>> import keras_rl2 as rl
        >>> agent = rl.PPO.from_preset("CartPole-v1", seed=0)
        >>> agent.gamma, agent.gae_lambda
        (0.98, 0.8)
        """
        if isinstance(preset, str):
            preset = presets.find(presetting.algorithm_of(cls), preset)
        if preset.algorithm != presetting.algorithm_of(cls):
            raise ValueError(
                f"Expected a preset for {presetting.algorithm_of(cls)}. "
                f"Received: one for {preset.algorithm}"
            )
        _, agent, _ = presetting.make(cls, preset, env, num_envs, seed)
        return agent

    # What a subclass gives.

    @abc.abstractmethod
    def sample_action(self, observation: Tensor, noise: Tensor) -> Tensor:
        """Draws actions of the policy `[B, ...]` from standard noise."""

    @abc.abstractmethod
    def greedy_action(self, observation: Tensor) -> Tensor:
        """Returns the policy's most probable actions `[B, ...]`."""

    @property
    @abc.abstractmethod
    def acting_variables(self) -> list[Any]:
        """Variables that acting depends on."""

    # Acting.

    def act(
        self, observation: Any, deterministic: bool = False
    ) -> np.ndarray | Any:
        """Chooses an action, or a batch of actions.

        Args:
            observation: `[...]` or `[B, ...]`. One raw observation or a batch.
            deterministic: bool. Whether to take the most probable action
                instead of a sample. Defaults to `False`.

        Returns:
            np.ndarray: the action as the environment takes it, or `[B, ...]`.

        Raises:
            ValueError: If the observation's shape is not that of the space.
        """
        self._require_bound()
        return self._acting(observation, deterministic)

    def environment_action(
        self, observation: Tensor, noise: Tensor | None = None
    ) -> Tensor:
        """Returns actions as the environment takes them, in the graph.

        Args:
            observation: `[B, ...]`. Raw observations.
            noise: `[B, *noise_shape]` float32. As of `draw_noise`;
                None for the most probable action. Defaults to `None`.

        Returns:
            `[B, ...]`. Actions within the action space.
        """
        if noise is None:
            action = self.greedy_action(observation)
        else:
            action = self.sample_action(observation, noise)
        return self.policy_head.to_environment(action)

    # Keras' own verbs.

    def compile(self, optimizer: Any = "auto", **kwargs: Any) -> None:
        """Sets the optimizer; see `keras.Model.compile`.

        Args:
            optimizer: `keras.optimizers.Optimizer`, its name, or `"auto"` for
                the algorithm's own. Defaults to `"auto"`.
            **kwargs: `critic_optimizer` for a second optimizer where the
                agent has a separate critic; `steps_per_execution` (by default
                the updates of a round); further arguments of Keras.
        """
        arguments = compiling.Arguments(optimizer=optimizer, **kwargs)
        super().compile(
            optimizer=arguments.make_optimizer(self),
            steps_per_execution=arguments.first_steps_per_execution,
            jit_compile=arguments.jit_compile,
            **arguments.keras,
        )
        # Not before: a `compile` that failed changes nothing.
        self.compile_arguments = arguments

    def get_compile_config(self) -> dict[str, Any]:
        """Returns the arguments of `compile` as plain data."""
        return self.compile_arguments.get_config()

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles as `get_compile_config` said, with built optimizers."""
        self.compile(**compiling.arguments_from_config(config))
        if self.built:
            self.optimizer.build(self.trainable_variables)

    def default_optimizer(self) -> keras.optimizers.Optimizer:
        """Returns the optimizer that `compile("auto")` uses."""
        return keras.optimizers.Adam(3e-4)

    @property
    def metrics(self) -> list[Any]:
        """What Keras resets each epoch and shows."""
        return [self.statistics]

    def fit(self, x: Any = None, **kwargs: Any) -> Any:
        """Trains on rollouts; see `keras.Model.fit`.

        Args:
            x: `keras_rl2.RolloutDataset`, or a `tf.data.Dataset` of minibatch
                dicts.
            **kwargs: `epochs` or `total_steps` (environment steps of this
                call; the resets of NEXT_STEP environments count as such),
                `callbacks`, `validation_data` (an `EvaluationDataset`),
                `validation_freq`, `initial_epoch`; `verbose`, 0, 1 and 2 as
                of Keras, and `"auto"`, the default, for the line of
                `keras_rl2.callbacks.Progress`; and Keras' own when `x` is a
                `tf.data.Dataset`.

        Returns:
            `keras.callbacks.History`.

        Raises:
            ValueError: If the agent's networks or spaces do not fit the
                environment, or the numbers do not fit each other.
        """
        return fitting.fit(self, super().fit, x, **kwargs)

    def make_train_function(self, force: bool = False) -> Any:
        """Makes what `fit` calls: one call of TensorFlow for a whole round."""
        if self.train_function is not None and not force:
            return self.train_function
        if self.run_eagerly or self.round_size is None:
            return super().make_train_function(force=force)
        made = fitting.round_function(self, self.round_size)
        self.train_function = made
        return made

    def evaluate(self, x: Any = None, **kwargs: Any) -> dict[str, float]:
        """Plays episodes greedily and returns what they gave.

        Args:
            x: An environment, an id string, or an `EvaluationDataset`.
            **kwargs: `episodes`, `deterministic`, `seed`, `num_envs` as in
                `EvaluationDataset` (only with an environment); `verbose`.

        Returns:
            dict: `episode_return`, `episode_return_std`, `episode_length`.
        """
        for ignored in ("verbose", "return_dict", "callbacks"):
            kwargs.pop(ignored, None)
        if not isinstance(x, EvaluationDataset):
            x = EvaluationDataset(x, **kwargs)
        elif kwargs:
            raise ValueError(
                "Expected no further arguments with an `EvaluationDataset`, "
                f"which holds them itself. Received: {sorted(kwargs)}"
            )
        results: dict[str, float] = x.play(self)
        return results

    def export(
        self, filepath: Any, format: str = "tf_saved_model", **kwargs: Any
    ) -> None:
        """Exports the greedy policy: raw observations in, actions out.

        Args:
            filepath: str or path. Where to write.
            format: str. A format of `keras.Model.export`. Defaults to
                `"tf_saved_model"`.
            **kwargs: Further arguments of `keras.Model.export`.
        """
        self._require_bound()
        exporting.export(self, filepath, format, **kwargs)

    # The round.

    @property
    def noise_shape(self) -> tuple[int, ...]:
        """Shape of the noise of one action."""
        shape: tuple[int, ...] = self.policy_head.noise_shape
        return shape

    def draw_noise(
        self, generator: np.random.Generator, shape: Any, state: Any = None
    ) -> tuple[np.ndarray, Any]:
        """Draws the noise that `sample_action` turns into actions.

        Args:
            generator: NumPy generator.
            shape: Leading shape, `(T, B)` or `(B,)`.
            state: What the last call gave, for noise that goes on from there.
                Defaults to `None`.

        Returns:
            `[*shape, *noise_shape]` float32, and the state, plain data.
        """
        return self.policy_head.draw_noise(generator, shape), state

    def observe(self, trajectory: Trajectory) -> None:
        """Is given each `Trajectory` once, for statistics of observations."""
        self.normalizing.observe(trajectory)
        self.observers(trajectory)

    def begin_round(self) -> None:
        """Is called before each rollout, when weights may still change."""
        self.normalizing.commit()

    # Saving.

    def save_own_variables(self, store: Any) -> None:
        """Saves the count of environment steps with the weights."""
        super().save_own_variables(store)
        store["env_steps"] = np.array(self.env_steps, np.int64)

    def load_own_variables(self, store: Any) -> None:
        """Loads what `save_own_variables` saved."""
        # The store of Keras has `keys` but cannot be iterated over.
        values = {key: store[key] for key in list(store.keys())}
        self.env_steps = int(np.array(values.pop("env_steps", 0)))
        super().load_own_variables(values)
