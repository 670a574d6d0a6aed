"""The base of all agents: a `keras.Model` that is trained by `fit`."""

import abc
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Literal
from typing import Self

import gymnasium
import keras

from keras_rl2.agents import describing
from keras_rl2.agents.batch_model import BatchModel
from keras_rl2.basics import arguments
from keras_rl2.basics.outliers import Outliers
from keras_rl2.basics.shapes import Tensor
from keras_rl2.data import Trajectory
from keras_rl2.envs import EnvWrapper
from keras_rl2.metrics import MeanOfEach
from keras_rl2.networks import network_builder as default_agent
from keras_rl2.networks import network_checks
from keras_rl2.networks.network_builder import as_given
from keras_rl2.spaces.space_configs import GivenSpace
from keras_rl2.training import compile_arguments
from keras_rl2.training import evaluating
from keras_rl2.training import fitting
from keras_rl2.training import from_preset
from keras_rl2.training import overriding
from keras_rl2.training import round_execution
from keras_rl2.training.compile_arguments import CompileArguments
from keras_rl2.training.compile_arguments import GivenOptimizer
from keras_rl2.training.fit_alone import fit_alone
from keras_rl2.updates.normalizing import Normalizing
from keras_rl2.updates.observers import Observers
from keras_rl2.updates.skipped_updates import DEFAULT_LIMIT
from keras_rl2.updates.skipped_updates import SkippedUpdates
from keras_rl2.updates.target_networks import TargetNetworks
from keras_rl2.updates.trained_variables import TrainedVariables
from keras_rl2.updates.updating import minibatch_of


class Agent(BatchModel):
    """Base class of agents.

    An agent knows batches, never an environment's steps. A subclass names its
    networks, gives its loss terms and its policy, in `sample_action` and
    `greedy_action`. All else is Keras.

    Args:
        observation_space: `gymnasium.Space` or its config. What is observed;
            None to learn it from the first environment. Defaults to `None`.
        action_space: `gymnasium.Space` or its config. What can be done; None
            to learn it from the first environment. Defaults to `None`.
        seed: int or None. Seeds the sampling of `act`. Defaults to `None`.
        name: str or None. Name of the model. Defaults to `None`.
        dtype: str or None. Keras dtype policy, `"mixed_float16"` say; None for
            the global one. Defaults to `None`.

    Raises:
        TypeError: If there is an argument that the algorithm does not take.

    Example:

    >>> import keras_rl2 as rl
    >>> agent = rl.A2C.for_env("CartPole-v1", hidden=(8,), seed=0)
    >>> isinstance(agent, rl.Agent), isinstance(agent, keras.Model)
    (True, True)
    >>> agent.act([0.0, 0.0, 0.0, 0.0]) in (0, 1)
    True
    """

    #: Whether it learns from rollouts of its present policy, not from replay.
    on_policy = True
    #: Whether rollouts are whole episodes, begun anew each round.
    whole_episodes = False
    #: Whether a round of a single update may skip `prepare`.
    learns_from_trajectories = False
    #: Names of the scalars that `train_step` reports.
    statistics_names: tuple[str, ...] = ("loss",)
    #: Hidden layers of networks that `for_env` makes, and how they start.
    default_hidden: tuple[int, ...] = (64, 64)
    default_activation = "tanh"
    default_initialization = "orthogonal"
    default_layer_normalization = False
    #: Whether its networks may remember.
    takes_memory = False
    #: Classes of action spaces that it acts in; `gymnasium.Space` for all that
    #: the library supports. Where it is some, a Box has to have finite bounds.
    action_kinds: tuple[type[gymnasium.Space[Any]], ...] = (gymnasium.Space,)
    #: What `fit` runs in one call; None for Keras' own loop.
    round_size: round_execution.RoundSize | None = None
    train_function: Any
    #: Discount factor, which every kind of agent has.
    gamma: float

    def __init__(
        self,
        *,
        observation_space: GivenSpace | None = None,
        action_space: GivenSpace | None = None,
        seed: int | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        arguments.check_seed(seed)
        compile_arguments.check_model(name, dtype)
        super().__init__(observation_space, action_space, seed, name, dtype)
        self.rollouts: Any = None
        #: The same while `fit` runs, else None.
        self.rounds_of_fit: Any = None
        #: Updates of the next epoch that were made before it was resumed.
        self.updates_already_made = 0
        self.statistics = MeanOfEach(
            self.statistics_names, totals=["skipped_updates"], name="statistics"
        )
        self.skipped = SkippedUpdates(self)
        self.trained = TrainedVariables(self)
        self.target_networks = TargetNetworks()
        self.compile_arguments: CompileArguments | None = None
        self.observers = Observers[Trajectory]()

    @classmethod
    @as_given
    def for_env(
        cls,
        env: Any,
        *,
        hidden: Sequence[int] | None = None,
        activation: str | None = None,
        normalize_observations: bool = False,
        layer_normalization: bool | None = None,
        initialization: Literal["orthogonal", "fan_in"] | None = None,
        memory: keras.layers.Layer | None = None,
        seed: int | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> Self:
        """Makes a compiled agent with default networks for an environment.

        Args:
            env: An environment, vector environment, id string or function
                that makes an environment.
            hidden: Sequence of ints or None. Widths of the hidden layers,
                after the convolutions where observations are images; None for
                the algorithm's own, or those of the convolutional network.
                Defaults to `None`.
            activation: str or None. Activation of the hidden layers; None for
                the algorithm's own. Defaults to `None`.
            normalize_observations: bool. Whether the networks begin with an
                `ObservationNormalization` layer. Defaults to `False`.
            layer_normalization: bool or None. Whether a
                `keras.layers.LayerNormalization` stands before the activation
                of each hidden layer; None for the algorithm's own. Defaults to
                `None`.
            initialization: str or None. `"orthogonal"`, with small weights in
                the last layer of an actor; `"fan_in"`, as layers of PyTorch
                start; None for the algorithm's own. Defaults to `None`.
            memory: RNN cell of Keras or None, `keras.layers.LSTMCell(128)` say.
                What the policy remembers with, of what is seen; the hidden
                layers come after it, for each output its own. See
                `keras_rl2.networks.MemoryNetwork`. Defaults to `None`.
            seed: int or None. Seeds weights, updates and `act`. Defaults to
                `None`.
            name: str or None. Name of the model. Defaults to `None`.
            dtype: str or None. Keras dtype policy of the agent and its
                networks, `"mixed_float16"` say; None for the global one.
                Defaults to `None`.

        Returns:
            The agent. Images get a convolutional network, all else an MLP.

        Raises:
            ValueError: If a space of the environment is not supported, or an
                argument is out of range.
            TypeError: If the algorithm does not take an argument.
        """
        raise NotImplementedError

    @classmethod
    def from_preset(
        cls,
        preset: Any,
        *,
        env: Any = None,
        num_envs: int | None = None,
        seed: int | None = None,
    ) -> Self:
        """Makes a compiled agent with settings that are known to work.

        `keras_rl2.Training.from_preset` makes the dataset as well.

        Args:
            preset: str or `keras_rl2.presets.Preset`. Id of an environment
                that the algorithm has a preset for; or a preset.
            env: An environment, vector environment or id string instead of
                the preset's. Defaults to `None`.
            num_envs: int or None. Environments that it will be trained on,
                which the length of schedules depends on; None for the
                preset's. Defaults to `None`.
            seed: int or None. As of `for_env`. Defaults to `None`.

        Returns:
            The agent.

        Raises:
            ValueError: If there is no such preset of the algorithm.

        Example:

        >>> import keras_rl2 as rl
        >>> agent = rl.PPO.from_preset("CartPole-v1", seed=0)
        >>> agent.gamma, agent.gae_lambda
        (0.98, 0.8)
        """
        chosen = from_preset.preset_of(cls, preset)
        _, agent, _ = from_preset.make(cls, chosen, env, num_envs, seed)
        return agent

    # What a subclass gives.

    @classmethod
    @abc.abstractmethod
    def default_networks(
        cls, build: "default_agent.NetworkBuilder", **settings: Any
    ) -> tuple[Any, ...]:
        """Makes the networks that `for_env` gives to the constructor.

        Args:
            build: `NetworkBuilder`. Makes networks for the spaces.
            **settings: Arguments of the constructor, as they were given.
        """

    @classmethod
    def for_action_space(
        cls, action_space: gymnasium.Space[Any]
    ) -> "type[Agent]":
        """Returns the class of agents for an action space: mostly, this one.

        Args:
            action_space: `gymnasium.Space`. Of a single environment.
        """
        del action_space
        return cls

    def values_of_taken(
        self, observation: Any, action: Tensor, training: bool = False
    ) -> list[Tensor]:
        """Returns what each critic thinks of actions, nothing without one.

        Args:
            observation: `[B, ...]`. Raw observations.
            action: `[B, ...]`. The agent's own actions.
            training: bool. Passed on to the critics. Defaults to `False`.

        Returns:
            list of `[B]` float32, one for each critic.
        """
        del observation, action, training
        return []

    # The networks.

    def _build(self) -> None:
        """Makes all that depends on the spaces, which are set."""
        network_checks.refuse_memory(self)
        super()._build()
        network_checks.refuse_stateful(self)
        layers = self._learning_layers()
        self.normalizing = Normalizing(self, layers)
        self.skipped.watch(layers)

    def _learning_layers(self) -> list[keras.layers.Layer]:
        """Returns all layers of the networks that are trained."""
        return network_checks.all_layers(self)

    @property
    def learns_offline(self) -> bool:
        """Whether it learns from an `OfflineDataset` too."""
        return not self.on_policy

    def observe(self, trajectory: Trajectory) -> None:
        """Is given each `Trajectory` once, for statistics of observations."""
        self.normalizing.observe(trajectory)
        self.observers(trajectory)

    @property
    def outliers(self) -> dict[str, Outliers]:
        """Observations that statistics did not follow, by a key of the logs.

        Nothing where no network keeps any.
        """
        if not self.normalizing.changing:
            return {}
        return {"clipped_observations": self.normalizing.outliers}

    def begin_round(self) -> None:
        """Is called before each rollout, when weights may still change."""
        self.normalizing.commit()

    # Keras' own verbs.

    def _compile(self, optimizer: Any = "auto", **given_arguments: Any) -> None:
        """Does what `compile` says."""
        overriding.refuse_unheard(self)
        given = CompileArguments(optimizer, **given_arguments)
        with self.learners.scope():
            super().compile(
                optimizer=given.make_optimizer(self),
                steps_per_execution=given.first_steps_per_execution,
                jit_compile=given.jit_compile,
                **given.keras,
            )
        # Not before: a `compile` that failed changes nothing.
        self.compile_arguments = given
        self.trained.forget()

    @arguments.standing_for(_compile)
    def compile(
        self,
        optimizer: GivenOptimizer = "auto",
        *,
        critic_optimizer: GivenOptimizer | None = None,
        steps_per_execution: int | Literal["auto"] = "auto",
        jit_compile: bool | Literal["auto"] = "auto",
        max_skipped_updates: int | None = DEFAULT_LIMIT,
        run_eagerly: bool = False,
        auto_scale_loss: bool = True,
    ) -> None:
        """Sets the optimizer; see `keras.Model.compile`.

        Args:
            optimizer: `keras.optimizers.Optimizer`, its name, or `"auto"` for
                the algorithm's own. Defaults to `"auto"`.
            critic_optimizer: Optimizer, its name, or `"auto"` for one like
                `optimizer`: a second one, where the agent has a separate
                critic. Defaults to `None`.
            steps_per_execution: int, or `"auto"` for the updates of a round.
                Updates of one call of TensorFlow. Defaults to `"auto"`.
            jit_compile: bool, or `"auto"` to let XLA compile whole rounds of
                small networks. Defaults to `"auto"`.
            max_skipped_updates: int or None. How many updates in a row may be
                skipped since a gradient or a learning rate was not finite;
                None for any number. Defaults to `1000`.
            run_eagerly: bool. As of `keras.Model.compile`. Defaults to
                `False`.
            auto_scale_loss: bool. As of `keras.Model.compile`. Defaults to
                `True`.

        Raises:
            ValueError: If an argument is not one for an agent, or a learning
                rate is not finite.
            TypeError: If the class overrides a method of Keras that training
                an agent does not call.
        """
        raise NotImplementedError

    def get_compile_config(self) -> dict[str, Any] | None:
        """Returns the arguments of `compile` as plain data."""
        if self.compile_arguments is None:
            return None
        return self.compile_arguments.get_config()

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles as `get_compile_config` said, with built optimizers."""
        self.compile(**CompileArguments.from_config(config))
        if self.built:
            self.build_optimizer()

    def build_optimizer(self) -> None:
        """Makes what the optimizer remembers, unless that has been made."""
        # Keras' LossScaleOptimizer would make its own variables once more.
        if not self.optimizer.built:
            with self.learners.scope():
                self.optimizer.build(self.trainable_variables)
            self.trained.keep_optimized()

    def default_optimizer(self) -> keras.optimizers.Optimizer:
        """Returns the optimizer that `compile("auto")` uses."""
        return keras.optimizers.Adam(3e-4)

    @property
    def metrics(self) -> list[keras.metrics.Metric]:
        """What Keras resets each epoch and shows."""
        return [self.statistics]

    def _logs(
        self, terms: dict[str, Tensor], counted: Tensor
    ) -> dict[str, Tensor]:
        """Keeps the scalars of an update that counts, and returns the logs."""
        self.statistics.update_state(terms, counted)
        logs: dict[str, Tensor] = self.get_metrics_result()
        return logs

    def _minibatch(self, data: Any) -> dict[str, Tensor]:
        """Returns a minibatch for an update, if there can be one."""
        self._require_bound()
        if not self.compiled:
            raise ValueError(
                "Expected `compile` before an update, which needs an "
                f"optimizer. Received: a {type(self).__name__} without one"
            )
        overriding.refuse_losses_of_keras(self)
        return minibatch_of(data)

    def _fit(self, x: Any = None, **given: Any) -> keras.callbacks.History:
        """Does what `fit` says."""
        with fit_alone(self):
            self.check_loaded()
            return fitting.fit(self, super().fit, x, **given)

    @arguments.standing_for(_fit)
    def fit(
        self,
        x: Any = None,
        *,
        epochs: int | None = None,
        total_steps: int | None = None,
        callbacks: fitting.GivenCallbacks = None,
        validation_data: Any = None,
        validation_freq: int = 1,
        initial_epoch: int = 0,
        verbose: int | Literal["auto"] = "auto",
        shuffle: bool = False,
        steps_per_epoch: int | None = None,
    ) -> keras.callbacks.History:
        """Trains on rollouts; see `keras.Model.fit`.

        Args:
            x: `keras_rl2.RolloutDataset` or `ReplayDataset`; or a
                `tf.data.Dataset` of minibatch dicts. Defaults to `None`.
            epochs: int or None. Keras epochs; None for 1. Defaults to `None`.
            total_steps: int or None. Environment steps of this call instead of
                epochs, rounded up to whole epochs, or to whole rounds where
                they are less than one epoch; the resets of NEXT_STEP
                environments count as such. Defaults to `None`.
            callbacks: `keras.callbacks.Callback`, or an iterable of them, or
                None. Defaults to `None`.
            validation_data: `keras_rl2.EvaluationDataset`, an environment or
                its id, or None. What is played after epochs. Defaults to
                `None`.
            validation_freq: int. Epochs from one time to the next. Defaults to
                `1`.
            initial_epoch: int. Where epochs are counted from. Defaults to `0`.
            verbose: 0, 1 and 2 as of Keras; `"auto"` for the line of
                `keras_rl2.callbacks.Progress`. Defaults to `"auto"`.
            shuffle: bool. As of Keras, and without a meaning: datasets of
                rounds shuffle their minibatches. Defaults to `False`.
            steps_per_epoch: int or None. As of Keras, only where `x` is a
                `tf.data.Dataset`. Defaults to `None`.

        Returns:
            `keras.callbacks.History`.

        Raises:
            ValueError: If the agent's networks or spaces do not fit the
                environment, or the numbers do not fit each other; or within a
                `tf.function`.
            FloatingPointError: If so many updates in a row as `compile` was
                told were skipped, since something was not finite.
            RuntimeError: If another `fit` of the agent has not ended.
        """
        raise NotImplementedError

    def make_train_function(self, force: bool = False) -> Any:
        """Makes what `fit` calls: one call of TensorFlow for a whole round."""
        retrace = self.target_networks.retrace
        force = self.trained.keep_traced() or retrace or force
        if self.train_function is not None and not force:
            return self.train_function
        if self.built:
            # Made within the first update, the optimizer's variables would
            # have TensorFlow trace that one twice.
            self.build_optimizer()
        if self.run_eagerly or self.round_size is None:
            self.learners.refuse_keras_loop()
            # Keeps what it makes, and returns nothing.
            super().make_train_function(force=force)
            made = round_execution.checked(self, self.train_function)
        else:
            made = round_execution.round_function(self, self.round_size)
        self.train_function = round_execution.resuming(self, made)
        return self.train_function

    @arguments.standing_for(evaluating.evaluate)
    def evaluate(
        self,
        x: Any = None,
        *,
        episodes: int = 10,
        deterministic: bool = True,
        num_envs: int = 1,
        seed: int | None = None,
        env_kwargs: Mapping[str, Any] | None = None,
        wrappers: Sequence[EnvWrapper] = (),
        step_timeout: float | None = None,
        updates: int = 5000,
        verbose: int | Literal["auto"] = "auto",
        return_dict: bool = True,
        callbacks: Any = None,
    ) -> dict[str, float]:
        """Plays episodes greedily and returns what they gave.

        All arguments but Keras' are those of the `EvaluationDataset` that is
        made of an environment, and without a meaning where `x` is one. Those
        of an `OfflineDataset` are `updates`, `deterministic` and `seed`.

        Args:
            x: An environment, an id string, or an `EvaluationDataset`; an
                `OfflineDataset`, from which the return is estimated. Defaults
                to `None`.
            episodes: int. Episodes to play. Defaults to `10`.
            deterministic: bool. Whether the mode of the policy is taken
                instead of a sample. Defaults to `True`.
            num_envs: int. Environments to make when `env` is an id or a
                function. Defaults to `1`.
            seed: int or None. Seeds environments and sampling, the same for
                every evaluation; None for other episodes each time. Defaults
                to `None`.
            env_kwargs: dict or None. Arguments of the environments that are
                made of an id, as `gymnasium.make` takes them. Defaults to
                `None`.
            wrappers: sequence of functions from a `gymnasium.Env` to another
                one, applied to each environment that is made of an id.
                Defaults to `()`.
            step_timeout: float or None. Seconds that a step may take, of a
                `gymnasium.vector.AsyncVectorEnv`: nothing can interrupt one in
                this process. Defaults to `None`: as long as it likes.
            updates: int. Of the networks that estimate from an
                `OfflineDataset`; see `OfflineEvaluation`. Defaults to `5000`.
            verbose: int or str. As of Keras; there is nothing to show.
                Defaults to `"auto"`.
            return_dict: bool. As of Keras; it always is one. Defaults to
                `True`.
            callbacks: As of Keras; there are no batches. Defaults to `None`.

        Returns:
            dict: `episode_return`, `episode_return_std`, `episode_length`; of
            an `OfflineDataset` what `OfflineEvaluation` names.
        """
        raise NotImplementedError

    def summary(
        self,
        line_length: int | None = None,
        positions: Any = None,
        print_fn: Callable[[str], object] | None = None,
        expand_nested: bool = False,
        show_trainable: bool = False,
        layer_range: Sequence[str] | None = None,
    ) -> None:
        """Prints what the agent is, and Keras' table of its layers.

        Algorithm, spaces, hyper-parameters and optimizers come first.

        Args:
            line_length: int or None. As of `keras.Model.summary`, and where
                our own lines are broken. Defaults to `None`.
            positions: As of `keras.Model.summary`. Defaults to `None`.
            print_fn: Callable or None. Is given the text of either part; None
                to print it. Defaults to `None`.
            expand_nested: bool. As of [`keras.Model.summary`](
                https://keras.io/api/models/model/#summary-method). Defaults to
                `False`.
            show_trainable: bool. As of it. Defaults to `False`.
            layer_range: Sequence of two str or None. As of it. Defaults to
                `None`.

        Example:

        >>> import keras_rl2 as rl
        >>> agent = rl.A2C.for_env("CartPole-v1", seed=0)
        >>> agent.summary(line_length=60)
        Agent: A2C (on-policy)
        Observation space: Box(...
        Action space: Discrete(2)
        Hyper-parameters: seed=0, ... gamma=0.99, ...
        Optimizer: ... (learning_rate=...)
        Environment steps: 0
        Model: "a2c...
        ...
        """
        (print_fn or print)(describing.describe(self, line_length))
        super().summary(
            line_length=line_length,
            positions=positions,
            print_fn=print_fn,
            expand_nested=expand_nested,
            show_trainable=show_trainable,
            layer_range=layer_range,
        )
