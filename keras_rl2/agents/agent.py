"""The base of all agents: a `keras.Model` that acts, learns and is saved."""

import abc
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Self
from typing import cast

import gymnasium
import keras
import numpy as np

from keras_rl2 import arguments
from keras_rl2 import space_configs
from keras_rl2 import spaces
from keras_rl2 import tensorflow_notes
from keras_rl2.agents import agent_state
from keras_rl2.agents import compile_arguments
from keras_rl2.agents import default_agent
from keras_rl2.agents import describing
from keras_rl2.agents import evaluating
from keras_rl2.agents import exporting
from keras_rl2.agents import finite_weights
from keras_rl2.agents import fitting
from keras_rl2.agents import from_preset
from keras_rl2.agents import network_checks
from keras_rl2.agents import round_execution
from keras_rl2.agents import saved_networks
from keras_rl2.agents import saving
from keras_rl2.agents.acting import Acting
from keras_rl2.agents.compile_arguments import CompileArguments
from keras_rl2.agents.learners import Learners
from keras_rl2.agents.normalizing import Normalizing
from keras_rl2.agents.observation_encoder import ObservationEncoder
from keras_rl2.agents.skipped_updates import DEFAULT_LIMIT
from keras_rl2.agents.skipped_updates import SkippedUpdates
from keras_rl2.array_spec import ArraySpec
from keras_rl2.data import Trajectory
from keras_rl2.data import actors
from keras_rl2.data.policy_function import PolicyFunction
from keras_rl2.distributions import Distribution
from keras_rl2.litert import LiteRTPolicy
from keras_rl2.metrics import MeanOfEach
from keras_rl2.network_inputs import Memory
from keras_rl2.observers import Observers
from keras_rl2.policy_heads import PolicyHead
from keras_rl2.policy_heads import policy_head
from keras_rl2.shapes import Tensor
from keras_rl2.target_networks import TargetNetworks
from keras_rl2.trees import Tree


class Agent(keras.Model, abc.ABC):
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
        **unknown: None: what is not an argument of the algorithm is refused.

    Raises:
        TypeError: If there is an argument that the algorithm does not take.
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
    #: Arguments of a base that an algorithm settles itself.
    arguments_not_taken: frozenset[str] = frozenset()
    #: Whether its networks may remember.
    takes_memory = False
    #: What `fit` runs in one call; None for Keras' own loop.
    round_size: round_execution.RoundSize | None = None
    train_function: Any
    #: Discount factor, which every kind of agent has.
    gamma: float

    def __init__(
        self,
        *,
        observation_space: Any = None,
        action_space: Any = None,
        seed: int | None = None,
        name: str | None = None,
        dtype: str | None = None,
        **unknown: Any,
    ) -> None:
        self.refuse_arguments(unknown)
        arguments.check_seed(seed)
        compile_arguments.check_model(name, dtype)
        learners = Learners()
        # Observations are not to lose precision before they are normalised;
        # each network casts for itself.
        with learners.unseen():
            super().__init__(name=name, dtype=dtype, autocast=False)
        self.learners = learners
        self.seed = seed
        self.env_steps = 0
        self._is_loaded = False
        self.rollouts: Any = None
        #: Updates of the next epoch that were made before it was resumed.
        self.updates_already_made = 0
        # None until the agent is bound; see `_is_bound`.
        self.observation_space = cast(gymnasium.Space[Any], None)
        self.action_space = cast(gymnasium.Space[Any], None)
        self.policy_head = cast(PolicyHead, None)
        self._requested_spaces = (
            space_configs.as_space(observation_space),
            space_configs.as_space(action_space),
        )
        self.statistics = MeanOfEach(
            self.statistics_names, totals=["skipped_updates"], name="statistics"
        )
        self.skipped = SkippedUpdates(self)
        self.target_networks = TargetNetworks()
        self.compile_arguments: CompileArguments | None = None
        self.observers = Observers[Trajectory]()
        self._acting = Acting(self, seed)

    @classmethod
    def argument_names(cls) -> list[str]:
        """Returns the arguments that the constructor takes, bases' too."""
        names = arguments.of_constructor(cls, Agent)
        return sorted(names - cls.arguments_not_taken)

    @classmethod
    def refuse_arguments(cls, given: Mapping[str, Any]) -> None:
        """Refuses arguments that the algorithm does not take."""
        arguments.refuse_unknown(cls.__name__, given, cls.argument_names())

    @classmethod
    def for_env(
        cls,
        env: Any,
        *,
        hidden: tuple[int, ...] | None = None,
        activation: str | None = None,
        normalize_observations: bool = False,
        initialization: str | None = None,
        memory: Any = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> Self:
        """Makes a compiled agent with default networks for an environment.

        Args:
            env: An environment, vector environment or id string.
            hidden: Sequence of ints or None. Widths of the hidden layers,
                after the convolutions where observations are images; None for
                the algorithm's own, or those of the convolutional network.
                Defaults to `None`.
            activation: str or None. Activation of the hidden layers; None for
                the algorithm's own. Defaults to `None`.
            normalize_observations: bool. Whether the networks begin with an
                `ObservationNormalization` layer. Defaults to `False`.
            initialization: str or None. `"orthogonal"`, with small weights in
                the last layer of an actor; `"fan_in"`, as layers of PyTorch
                start; None for the algorithm's own. Defaults to `None`.
            memory: RNN cell of Keras or None, `keras.layers.LSTMCell(128)` say.
                What the policy remembers with, of what is seen; the hidden
                layers come after it, for each output its own. See
                `keras_rl2.networks.MemoryNetwork`. Defaults to `None`.
            seed: int or None. Seeds weights, updates and `act`. Defaults to
                `None`.
            **kwargs: Hyper-parameters: all arguments of the class but networks
                and spaces, `PPO.for_env(env, clip_ratio=0.1)` say, that are
                named where the class is described. A `dtype` is that of the
                networks too.

        Returns:
            The agent. Images get a convolutional network, all else an MLP.

        Raises:
            ValueError: If a space of the environment is not supported, or an
                argument is out of range.
            TypeError: If the algorithm does not take an argument.
        """
        return default_agent.make(
            cls,
            env,
            {
                "hidden": hidden,
                "activation": _or(activation, cls.default_activation),
                "normalize_observations": normalize_observations,
                "initialization": _or(
                    initialization, cls.default_initialization
                ),
            },
            memory=memory,
            seed=seed,
            **kwargs,
        )

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

    @abc.abstractmethod
    def given_networks(self) -> dict[str, Any]:
        """Returns the networks by the constructor's argument for them."""

    @abc.abstractmethod
    def sample_action(self, observation: Any, noise: Tensor) -> Tensor:
        """Draws actions of the policy `[B, ...]` from standard noise."""

    @abc.abstractmethod
    def greedy_action(self, observation: Any) -> Tensor:
        """Returns the policy's most probable actions `[B, ...]`."""

    @property
    @abc.abstractmethod
    def acting_networks(self) -> list[keras.Model]:
        """Networks that the policy is made of."""

    @property
    def acting_variables(self) -> list[keras.Variable]:
        """Variables that acting depends on."""
        return [
            v for network in self.acting_networks for v in network.variables
        ]

    @abc.abstractmethod
    def _check_and_build(self) -> None:
        """Checks networks against the spaces and makes all variables."""

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

    @classmethod
    def make_policy_head(cls, action_space: gymnasium.Space[Any]) -> PolicyHead:
        """Returns what stands between the network and the action space."""
        return policy_head(action_space)

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

    # The spaces.

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
        if self._is_bound:
            spaces.check_same(
                type(self).__name__,
                observation=(self.observation_space, observation_space),
                action=(self.action_space, action_space),
            )
            return
        encode = ObservationEncoder(observation_space)
        spaces.check_action_space(action_space)
        head = self.make_policy_head(action_space)
        spaces.check_mask_space(observation_space, head.mask_size)
        self.encode = encode
        self.observation_space = observation_space
        self.action_space = action_space
        self.policy_head = head
        try:
            network_checks.refuse_memory(self)
            with self.learners.scope():
                self._check_and_build()
            network_checks.refuse_stateful(self)
        except Exception:
            self.policy_head = cast(PolicyHead, None)
            raise
        layers = self._learning_layers()
        self.normalizing = Normalizing(self, layers)
        self.skipped.watch(layers)
        self.built = True

    def _learning_layers(self) -> list[keras.layers.Layer]:
        """Returns all layers of the networks that are trained."""
        return network_checks.all_layers(self)

    @property
    def learns_offline(self) -> bool:
        """Whether it learns from an `OfflineDataset` too."""
        return not self.on_policy

    @property
    def observation_spec(self) -> Tree[ArraySpec]:
        """Shapes and dtypes of one observation as it is stored."""
        self._require_bound()
        return self.encode.spec

    @property
    def is_masked(self) -> bool:
        """Whether observations say which actions are allowed."""
        return spaces.is_masked(self.observation_space)

    def allowed(self, observation: Any, parameters: Tensor) -> Tensor:
        """Takes forbidden actions out of what a network gave for a head.

        Args:
            observation: `[B, ...]`. Raw observations, with a mask perhaps.
            parameters: `[B, P]`. Logits, or values of actions.

        Returns:
            `[B, P]`: the same where nothing is masked.
        """
        if not self.is_masked:
            return parameters
        mask = observation[spaces.ACTION_MASK]
        return self.policy_head.forbid(parameters, mask)

    @property
    def _is_bound(self) -> bool:
        """Whether spaces, networks and policy head are known."""
        return self.policy_head is not None

    def _require_bound(self) -> None:
        """Refuses to act before the spaces are known."""
        if not self._is_bound:
            raise ValueError(
                f"Expected a {type(self).__name__} that knows its spaces: "
                "pass `observation_space` and `action_space` to the "
                "constructor, use `for_env`, or call `fit` first. "
                "Received: an agent bound to no environment"
            )

    # Acting.

    def act(
        self,
        observation: Any,
        state: Sequence[Any] | bool | None = None,
        deterministic: bool = False,
        *,
        return_log_prob: bool = False,
    ) -> Any:
        """Chooses an action, or a batch of actions.

        Args:
            observation: `[...]` or `[B, ...]`. One raw observation or a batch;
                for a Dict or Tuple space a dict or tuple of these.
            state: tuple of `[B, ...]` or None. What an agent with memory
                remembers: at first `initial_state(B)`, then what the last call
                gave. Defaults to `None`: nothing. (A bool is taken as
                `deterministic`, which stood here before there was memory.)
            deterministic: bool. Whether to take the most probable action
                instead of a sample. Defaults to `False`.
            return_log_prob: bool. Whether to return the action's
                log-probability too, for a trajectory of your own: of just
                this action, clipped to the bounds where they clip it, as
                `train_step` computes it. Defaults to `False`.

        Returns:
            np.ndarray: the action as the environment takes it, or `[B, ...]`;
            with `return_log_prob` a tuple of that and `[]` or `[B]` float32;
            with `state` a tuple of that and the state after the step, last.

        Raises:
            ValueError: If the observation's shape is not that of the space,
                or the policy has no probabilities, or an action would not be
                finite.
        """
        self._require_bound()
        self._check_loaded()
        if isinstance(state, bool):
            deterministic, state = state, None
        arguments.check_flag(
            deterministic=deterministic, return_log_prob=return_log_prob
        )
        return self._acting.act(
            observation, state, deterministic, return_log_prob
        )

    def policy_function(
        self,
        deterministic: bool = True,
        *,
        num_envs: int | None = None,
        variables: Sequence[keras.Variable] = (),
    ) -> PolicyFunction:
        """Returns the policy as a `tf.function`, traced once.

        What `act`, actors, exported files, TensorBoard and videos run.

        Args:
            deterministic: bool. Whether it takes the most probable action.
                Defaults to `True`.
            num_envs: int or None. Observations of each call, B; None for any
                number. Defaults to `None`.
            variables: Sequence of `keras.Variable`. Whose values are to be
                given with each call, after the rest. Defaults to `()`.

        Returns:
            `tf.function` from raw observations `[B, ...]` (one argument for
            each array of them, in the order of `trees.leaves`), and unless
            `deterministic` noise `[B, *noise_shape]` of `draw_noise`, to a
            list: the policy's own actions, and last those for the
            environment, where they are others.

        Raises:
            ValueError: If the agent does not know its spaces.
        """
        self._require_bound()
        return self._acting.function(deterministic, num_envs, variables)

    # Memory.

    @property
    def memory(self) -> Memory | None:
        """The network of the policy that remembers, if there is one."""
        for network in self.acting_networks:
            if isinstance(network, Memory):
                return network
        return None

    def initial_state(self, batch_size: int) -> tuple[np.ndarray, ...]:
        """Returns what the policy remembers at the beginning of an episode.

        Args:
            batch_size: int. Episodes, B; 1 for a single observation.

        Returns:
            tuple of `[B, ...]`, for `act`; empty if it remembers nothing.
        """
        memory = self.memory
        if memory is None:
            return ()
        return tuple(map(np.asarray, memory.initial_state(batch_size)))

    def policy_step(
        self, observation: Any, begins: Tensor, state: Sequence[Tensor]
    ) -> tuple[Distribution, Sequence[Tensor]]:
        """Returns the policy of one step and the state after it, in a graph.

        Of an agent that can remember: the distribution of actions, and a
        sequence alike `state`.

        Args:
            observation: `[B, ...]`. Raw observations.
            begins: `[B]` float32. 1 where an episode begins.
            state: Sequence of `[B, ...]`. As of `initial_state`.

        Raises:
            ValueError: If the agent is of a kind that cannot remember.
        """
        raise ValueError(
            "Expected an agent that can remember; the actions of others are "
            "those of `sample_action` and `greedy_action`. "
            f"Received: {type(self).__name__}"
        )

    @property
    def noise_shape(self) -> tuple[int, ...]:
        """Shape of the noise of one action."""
        return self.policy_head.noise_shape

    def draw_noise(
        self,
        generator: np.random.Generator,
        shape: tuple[int, ...],
        state: Any = None,
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

    # Keras' own verbs.

    def compile(
        self,
        optimizer: Any = "auto",
        *,
        critic_optimizer: Any = None,
        steps_per_execution: int | str = "auto",
        jit_compile: bool | str = "auto",
        max_skipped_updates: int | None = DEFAULT_LIMIT,
        **kwargs: Any,
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
            **kwargs: `run_eagerly` and `auto_scale_loss`, bools as of
                `keras.Model.compile`.

        Raises:
            ValueError: If an argument is not one for an agent, or a learning
                rate is not finite.
        """
        given = CompileArguments(
            optimizer,
            critic_optimizer,
            steps_per_execution,
            jit_compile,
            max_skipped_updates,
            **kwargs,
        )
        with self.learners.scope():
            super().compile(
                optimizer=given.make_optimizer(self),
                steps_per_execution=given.first_steps_per_execution,
                jit_compile=given.jit_compile,
                **given.keras,
            )
        # Not before: a `compile` that failed changes nothing.
        self.compile_arguments = given

    def get_compile_config(self) -> dict[str, Any] | None:
        """Returns the arguments of `compile` as plain data."""
        if self.compile_arguments is None:
            return None
        return self.compile_arguments.get_config()

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles as `get_compile_config` said, with built optimizers."""
        self.compile(**CompileArguments.from_config(config))
        if self.built:
            with self.learners.scope():
                self.optimizer.build(self.trainable_variables)

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

    def fit(
        self,
        x: Any = None,
        *,
        epochs: int | None = None,
        total_steps: int | None = None,
        callbacks: Any = None,
        validation_data: Any = None,
        validation_freq: int = 1,
        initial_epoch: int = 0,
        verbose: int | str = "auto",
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Trains on rollouts; see `keras.Model.fit`.

        Args:
            x: `keras_rl2.RolloutDataset` or `ReplayDataset`; or a
                `tf.data.Dataset` of minibatch dicts.
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
            **kwargs: `shuffle`; where `x` is a `tf.data.Dataset`, all else
                that `keras.Model.fit` takes.

        Returns:
            `keras.callbacks.History`.

        Raises:
            ValueError: If the agent's networks or spaces do not fit the
                environment, or the numbers do not fit each other.
            FloatingPointError: If so many updates in a row as `compile` was
                told were skipped, since something was not finite.
        """
        self._check_loaded()
        return fitting.fit(
            self,
            super().fit,
            x,
            epochs=epochs,
            total_steps=total_steps,
            callbacks=callbacks,
            validation_data=validation_data,
            validation_freq=validation_freq,
            initial_epoch=initial_epoch,
            verbose=verbose,
            **kwargs,
        )

    def make_train_function(self, force: bool = False) -> Any:
        """Makes what `fit` calls: one call of TensorFlow for a whole round."""
        force = force or self.target_networks.retrace
        if self.train_function is not None and not force:
            return self.train_function
        if self.run_eagerly or self.round_size is None:
            self.learners.refuse_keras_loop()
            # Keeps what it makes, and returns nothing.
            super().make_train_function(force=force)
            made = round_execution.checked(self, self.train_function)
        else:
            made = round_execution.round_function(self, self.round_size)
        self.train_function = round_execution.resuming(self, made)
        return self.train_function

    def evaluate(self, x: Any = None, **kwargs: Any) -> dict[str, float]:
        """Plays episodes greedily and returns what they gave.

        Args:
            x: An environment, an id string, or an `EvaluationDataset`; an
                `OfflineDataset`, from which the return is estimated.
            **kwargs: Arguments of an `EvaluationDataset` (only with an
                environment): `episodes`, `deterministic`, `num_envs`, `seed`,
                `env_kwargs`, `wrappers`, `step_timeout`; of an
                `OfflineEvaluation` (only with an `OfflineDataset`):
                `updates`, `deterministic`, `seed`; and Keras' `verbose`,
                `return_dict` and `callbacks`, which change nothing.

        Returns:
            dict: `episode_return`, `episode_return_std`, `episode_length`; of
            an `OfflineDataset` what `OfflineEvaluation` names.
        """
        self._check_loaded()
        return evaluating.evaluate(self, x, **kwargs)

    def export(
        self,
        filepath: Any,
        format: str = "tf_saved_model",
        *,
        deterministic: bool = True,
        **kwargs: Any,
    ) -> None:
        """Exports the policy: raw observations in, actions out.

        Args:
            filepath: str or path. Where to write.
            format: str. A format of `keras.Model.export`. Defaults to
                `"tf_saved_model"`.
            deterministic: bool. Whether the most probable action is taken. If
                not, standard noise `[B, *noise_shape]`, as of `draw_noise`,
                is a second input. Defaults to `True`.
            **kwargs: `verbose`, `input_signature` and what the format's writer
                takes; see [`keras.Model.export`](
                https://keras.io/api/models/model_saving_apis/export/).

        Raises:
            ValueError: If a weight of the policy is not finite; nothing is
                written then.
        """
        self._require_bound()
        arguments.check_path(filepath=filepath)
        arguments.check_text(format=format)
        arguments.check_flag(deterministic=deterministic)
        finite_weights.refuse_non_finite(self, "export", self.acting_variables)
        # A converter has some, too.
        with tensorflow_notes.left_out():
            exporting.export(self, filepath, format, deterministic, **kwargs)

    def litert_policy(self) -> LiteRTPolicy | None:
        """Returns the greedy policy for processes without TensorFlow.

        Returns:
            `LiteRTPolicy`, with the present weights; None where the policy
            does not convert.
        """
        self._require_bound()
        return actors.litert_policy(self)

    def summary(
        self,
        line_length: int | None = None,
        positions: Any = None,
        print_fn: Callable[[str], object] | None = None,
        **kwargs: Any,
    ) -> None:
        """Prints what the agent is, and Keras' table of its layers.

        Algorithm, spaces, hyper-parameters and optimizers come first.

        Args:
            line_length: int or None. As of `keras.Model.summary`, and where
                our own lines are broken. Defaults to `None`.
            positions: As of `keras.Model.summary`. Defaults to `None`.
            print_fn: Callable or None. Is given the text of either part; None
                to print it. Defaults to `None`.
            **kwargs: `expand_nested`, `show_trainable` and `layer_range` of
                [`keras.Model.summary`](
                https://keras.io/api/models/model/#summary-method).

        Example:

        >>> import keras_rl2 as rl
        >>> agent = rl.A2C.for_env("CartPole-v1", seed=0)
        >>> agent.summary(line_length=60)
        Agent: A2C (on-policy)
        Observation space: Box(...
        Action space: Discrete(2)
        Hyper-parameters: seed=0, gamma=0.99, gae_lambda=1, ...
        Optimizer: ... (learning_rate=...)
        Environment steps: 0
        Model: "a2c"
        ...
        """
        (print_fn or print)(describing.describe(self, line_length))
        super().summary(
            line_length=line_length,
            positions=positions,
            print_fn=print_fn,
            **kwargs,
        )

    # Saving.

    def save(self, filepath: Any, *args: Any, **kwargs: Any) -> None:
        """Saves the agent as `keras.Model.save` does, whole or not at all.

        What was there stays until the new file is on the disk. A `.keras`
        file is sealed, so that `keras_rl2.load` finds damage.

        Args:
            filepath: str or path. Where to write, a `.keras` file.
            *args: As of `keras.Model.save`, in its order.
            **kwargs: `overwrite`, bool, and `zipped`, bool or None, of
                [`keras.Model.save`](
                https://keras.io/api/models/model_saving_apis/model_saving_and_loading/).

        Raises:
            ValueError: If a network could not be made again when it is
                loaded, or a weight is not finite; nothing is written then.
            OSError: If it cannot be written.
        """
        finite_weights.refuse_non_finite(self, "save")
        saved_networks.check_can_be_loaded(self.given_networks())
        saving.save(super().save, filepath, *args, **kwargs)

    def save_weights(self, filepath: Any, *args: Any, **kwargs: Any) -> None:
        """Saves weights as `keras.Model.save_weights`, whole or not at all.

        Args:
            filepath: str or path. Where to write, a `.weights.h5` file.
            *args: As of `keras.Model.save_weights`, in its order.
            **kwargs: `overwrite`, bool, and `max_shard_size`, float or None,
                of `keras.Model.save_weights`.

        Raises:
            ValueError: If a weight is not finite; nothing is written then.
            OSError: If they cannot be written.
        """
        finite_weights.refuse_non_finite(self, "save")
        saving.save_weights(super().save_weights, filepath, *args, **kwargs)

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

    def load_weights(self, filepath: Any, *args: Any, **kwargs: Any) -> None:
        """Loads weights as `keras.Model.load_weights` does.

        Args:
            filepath: str or path. A `.weights.h5` or `.keras` file.
            *args: As of `keras.Model.load_weights`, in its order.
            **kwargs: `skip_mismatch`, bool, and `objects_to_skip` of
                `keras.Model.load_weights`.

        Raises:
            ValueError: If a weight of the file is not finite; all weights are
                then what they were before.
        """
        before = finite_weights.values_of(self)
        super().load_weights(filepath, *args, **kwargs)
        try:
            self._check_loaded()
        except ValueError:
            finite_weights.put_back(before)
            raise

    def _check_loaded(self) -> None:
        """Refuses weights that were loaded and are not finite.

        Keras says when the first of them are loaded, not when all are: those
        of a whole file are looked at when they are used.
        """
        if self._is_loaded:
            self._is_loaded = False
            finite_weights.refuse_non_finite(self, "go on with the loaded")

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


def _or(given: Any, default: Any) -> Any:
    """Returns what was given, or what stands for None."""
    return default if given is None else given
