"""The base of all agents: a `keras.Model` that is trained by `fit`."""

import abc
import contextlib
import functools
import os
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any
from typing import Concatenate
from typing import Literal
from typing import ParamSpec
from typing import Self
from typing import TypedDict
from typing import TypeVar
from typing import Unpack
from typing import cast
from typing import overload

import gymnasium
import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf
from keras import ops

from keras_rl2.agents import agent_config
from keras_rl2.agents import binding
from keras_rl2.basics import arguments
from keras_rl2.basics import inherited_arguments
from keras_rl2.basics import replicas
from keras_rl2.basics import seeds
from keras_rl2.basics.direct_call import on_device
from keras_rl2.basics.inherited_arguments import Described
from keras_rl2.basics.inherited_arguments import making
from keras_rl2.basics.outliers import Outliers
from keras_rl2.basics.shapes import Tensor
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.data.plan import Plan
from keras_rl2.data.round_dataset import RoundDataset
from keras_rl2.distributions import PolicyHead
from keras_rl2.distributions import policy_head
from keras_rl2.envs.making import EnvWrapper
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.exploration import PolicyNoise
from keras_rl2.networks import checks as network_checks
from keras_rl2.networks.builder import NetworkBuilder
from keras_rl2.networks.building import NORMALIZATIONS
from keras_rl2.networks.network_options import NetworkOptions
from keras_rl2.policies.policy import Policy
from keras_rl2.policies.policy import of_policy
from keras_rl2.presets import Preset
from keras_rl2.spaces import space_configs
from keras_rl2.spaces.space_configs import GivenSpace
from keras_rl2.spaces.trees import Tree
from keras_rl2.training import agent_state
from keras_rl2.training import overriding
from keras_rl2.training.compile_arguments import CompileArguments
from keras_rl2.training.compile_arguments import GivenCallbacks
from keras_rl2.training.compile_arguments import GivenOptimizer
from keras_rl2.training.devices import Devices
from keras_rl2.training.overriding import Overridden
from keras_rl2.training.rounds import KerasRound
from keras_rl2.training.rounds import Round
from keras_rl2.updates import skipped_updates
from keras_rl2.updates.mean_of_each import MeanOfEach
from keras_rl2.updates.observing import Normalizing
from keras_rl2.updates.skipped_updates import DEFAULT_LIMIT
from keras_rl2.updates.skipped_updates import SkippedUpdates
from keras_rl2.updates.target_networks import TargetNetworks
from keras_rl2.updates.updater import Batch
from keras_rl2.updates.updater import Objective
from keras_rl2.updates.updater import Terms
from keras_rl2.updates.updater import Updater
from keras_rl2.updates.updater import minibatch_of
from keras_rl2.updates.updater import nothing_to_train

if TYPE_CHECKING:
    from keras_rl2.export.export_check import ExportCheck

Made = TypeVar("Made")
Given = ParamSpec("Given")

# Arguments of `keras.Model.compile` and `fit`, and what is there instead.
_NOT_COMPILED = dict.fromkeys(
    ("loss", "metrics", "weighted_metrics", "loss_weights"),
    "what the algorithm defines",
)
_NOT_FITTED = {
    "y": "one dataset: actions and returns come from the environment",
    "batch_size": "`batch_size` of the dataset",
    "validation_steps": "`episodes` of the `EvaluationDataset`",
    "validation_batch_size": "`num_envs` of the `EvaluationDataset`",
    "validation_split": "`validation_data`, an `EvaluationDataset`",
    "class_weight": "no weights of classes: there are none",
    "sample_weight": "`weight` of each minibatch, from the dataset",
}

# Callbacks ask an agent that is not bound yet.
_NO_SPACE = cast(gymnasium.Space[Any], None)


class AgentArguments(TypedDict, total=False):
    """Arguments that all agents take, for type checkers.

    Those of `for_env` are among them, which has the others of a constructor.
    """

    gamma: float
    observation_space: GivenSpace | None
    action_space: GivenSpace | None
    seed: int | None
    name: str | None
    dtype: str | None
    # Of `for_env` alone.
    network: Literal["simba"] | None
    hidden: Sequence[int] | None
    activation: str | None
    normalize_observations: bool
    normalization: Literal["none", "layer", "batch", "spectral"] | None
    initialization: Literal["orthogonal", "fan_in"] | None
    critic_dropout: float | None
    critic_sees: str | Sequence[str] | None
    memory: keras.layers.Layer | None
    shared: bool | None
    state_dependent_noise: bool | float
    resample_every: int | None
    data_format: Literal["channels_first", "channels_last"] | None
    device: str | None


class Agent(Described, keras.Model, abc.ABC):
    """Base class of agents.

    An agent processes batches and never steps an environment. A subclass
    defines its networks, its loss terms and its policy, in `sample_action` and
    `greedy_action`. The rest is Keras.

    Args:
        gamma: float. Discount factor. Defaults to `0.99`.
        max_gradient_norm: float or None. Global norm to which gradients are
            clipped; None for no clipping. Defaults to `None`.
        observation_space: `gymnasium.Space` or its config. Space of one
            environment's observations; None to take it from the first
            environment. Defaults to `None`.
        action_space: `gymnasium.Space` or its config. Space of one
            environment's actions; None to take it from the first environment.
            Defaults to `None`.
        seed: int or None. Seeds the random numbers of `act` and of
            updates. Defaults to `None`.
        name: str or None. Name of the model. Defaults to `None`.
        dtype: str or None. Keras dtype policy, such as `"mixed_float16"`; None
            for the global one. Defaults to `None`.

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

    #: Supported classes of action spaces; `gymnasium.Space` for all that the
    #: library supports. Otherwise a Box must have finite bounds.
    action_kinds: tuple[type[gymnasium.Space[Any]], ...] = (gymnasium.Space,)
    #: Whether the policy's own actions of a Box are within -1 ... 1.
    squashes = False
    #: Units of a Gaussian's actions, `"half_range"` or `"environment"`.
    action_units = "environment"
    #: Whether it learns from rollouts of its current policy, not from replay.
    on_policy = True
    #: Whether rollouts consist of whole episodes, started in each round.
    whole_episodes = False
    #: Whether a round of a single update may skip `prepare`.
    learns_from_trajectories = False
    #: Names of the scalars that `train_step` reports.
    statistics_names: tuple[str, ...] = ("loss",)
    #: Hidden layers of the networks of `for_env`, and their initialization.
    default_hidden: tuple[int, ...] = (64, 64)
    default_activation = "tanh"
    default_initialization = "orthogonal"
    default_normalization = "none"
    #: Normalizations of `for_env`.
    normalizations: tuple[str, ...] = NORMALIZATIONS
    #: Whether its networks may have layers that count rows.
    takes_batch_normalization = True
    #: Arguments of the Adam that `compile("auto")` makes.
    default_adam: Mapping[str, Any] = {"learning_rate": 3e-4}
    #: Whether `compile` always makes an optimizer of the critics' own.
    has_critic_optimizer = False
    #: Whether it supports recurrent networks.
    takes_memory = False
    #: Whether the networks of `for_env` can have common layers.
    takes_shared = False
    #: Whether the actor of `for_env` may have noise that depends on the state.
    takes_state_dependent_noise = False
    #: Whether the networks of `for_env` can be those of SimBa.
    takes_network = True
    #: Whether it has critics that `for_env` can make with dropout.
    takes_critic_dropout = False
    #: Whether `for_env` can make critics that see more than the actor.
    takes_critic_sees = False
    #: Attributes of arguments that are kept under another name, by argument,
    #: for `get_config`.
    argument_attributes: Mapping[str, str] = {}
    #: Arguments that `for_env` finds out itself, beside positional ones.
    made_arguments = frozenset(
        {
            *("actor", "critic", "q_network", "value_network"),
            *("observation_space", "action_space"),
        }
    )
    #: Floats that agents with one program may differ in; see `train_seeds`.
    shared_numbers: tuple[str, ...] = ("gamma",)
    #: Set by Keras.
    steps_per_execution: int
    #: The way of the last `fit` of making rounds.
    rounds: Round | None = None
    train_function: Any
    predict_function: Any
    #: Number of environment steps observed.
    env_steps = 0
    #: Number of updates on recorded data alone.
    offline_updates = 0
    #: The methods of training that a custom class overrides.
    overridden: Overridden
    #: Statistics of observations.
    normalizing: Normalizing
    compile_arguments: CompileArguments | None = None
    #: The dataset of the last `fit`.
    rollouts: Any = None
    _is_loaded = False
    #: Attributes that the functions of the last `fit` were traced with.
    traced: tuple[Any, ...] | None = None
    _optimized: frozenset[int] = frozenset()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Lets the whole constructor end before the agent is bound."""
        super().__init_subclass__(**kwargs)
        definer = next(each for each in cls.__mro__ if "__init__" in vars(each))
        if definer is cls or not issubclass(definer, Agent):
            kind: Any = cls
            kind.__init__ = binding.then_bound(kind.__init__)

    @binding.then_bound
    def __init__(
        self,
        *,
        gamma: float = 0.99,
        max_gradient_norm: float | None = None,
        observation_space: GivenSpace | None = None,
        action_space: GivenSpace | None = None,
        seed: int | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        arguments.check_seed(seed)
        arguments.check_in_range(gamma=(gamma, 0.0, 1.0))
        if max_gradient_norm is not None:
            arguments.check_in_range(
                max_gradient_norm=(max_gradient_norm, 1e-12, np.inf)
            )
        arguments.check_known(
            lambda each: "/" not in each,
            "a string without `/`, or None",
            **arguments.present(name=name),
        )
        arguments.check_known(
            keras.dtype_policies.get,
            "a dtype policy of Keras, e.g. 'mixed_float16', or None",
            dtype=dtype,
        )
        learners = Devices()
        # Observations must not lose precision before they are normalised;
        # each network casts its own inputs.
        with learners.unseen():
            super().__init__(name=name, dtype=dtype, autocast=False)
        self.devices = learners
        self.seed = seed
        self._policy: Policy | None = None
        self._requested_spaces = (
            space_configs.as_space(observation_space),
            space_configs.as_space(action_space),
        )
        self._generator = seeds.generator(seed)
        self.gamma = gamma
        self.max_gradient_norm = max_gradient_norm
        self.statistics = MeanOfEach(
            self.statistics_names, totals=["skipped_updates"], name="statistics"
        )
        self.skipped = SkippedUpdates(self)
        self._updater = Updater(self)
        self.target_networks = TargetNetworks()
        #: Functions that are called with each trajectory.
        self.observers: set[Callable[[Trajectory], object]] = set()

    @overload
    @classmethod
    def for_env(
        cls: Callable[[], Made],
        env: GivenEnv,
        **settings: Unpack[AgentArguments],
    ) -> Made: ...

    @overload
    @classmethod
    def for_env(
        cls: Callable[Concatenate[Any, Given], Made],
        env: GivenEnv,
        *none: Given.args,
        **settings: Given.kwargs,
    ) -> Made: ...

    @overload
    @classmethod
    def for_env(
        cls: Callable[Concatenate[Any, Any, Given], Made],
        env: GivenEnv,
        *none: Given.args,
        **settings: Given.kwargs,
    ) -> Made: ...

    @overload
    @classmethod
    def for_env(
        cls: Callable[Concatenate[Any, Any, Any, Given], Made],
        env: GivenEnv,
        *none: Given.args,
        **settings: Given.kwargs,
    ) -> Made: ...

    # Above, for type checkers: what the constructor takes after the networks.
    @making(NetworkOptions)
    @classmethod
    def for_env(
        cls: Any,
        env: GivenEnv,
        *,
        device: str | None = None,
        seed: int | None = None,
        **settings: Any,
    ) -> Any:
        """Makes a compiled agent with default networks for an environment.

        Args:
            env: An environment, vector environment, id string or function
                that makes an environment.
            device: str or None. Device of the agent and its updates, for
                example `"cpu:0"`; None for the present one, which is the first
                GPU if there is one. Defaults to `None`.
            seed: int or None. Seeds weights, updates and `act`. Defaults to
                `None`.
            **settings: Further arguments of the constructor, and those of
                `keras_rl2.networks.network_options.NetworkOptions`.

        Returns:
            The agent. Images are processed by a convolutional network, other
            observations by an MLP.

        Raises:
            ValueError: If a space is not supported, an argument is out of
                range, or the algorithm supports no `memory` or `shared`.
            TypeError: If the algorithm does not take an argument.
        """
        if "learning_rate" in settings:
            raise TypeError(
                "Expected the learning rate in "
                "`agent.compile(keras.optimizers.Adam(1e-3))`. Received: "
                f"learning_rate={settings['learning_rate']!r}"
            )
        names = {*cls.argument_names(), *AgentArguments.__annotations__}
        arguments.refuse_unknown(
            cls.__name__, settings, names - cls.made_arguments
        )
        arguments.check_seed(seed)
        dtype = keras.dtype_policies.get(
            settings.get("dtype") or keras.config.dtype_policy()
        )
        if dtype.variable_dtype == "bfloat16":
            # Its decay of 0.999 is 1 in bfloat16, and so all updates are 0.
            raise ValueError(
                "Expected weights that Adam can train, as with "
                "dtype='mixed_bfloat16'. Received: weights in bfloat16"
            )
        # Whoever gives networks and spaces needs no environment.
        from keras_rl2.envs.adapt import as_vector_env

        adapter = as_vector_env(env)
        observation_space, action_space = (
            adapter.observation_space,
            adapter.action_space,
        )
        kind = cls.for_action_space(action_space)
        names = settings.keys() & NetworkOptions.__annotations__.keys()
        options = NetworkOptions(**{name: settings.pop(name) for name in names})
        build = NetworkBuilder(
            *(observation_space, kind.make_policy_head(action_space)),
            *(options.completed(kind, observation_space), kind.default_hidden),
            *(seed, settings.get("dtype")),
        )
        taken = inherited_arguments.constructor(kind).parameters.values()
        defaults = {
            p.name: p.default for p in taken if p.kind is p.KEYWORD_ONLY
        }
        with keras.device(device) if device else contextlib.nullcontext():
            agent = kind(
                *kind.default_networks(build, **{**defaults, **settings}),
                observation_space=observation_space,
                action_space=action_space,
                seed=seed,
                **settings,
            )
            agent.compile()
        return agent

    @classmethod
    def from_preset(
        cls,
        preset: str | Preset,
        *,
        env: GivenEnv | None = None,
        num_envs: int | None = None,
        seed: int | None = None,
    ) -> Self:
        """Makes a compiled agent with tested settings.

        `keras_rl2.Training.from_preset` makes the dataset as well.

        Args:
            preset: str or `keras_rl2.presets.Preset`. Id of an environment for
                which the algorithm has a preset; or a preset.
            env: An environment, vector environment or id string that replaces
                the preset's. Defaults to `None`.
            num_envs: int or None. Number of environments to train on, on which
                the length of schedules depends; None for the preset's, or for
                that of an existing `env`. Defaults to `None`.
            seed: int or None. See `for_env`. Defaults to `None`.

        Returns:
            The agent.

        Raises:
            ValueError: If the algorithm has no such preset.

        Example:

        >>> import keras_rl2 as rl
        >>> agent = rl.PPO.from_preset("CartPole-v1", seed=0)
        >>> agent.gamma, agent.gae_lambda
        (0.98, 0.8)
        """
        from keras_rl2.training import from_preset

        chosen = from_preset.preset_of(cls, preset)
        _, agent, _ = from_preset.make(cls, chosen, env, num_envs, seed)
        return agent

    @abc.abstractmethod
    def sample_action(self, observation: Tree[Tensor], noise: Tensor) -> Tensor:
        """Draws actions of the policy `[B, ...]` from its noise `[B, n]`."""

    @abc.abstractmethod
    def greedy_action(self, observation: Tree[Tensor]) -> Tensor:
        """Returns the policy's most probable actions `[B, ...]`."""

    @abc.abstractmethod
    def given_networks(self) -> dict[str, Any]:
        """Returns the networks, keyed by constructor argument."""

    @property
    def acting_networks(self) -> list[keras.Model]:
        """Networks of the policy: by default, the first that is given."""
        return [next(iter(self.given_networks().values()))]

    @property
    def acting_variables(self) -> list[keras.Variable]:
        """Variables that acting depends on."""
        return [v for each in self.acting_networks for v in each.variables]

    @abc.abstractmethod
    def build_networks(self) -> None:
        """Checks networks against the spaces and makes all variables.

        It is called once, when the constructor has ended and the spaces are
        known: `self.policy` holds them.
        """

    @classmethod
    def make_policy_head(
        cls, action_space: gymnasium.Space[Any], scaled: bool = False
    ) -> PolicyHead:
        """Returns the policy head of an action space, if it is supported."""
        if gymnasium.Space not in cls.action_kinds:
            network_checks.check_action_kind(
                cls, action_space, cls.action_kinds
            )
        return policy_head(action_space, squash=cls.squashes, scaled=scaled)

    @classmethod
    @abc.abstractmethod
    def default_networks(
        cls, build: NetworkBuilder, **settings: Any
    ) -> tuple[Any, ...]:
        """Makes the default networks of `for_env`.

        Args:
            build: `NetworkBuilder`. Makes networks for the spaces.
            **settings: Arguments of the constructor.
        """

    @classmethod
    def for_action_space(
        cls, action_space: gymnasium.Space[Any]
    ) -> "type[Agent]":
        """Returns the class of agents for an action space; by default this one.

        Args:
            action_space: `gymnasium.Space`. Of a single environment.
        """
        del action_space
        return cls

    def values_of_taken(
        self, observation: Tree[Tensor], action: Tensor, training: bool = False
    ) -> list[Tensor]:
        """Returns each critic's Q-values of the given actions.

        Args:
            observation: `[B, ...]`. Raw observations.
            action: `[B, ...]`. The agent's own actions.
            training: bool. Passed on to the critics. Defaults to `False`.

        Returns:
            list of `[B]` float32, one for each critic; empty without critics.
        """
        del observation, action, training
        return []

    def objectives(self) -> dict[str, Objective]:
        """Returns the losses that an update minimises, keyed by name.

        All gradients are computed with the weights before the update. `update`
        returns each loss as `<name>_loss`, and their sum as `loss`; those in
        `statistics_names` are logged.

        Raises:
            NotImplementedError: If the class defines none; it then needs its
                own `train_step`.
        """
        raise NotImplementedError(
            f"Expected {type(self).__name__} to define `objectives`, or a "
            "`train_step` of its own. Received: a class with neither"
        )

    bind = binding.bind

    @property
    def policy(self) -> Policy:
        """The policy: its spaces, and all that acts by it.

        Its `encode(observation)` returns the inputs of the networks, its `head`
        makes distributions of actions from outputs of networks, and `is_masked`
        says whether observations contain an action mask.

        Raises:
            ValueError: If it is not bound to an environment's spaces yet.
        """
        if self._policy is None:
            raise ValueError(
                f"Expected a {type(self).__name__} that knows its spaces: "
                "pass `observation_space` and `action_space` to the "
                "constructor, use `for_env`, or call `fit` first. "
                "Received: an agent bound to no environment"
            )
        return self._policy

    @property
    def observation_space(self) -> gymnasium.Space[Any]:
        """The space of one environment's observations; None until bound."""
        return self._policy.observation_space if self._policy else _NO_SPACE

    @property
    def action_space(self) -> gymnasium.Space[Any]:
        """The space of one environment's actions; None until bound."""
        return self._policy.action_space if self._policy else _NO_SPACE

    act = of_policy(Policy.act)
    initial_state = of_policy(Policy.initial_state)

    @arguments.refusing_unknown
    def export(
        self,
        filepath: str | os.PathLike[str],
        format: str = "tf_saved_model",
        *,
        deterministic: bool = True,
        quantize: Literal["float16", "int8"] | None = None,
        representative: Tree[npt.ArrayLike] | None = None,
        batch_size: int | None = None,
        verbose: bool | None = None,
        input_signature: Any = None,
        opset_version: int | None = None,
        optimizations: Sequence[Any] | None = None,
        representative_dataset: Callable[[], Any] | None = None,
        target_spec: Mapping[str, Any] | None = None,
        inference_input_type: Any = None,
        inference_output_type: Any = None,
    ) -> None:
        """Exports the policy: raw observations in, actions out.

        Args:
            filepath: str or path. Where to write.
            format: str. `"tf_saved_model"`, `"onnx"`, `"litert"` or
                `"openvino"`, see `keras.Model.export`. The first three hold a
                manifest; see `keras_rl2.read_manifest`. Defaults to
                `"tf_saved_model"`.
            deterministic: bool. Whether the file returns the most probable
                action. If not, `[B, n]` of `noise` is its second
                input. Defaults to `True`.
            quantize: str or None. For `"litert"`: `"float16"` keeps weights in
                16 bits; `"int8"` keeps weights and computes in 8 bits, which
                costs some of the return. Defaults to `None`.
            representative: `[N, ...]` or None. For `"int8"`, some hundreds of
                observations, by which ranges are chosen, for example of
                `keras_rl2.record`. Defaults to `None`.
            batch_size: int or None. Number of observations per call; 1 for
                microcontrollers and browsers, where LiteRT requires a fixed
                number. Defaults to `None`: any number.
            verbose: bool or None. See [`keras.Model.export`](
                https://keras.io/api/models/model_saving_apis/export/). None
                for no output. Defaults to `None`.
            input_signature: See `keras.Model.export`; None for the policy's
                own inputs. Defaults to `None`.
            opset_version: int or None. For `"onnx"`: version of its operator
                set. Defaults to `None`.
            optimizations: Sequence of `tf.lite.Optimize` or None. For
                `"litert"`, as are the following arguments; see
                `tf.lite.TFLiteConverter`. Defaults to `None`.
            representative_dataset: Callable or None. Defaults to `None`.
            target_spec: dict or None. Defaults to `None`.
            inference_input_type: dtype or None. Defaults to `None`.
            inference_output_type: dtype or None. Defaults to `None`.

        Raises:
            ImportError: If a package that writes the format is not installed.
            OSError: If the file cannot be written.
            TypeError: If `"tf_saved_model"` or `"onnx"` does not take an
                argument.
            ValueError: If a weight of the policy is not finite, arguments
                contradict each other or the format, or the format lacks an
                operation of the policy; nothing is written then.
        """
        arguments.check_path(filepath=filepath)
        skipped_updates.refuse_non_finite(self, "export", self.acting_variables)
        # Agents that only train do not import it.
        from keras_rl2.export import exporting

        exporting.Export(
            *(self.policy.acting, filepath, format, deterministic, quantize),
            *(representative, batch_size),
        ).write(
            **arguments.present(
                verbose=verbose,
                input_signature=input_signature,
                opset_version=opset_version,
                optimizations=optimizations,
                representative_dataset=representative_dataset,
                target_spec=target_spec,
                inference_input_type=inference_input_type,
                inference_output_type=inference_output_type,
            ),
        )

    @arguments.refusing_unknown
    def check_export(
        self,
        filepath: str | os.PathLike[str],
        env: GivenEnv,
        *,
        tolerance: float | None = None,
        loss: float = 0.1,
        episodes: int = 10,
        num_envs: int = 1,
        seed: int | None = 0,
        env_kwargs: Mapping[str, Any] | None = None,
    ) -> "ExportCheck":
        """Compares an exported policy with this agent.

        Both choose an action for each observation of the agent's episodes;
        then the file plays the same number of episodes itself, in environments
        with the same seeds.

        Args:
            filepath: str or path. A file written by `export`; it is run, so
                check files that you trust.
            env: An environment or id string.
            tolerance: float or None. Maximum difference between numbers of an
                action, and maximum share of observations with another choice;
                None for 1e-4, or 1e-2 of a `"float16"` file. An `"int8"` file
                is then judged by its return. Defaults to `None`.
            loss: float. Maximum relative drop of the return of an `"int8"`
                file, as a share of the agent's return. Defaults to `0.1`.
            episodes: int. Episodes to play. Defaults to `10`.
            num_envs: int. Environments to make when `env` is an id or a
                function. Defaults to `1`.
            seed: int or None. Seeds environments and sampling, the same for
                every evaluation; None for other episodes each time. Defaults
                to `0`.
            env_kwargs: dict or None. Arguments of the environments that are
                made of an id, as `gymnasium.make` takes them. Defaults to
                `None`.

        Returns:
            `keras_rl2.agents.ExportCheck`: the measured differences, and
            `passed`.

        Raises:
            ValueError: If the file was made for other spaces, or an argument
                is out of range.
        """
        from keras_rl2.export.export_check import check_export

        return check_export(
            self.policy,
            filepath,
            env,
            tolerance=tolerance,
            loss=loss,
            episodes=episodes,
            num_envs=num_envs,
            seed=seed,
            env_kwargs=env_kwargs,
        )

    @property
    def noise(self) -> PolicyNoise:
        """The noise that `sample_action` turns into actions, at present."""
        return self.policy.head.noise

    def begin_training(self, dataset: RoundDataset) -> None:
        """Receives the dataset that `fit` trains on, and prepares updates.

        Args:
            dataset: `keras_rl2.data.RoundDataset`, bound to the agent.
        """
        self.rollouts = dataset
        if not self.compiled:
            self.compile()
        self.reset_targets()
        self.check_trained()
        self.build_optimizer()

    @property
    def target_pairs(self) -> list[tuple[keras.Model, keras.Model]]:
        """Pairs of a target network and the network that it follows."""
        return []

    def reset_targets(self) -> None:
        """Restores the agent's own updates of target networks.

        An interrupted `fit` may have left those of a callback.
        """
        self.target_networks.forget()

    def train_step(self, data: Any) -> dict[str, Tensor]:
        """Makes one update from a minibatch; see `keras.Model.train_step`.

        Args:
            data: dict of `[B, ...]`, a minibatch of the dataset: on-policy the
                samples of `prepare`; off-policy `observation`, `action`,
                `reward` (of n steps), `discount` (0 after the end),
                `next_observation` and optionally `weight`.

        Returns:
            dict of scalars for the logs.
        """
        # Raises an error unless it is bound.
        _ = self.policy
        if not self.compiled:
            raise ValueError(
                "Expected `compile` before an update, which needs an "
                f"optimizer. Received: a {type(self).__name__} without one"
            )
        if self.overridden.train_step:
            # Otherwise, `compile` has found them.
            overriding.refuse_losses_of_keras(self)
        batch = minibatch_of(data)
        with self.target_networks.moving(self.updates_made):
            terms = self.update(batch)
        return self._logs(terms)

    def update(self, batch: Batch) -> Terms:
        """Makes a step for each objective, if all gradients are finite.

        Args:
            batch: dict; see `train_step`, with `weight`.

        Returns:
            dict: scalars for the logs, and for some agents `td_error` `[B]`;
            `skipped_updates`, a bool, is true where nothing was changed
            because a gradient or a learning rate was not finite.
        """
        return self._updater.update(self.objectives(), batch)

    def learners(self) -> dict[str, "Agent"]:
        """The agents that `fit` trains, by their prefixes in the logs."""
        return {"": self}

    @property
    def updates_made(self) -> keras.Variable:
        """Number of updates made."""
        return self.optimizer.iterations

    def after_update(self, batch: Batch, terms: Terms) -> None:
        """Hook for further changes after an update, in the graph.

        Args:
            batch: dict of `[B, ...]`. The minibatch.
            terms: dict. Terms of all objectives.
        """

    def observe(self, trajectory: Trajectory) -> None:
        """Receives each `Trajectory` once, for statistics of observations."""
        self.normalizing.observe(trajectory)
        for observer in self.observers:
            observer(trajectory)

    @property
    def outliers(self) -> dict[str, Outliers]:
        """Outliers among the observations, keyed by log name.

        Empty where no network keeps statistics.
        """
        if not self.normalizing.changing:
            return {}
        return {"clipped_observations": self.normalizing.outliers}

    def begin_round(self) -> None:
        """Is called before each rollout, when weights may still change."""
        self.normalizing.commit()

    def exploration_logs(self) -> dict[str, float]:
        """Returns the current parameters of exploration, for the logs."""
        return {}

    @arguments.refusing(_NOT_COMPILED)
    def compile(
        self,
        optimizer: GivenOptimizer = "auto",
        critic_optimizer: GivenOptimizer | None = None,
        *,
        steps_per_execution: int | Literal["auto"] = "auto",
        jit_compile: bool | Literal["auto"] = "auto",
        max_skipped_updates: int | None = DEFAULT_LIMIT,
        run_eagerly: bool = False,
        auto_scale_loss: bool = True,
    ) -> None:
        """Sets the optimizer; see `keras.Model.compile`.

        Args:
            optimizer: `keras.optimizers.Optimizer`, its name, or `"auto"` for
                the algorithm's default. Defaults to `"auto"`.
            critic_optimizer: Optimizer of a separate critic, its name, or
                `"auto"` for one like `optimizer`; None for a single optimizer,
                and for `"auto"` where both always have their own. Defaults to
                `None`.
            steps_per_execution: int, or `"auto"` for the updates of a round.
                Updates per call of TensorFlow; with environments in the graph,
                also those of several rounds. Defaults to `"auto"`.
            jit_compile: bool, or `"auto"` to compile whole rounds by XLA where
                it is faster. Defaults to `"auto"`.
            max_skipped_updates: int or None. Maximum number of consecutive
                updates that may be skipped because a gradient or a learning
                rate was not finite; None for any number. Defaults to `1000`.
            run_eagerly: bool. See `keras.Model.compile`. Defaults to `False`.
            auto_scale_loss: bool. See `keras.Model.compile`. Defaults to
                `True`.

        Raises:
            ValueError: If agents do not take an argument, or a learning rate
                is not finite.
            TypeError: If the class overrides a method of Keras that is not
                called in the training of an self.
        """
        overriding.refuse_uncalled_methods(self)
        if critic_optimizer is None and self.has_critic_optimizer:
            critic_optimizer = "auto"
        compile_arguments = CompileArguments(
            *(optimizer, critic_optimizer, steps_per_execution, jit_compile),
            *(max_skipped_updates, run_eagerly, auto_scale_loss),
        )
        automatic = steps_per_execution == "auto"
        with self.devices.scope():
            optimizer = compile_arguments.make_optimizer(self)
            self.devices.adopt(compile_arguments.optimizers)
            super().compile(
                optimizer=optimizer,
                # Before the length of a round is known.
                steps_per_execution=1 if automatic else steps_per_execution,
                jit_compile=jit_compile,
                run_eagerly=run_eagerly,
                auto_scale_loss=auto_scale_loss,
            )
        # Not before: a `compile` that failed changes nothing.
        self.compile_arguments = compile_arguments
        self.rounds = None
        self._optimized = frozenset()
        self.overridden = overriding.overridden(type(self))
        self.skipped.limit = max_skipped_updates

    def get_compile_config(self) -> dict[str, Any] | None:
        """Returns the arguments of `compile` as plain data."""
        if self.compile_arguments is None:
            return None
        return self.compile_arguments.get_config()

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles by `get_compile_config`, and builds the optimizers."""
        self.compile(**CompileArguments.from_config(config))
        if self.built:
            self.build_optimizer()

    def build_optimizer(self) -> None:
        """Makes the variables of the optimizer, unless they exist."""
        # Keras' LossScaleOptimizer would make its own variables once more.
        if not self.optimizer.built:
            variables = self.trainable_variables
            with self.devices.scope():
                self.optimizer.build(variables)
            self._optimized = frozenset(map(id, variables))

    def critic_variables(self) -> list[keras.Variable]:
        """Raises an error, as there is no separate critic."""
        raise ValueError(
            f"Expected `compile` of a {type(self).__name__} with one "
            "`optimizer`: it has no separate critic. "
            "Received: `critic_optimizer`"
        )

    @property
    def metrics(self) -> list[keras.metrics.Metric]:
        """Metrics that Keras resets each epoch and shows."""
        return [self.statistics]

    def _logs(self, terms: Terms) -> dict[str, Tensor]:
        """Adds an update to the metrics, and returns their results."""
        if "td_error" in terms:
            terms["td_error"] = ops.mean(terms["td_error"])
        counted = terms.get("counted")
        if counted is None:
            counted = ops.logical_not(terms["skipped_updates"])

        def logs() -> dict[str, Tensor]:
            self.statistics.update_state(terms, counted)
            return self.get_metrics_result()

        return replicas.once(logs)

    @arguments.refusing(_NOT_FITTED)
    def fit(
        self,
        x: object = None,
        *,
        epochs: int | None = None,
        total_steps: int | None = None,
        callbacks: GivenCallbacks = None,
        validation_data: object = None,
        validation_freq: int = 1,
        initial_epoch: int = 0,
        verbose: int | Literal["auto"] = "auto",
        shuffle: bool = False,
        steps_per_epoch: int | None = None,
    ) -> keras.callbacks.History:
        """Trains on a dataset; see `keras.Model.fit`.

        Args:
            x: `keras_rl2.RolloutDataset`, `ReplayDataset`, `OfflineDataset` or
                `MixedDataset`; or a `tf.data.Dataset` of minibatch dicts.
                Defaults to `None`.
            epochs: int or None. Keras epochs; None for 1. Defaults to `None`.
            total_steps: int or None. Environment steps of this call instead of
                epochs, rounded up to whole epochs, or to whole rounds where
                they are less than one epoch; the resets of NEXT_STEP
                environments count as steps. Defaults to `None`.
            callbacks: `keras.callbacks.Callback`, or an iterable of them, or
                None. Defaults to `None`.
            validation_data: `keras_rl2.EvaluationDataset`, an environment or
                its id, an `OfflineDataset`, or None. Episodes to evaluate on
                after epochs. Defaults to `None`.
            validation_freq: int. Number of epochs per evaluation. Defaults to
                `1`.
            initial_epoch: int. First epoch to count from. Defaults to `0`.
            verbose: 0, 1 and 2 as in Keras; `"auto"` for the line of
                `keras_rl2.callbacks.Progress`, or with a `tf.data.Dataset` for
                Keras' bar. Defaults to `"auto"`.
            shuffle: bool. Argument of Keras without effect: datasets of rounds
                shuffle their minibatches. Defaults to `False`.
            steps_per_epoch: int or None. See `keras.Model.fit`; only where `x`
                is a `tf.data.Dataset`. Defaults to `None`.

        Returns:
            `keras.callbacks.History`.

        Raises:
            ValueError: If the agent's networks or spaces do not fit the
                environment, or numbers contradict each other; or within a
                `tf.function`.
            FloatingPointError: If as many consecutive updates as `compile`
                allows were skipped, because a value was not finite.
            RuntimeError: If another `fit` of the agent is still running.
        """
        # An agent that only acts does not import datasets and callbacks.
        from keras_rl2.training import fitting

        with fitting.fit_alone(self), self.devices.placement():
            self.check_loaded()
            arguments.check_positive(validation_freq=validation_freq)
            arguments.check_choice(verbose=(verbose, ("auto", 0, 1, 2)))
            arguments.check_flag(shuffle=shuffle)
            plan = Plan(epochs, total_steps, initial_epoch)
            fitting.check_arguments(self, x, plan, steps_per_epoch)
            of_fit = fitting.all_callbacks(
                callbacks, validation_data, validation_freq
            )
            if isinstance(x, RoundDataset):
                fitting.fit_rounds(self, x, plan, of_fit, verbose)
                return self.history
            fitting.prepare_minibatches(self, of_fit, steps_per_epoch)
            return super().fit(
                x,
                epochs=epochs or 1,
                initial_epoch=initial_epoch,
                callbacks=of_fit,
                verbose=verbose,
                shuffle=shuffle,
                steps_per_epoch=steps_per_epoch,
            )

    def use_rounds(self, rounds: Round) -> None:
        """Discards the train function if it was made for other rounds.

        Args:
            rounds: `Round`. The way of making rounds.
        """
        if self.rounds is None or self.rounds.key != rounds.key:
            self.train_function = None
        self.rounds = rounds
        self.steps_per_execution = rounds.updates

    def make_train_function(self, force: bool = False) -> Any:
        """Makes the train function of `fit`: one TensorFlow call per round."""
        traced = self.traced
        changing = (*self.trainable_variables, *self.normalizing.changing)
        moves = self.target_networks.settings
        numbers = [getattr(self, name) for name in self.shared_numbers]
        self.traced = (frozenset(map(id, changing)), moves, *numbers)
        force = force or traced not in (None, self.traced)
        if self.train_function is not None and not force:
            return self.train_function
        if self.built:
            # If the first update made the optimizer's variables, TensorFlow
            # would trace it twice.
            self.build_optimizer()
        rounds = self.rounds
        if rounds is None:
            rounds = KerasRound(self, updates=self.steps_per_execution)
            self.use_rounds(rounds)
        self.train_function = rounds.make_function()
        return self.train_function

    @arguments.refusing_unknown
    def evaluate(
        self,
        x: object = None,
        *,
        episodes: int | None = None,
        deterministic: bool | None = None,
        num_envs: int | None = None,
        seed: int | None = None,
        env_kwargs: Mapping[str, Any] | None = None,
        wrappers: Sequence[EnvWrapper] | None = None,
        updates: int | None = None,
        verbose: int | Literal["auto"] = "auto",
        return_dict: bool = True,
        callbacks: GivenCallbacks = None,
    ) -> dict[str, float]:
        """Plays episodes greedily and returns their mean return and length.

        All arguments but `updates` and Keras' are those of the
        `EvaluationDataset` that is made from an environment. An
        `EvaluationDataset` itself takes none, and an `OfflineDataset` only
        `updates`, `deterministic` and `seed`; others raise an error.

        Args:
            x: An environment, an id string, or an `EvaluationDataset`; an
                `OfflineDataset`, from which the return is estimated. Defaults
                to `None`.
            episodes: int or None. Episodes to play; None for 10. Defaults to
                `None`.
            deterministic: bool or None. Whether the mode of the policy is
                taken instead of a sample; None for True. Defaults to `None`.
            num_envs: int or None. Environments to make when `x` is an id or a
                function; None for 1. Defaults to `None`.
            seed: int or None. Seeds environments and sampling, the same for
                every evaluation; None for other episodes each time, or for 0
                with an `OfflineDataset`. Defaults to `None`.
            env_kwargs: dict or None. Arguments of the environments that are
                made of an id, as `gymnasium.make` takes them. Defaults to
                `None`.
            wrappers: sequence of functions from a `gymnasium.Env` to another
                one, or None. They are applied to each environment that is made
                of an id. Defaults to `None`.
            updates: int or None. Updates of the networks that estimate the
                return from an `OfflineDataset`, see `OfflineEvaluation`; None
                for 5000. Defaults to `None`.
            verbose: int or str. Argument of Keras without effect. Defaults to
                `"auto"`.
            return_dict: bool. Argument of Keras; the result is always a dict.
                Defaults to `True`.
            callbacks: `keras.callbacks.Callback`, or a list of them, or None.
                Told when the evaluation begins and ends; there are no batches.
                Defaults to `None`.

        Returns:
            dict: `episode_return`, `episode_return_std`, `episode_length`; for
            an `OfflineDataset` the estimates of `OfflineEvaluation`.
        """
        from keras_rl2.training import evaluating

        del return_dict
        self.check_loaded()
        arguments.check_choice(verbose=(verbose, ("auto", 0, 1, 2)))
        callback_list = callbacks
        if not isinstance(callback_list, keras.callbacks.CallbackList):
            callback_list = keras.callbacks.CallbackList(callbacks, model=self)
        callback_list.on_test_begin()
        with self.devices.placement():
            results = evaluating.evaluate(
                self,
                x,
                episodes=episodes,
                deterministic=deterministic,
                num_envs=num_envs,
                seed=seed,
                env_kwargs=env_kwargs,
                wrappers=wrappers,
                updates=updates,
            )
        callback_list.on_test_end(results)
        return results

    def save(
        self,
        filepath: str | os.PathLike[str],
        overwrite: bool = True,
        zipped: bool | None = None,
    ) -> None:
        """Saves the self as `keras.Model.save` does, whole or not at all.

        An existing file stays until the new one is on the disk. Remote paths,
        and the question of `overwrite=False`, are left to Keras.

        Args:
            filepath: str or path. The `.keras` file to write.
            overwrite: bool. Whether an existing file is replaced without a
                question; see [`keras.Model.save`](
                https://keras.io/api/models/model_saving_apis/model_saving_and_loading/).
                Defaults to `True`.
            zipped: bool or None. Whether it is an archive rather than a
                folder; see `keras.Model.save`. Defaults to `None`.

        Raises:
            ValueError: If a network could not be restored when the file is
                loaded, an argument of the constructor is not kept, or a weight
                is not finite; nothing is written then.
            OSError: If the file cannot be written.
        """
        self.check_can_be_saved()
        from keras_rl2.saving import saving

        of_keras = functools.partial(keras.Model.save, self)
        saving.save(of_keras, filepath, overwrite, zipped)

    def check_can_be_saved(self) -> None:
        """Raises a `ValueError` if `save` would write what cannot be loaded."""
        skipped_updates.refuse_non_finite(self, "save")
        agent_config.check_is_complete(self)
        agent_config.check_can_be_loaded(self.given_networks())

    def save_weights(
        self,
        filepath: str | os.PathLike[str],
        overwrite: bool = True,
        max_shard_size: float | None = None,
    ) -> None:
        """Saves weights by `keras.Model.save_weights`, whole or not at all.

        Args:
            filepath: str or path. The `.weights.h5` file to write.
            overwrite: bool. Whether an existing file is replaced without a
                question. Defaults to `True`.
            max_shard_size: float or None. Maximum size in gigabytes of each of
                several files, which Keras writes in turn; see
                `keras.Model.save_weights`. Defaults to `None`.

        Raises:
            ValueError: If a weight is not finite; nothing is written then.
            OSError: If the file cannot be written.
        """
        skipped_updates.refuse_non_finite(self, "save")
        from keras_rl2.saving import saving

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
            skip_mismatch: bool. Whether weights of other shapes are skipped;
                see `keras.Model.load_weights`. Defaults to `False`.
            objects_to_skip: Sequence of layers or None. Layers to leave
                unchanged; see `keras.Model.load_weights`. Defaults to `None`.

        Raises:
            ValueError: If the weights are those of other networks, or one of
                the file is not finite; all weights then keep their values.
        """
        variables = skipped_updates.saved_variables(self)
        before = [np.array(each.value.numpy()) for each in variables]
        counts = self.env_steps, self.offline_updates
        try:
            super().load_weights(
                filepath,
                skip_mismatch,
                **arguments.present(objects_to_skip=objects_to_skip),
            )
            self.check_loaded()
        except Exception:
            for variable, value in zip(variables, before, strict=True):
                variable.assign(value)
            self.env_steps, self.offline_updates = counts
            self._is_loaded = False
            raise

    get_config = agent_config.get_config

    @classmethod
    def from_config(
        cls,
        config: dict[str, Any],
        custom_objects: Mapping[str, Any] | None = None,
    ) -> Self:
        """Makes an agent from `get_config`."""
        return cls(**agent_config.from_config(config, custom_objects))

    @property
    def update_variables(self) -> list[tf.Variable]:
        """Variables of an update, beside those of networks and optimizers.

        A subclass whose updates use a further `tf.Variable` adds it, so that
        several agents can share one compiled round.
        """
        return [self.skipped.in_a_row]

    get_state = agent_state.get_state
    set_state = agent_state.set_state
    check_loaded = agent_state.check_loaded
    save_own_variables = agent_state.save_own_variables
    load_own_variables = agent_state.load_own_variables

    def check_trained(self) -> None:
        """Raises an error if all are frozen, or one was after `compile`."""
        # `agent.trainable = True` has made target networks trainable too.
        self.target_networks.freeze()
        if not self.trainable_variables:
            raise nothing_to_train(self.name)
        known = self._optimized
        new = [v for v in self.trainable_variables if id(v) not in known]
        if known and new and self.optimizer.built:
            raise ValueError(
                "Expected `compile` after weights are unfrozen. "
                f"Received: {new[0].path!r}, frozen when training began"
            )

    @arguments.refusing(
        {"class_weight": "no weights of classes: there are none"}
    )
    def train_on_batch(
        self,
        x: Mapping[str, Any],
        y: None = None,
        sample_weight: npt.ArrayLike | None = None,
        *,
        return_dict: bool = False,
    ) -> Any:
        """Makes one update; see `keras.Model.train_on_batch`.

        Args:
            x: dict of `[B, ...]`. A minibatch; see `train_step`.
            y: None. Actions and returns are entries of the minibatch. Defaults
                to `None`.
            sample_weight: `[B]` or None. Weight of each row, multiplied by its
                `weight` in the minibatch. Defaults to `None`.
            return_dict: bool. Whether logs are returned as a dict. Defaults to
                `False`.

        Returns:
            Logs, as a list or a dict.

        Raises:
            ValueError: If the self is not bound or compiled, nothing is
                trainable, or agents do not support an argument.
        """
        _ = self.policy
        self.check_loaded()
        self.check_trained()
        with self.devices.placement():
            self.make_train_function()
            logs = cast(Round, self.rounds).update((x, y, sample_weight))
        numbers = {name: np.array(logs[name]) for name in sorted(logs)}
        return numbers if return_dict else [*numbers.values()]

    def make_test_function(self, force: bool = False) -> Any:
        """Raises an error: a batch does not measure a policy."""
        raise NotImplementedError(
            "Expected `evaluate(env)`, which plays episodes; or "
            "`evaluate(offline)`, which estimates from recorded ones. "
            f"Received: `test_on_batch` of {type(self).__name__}"
        )

    def make_predict_function(self, force: bool = False) -> Any:
        """Makes the function of `predict` and `predict_on_batch`.

        They return the outputs of `call`: the parameters of a policy or
        Q-values; `act` returns actions. Recurrent networks raise an error, as
        rows are not episodes.
        """
        memory = self.policy.memory
        self.check_loaded()
        if memory is not None:
            raise NotImplementedError(
                "Expected `act(observation, state)` of an self with recurrent "
                f"networks. Received: `predict` of {type(self).__name__}"
            )
        if self.predict_function is None or force:
            # It sets `predict_function`, and returns nothing.
            super().make_predict_function(force)
            self.predict_function = on_device(
                self.devices.placed, self.predict_function
            )
        return self.predict_function

    def __new__(cls, *networks: Any, **keywords: Any) -> Self:
        """Raises an error for unknown arguments."""
        arguments.refuse_unknown(cls.__name__, keywords, cls.argument_names())
        return super().__new__(cls)

    @classmethod
    def argument_names(cls) -> list[str]:
        """Returns the constructor's arguments, including those of bases."""
        return sorted(inherited_arguments.argument_names(cls))
