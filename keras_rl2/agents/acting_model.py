"""Models that choose actions in the spaces that they are bound to."""

import abc
import inspect
import os
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any
from typing import Literal
from typing import Self
from typing import cast

import gymnasium
import keras
import numpy as np
import numpy.typing as npt

from keras_rl2.basics import arguments
from keras_rl2.basics import inherited_arguments
from keras_rl2.basics.shapes import Tensor
from keras_rl2.collecting.policy_actor import LiteRTPolicy
from keras_rl2.distributions import Distribution
from keras_rl2.distributions import PolicyHead
from keras_rl2.distributions import policy_head
from keras_rl2.envs.making import EnvWrapper
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.networks import checks as network_checks
from keras_rl2.networks.inputs import has_memory
from keras_rl2.networks.inputs import unroll
from keras_rl2.networks.task import Task
from keras_rl2.policies.acting import Acting
from keras_rl2.policies.policy_function import PolicyFunction
from keras_rl2.spaces import space_configs
from keras_rl2.spaces import supported as spaces
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.space_configs import GivenSpace
from keras_rl2.spaces.trees import Tree
from keras_rl2.training.devices import Devices
from keras_rl2.updates import skipped_updates

if TYPE_CHECKING:
    from keras_rl2.export.export_check import ExportCheck

# Callbacks and `summary` ask an agent that is not bound yet.
_NO_SPACE = cast(gymnasium.Space[Any], None)


class _OfConstructor:
    """Signature of a class: that of its constructor, which may be inherited.

    `inspect` would take `__new__`. For an instance it takes `__call__`.
    """

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        if instance is not None:
            raise AttributeError("__signature__")
        return inherited_arguments.constructor(owner)


class ActingModel(keras.Model, abc.ABC):
    """Base of models with a policy: their spaces, actions and recurrent state.

    A subclass makes the networks and defines the policy, in `sample_action`
    and `greedy_action`.

    """

    #: Supported classes of action spaces; `gymnasium.Space` for all that the
    #: library supports. Otherwise a Box must have finite bounds.
    action_kinds: tuple[type[gymnasium.Space[Any]], ...] = (gymnasium.Space,)
    #: Whether the policy's own actions of a Box are within -1 ... 1.
    squashes = False
    #: Units of a Gaussian's actions, `"half_range"` or `"environment"`.
    action_units = "environment"

    def __init__(
        self,
        observation_space: GivenSpace | None,
        action_space: GivenSpace | None,
        seed: int | None,
        name: str | None,
        dtype: str | None,
    ) -> None:
        learners = Devices()
        # Observations must not lose precision before they are normalised;
        # each network casts its own inputs.
        with learners.unseen():
            super().__init__(name=name, dtype=dtype, autocast=False)
        self.devices = learners
        self.seed = seed
        self._task: Task | None = None
        self._requested_spaces = (
            space_configs.as_space(observation_space),
            space_configs.as_space(action_space),
        )
        self._acting = Acting(self, seed)

    # Defined by subclasses.

    @abc.abstractmethod
    def sample_action(self, observation: Tree[Tensor], noise: Tensor) -> Tensor:
        """Draws actions of the policy `[B, ...]` from standard noise."""

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
        return [
            v for network in self.acting_networks for v in network.variables
        ]

    @abc.abstractmethod
    def _check_and_build(self) -> None:
        """Checks networks against the spaces and makes all variables."""

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

    # The spaces.

    def _bind_requested(self) -> None:
        """Binds to the constructor's spaces, once the networks exist."""
        observation_space, action_space = self._requested_spaces
        if observation_space is not None and action_space is not None:
            self.bind(observation_space, action_space)

    def bind(
        self,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
    ) -> None:
        """Binds the agent to the spaces of an environment.

        Args:
            observation_space: `gymnasium.Space`. Of a single environment.
            action_space: `gymnasium.Space`. Of a single environment.

        Raises:
            ValueError: If a space is not supported, differs from the one that
                the agent is bound to, or does not fit its networks.
        """
        if self._task is not None:
            spaces.check_same(
                type(self).__name__,
                observation=(self.observation_space, observation_space),
                action=(self.action_space, action_space),
            )
            return
        spaces.check_observation_space(observation_space)
        spaces.check_action_space(action_space)
        scaled = self.action_units == "half_range"
        head = self.make_policy_head(action_space, scaled)
        self._task = Task(observation_space, action_space, head)
        try:
            self._build()
        except Exception:
            self._task = None
            raise
        self.built = True

    def _build(self) -> None:
        """Makes everything that depends on the spaces, which are set."""
        with self.devices.scope():
            self._check_and_build()

    @property
    def task(self) -> Task:
        """The task of the agent: its spaces, encoder and policy head.

        Raises:
            ValueError: If it is not bound to an environment's spaces yet.
        """
        self._require_bound()
        return cast(Task, self._task)

    def _require_bound(self) -> None:
        """Raises an error unless the agent is bound to spaces."""
        if self._task is None:
            raise ValueError(
                f"Expected a {type(self).__name__} that knows its spaces: "
                "pass `observation_space` and `action_space` to the "
                "constructor, use `for_env`, or call `fit` first. "
                "Received: an agent bound to no environment"
            )

    @property
    def is_bound(self) -> bool:
        """Whether the agent is bound to an environment's spaces."""
        return self._task is not None

    @property
    def observation_space(self) -> gymnasium.Space[Any]:
        """The space of one environment's observations; None until bound."""
        return self._task.observation_space if self._task else _NO_SPACE

    @property
    def action_space(self) -> gymnasium.Space[Any]:
        """The space of one environment's actions; None until bound."""
        return self._task.action_space if self._task else _NO_SPACE

    @property
    def policy_head(self) -> PolicyHead:
        """The policy head of the action space; None until bound."""
        return self._task.head if self._task else cast(PolicyHead, None)

    @property
    def observation_spec(self) -> Tree[ArraySpec]:
        """Shapes and dtypes of one observation as it is stored."""
        return self.task.observation_spec

    @property
    def is_masked(self) -> bool:
        """Whether observations contain a mask of the allowed actions."""
        return self.task.is_masked

    def _check_can_act(self) -> None:
        """Raises an error if the agent is not ready to act."""
        self._require_bound()

    # Acting.

    @arguments.refusing_unknown
    def act(
        self,
        observation: Tree[npt.ArrayLike],
        state: Sequence[Any] | bool | None = None,
        deterministic: bool = False,
        *,
        return_log_prob: bool = False,
    ) -> Any:
        """Chooses an action, or a batch of actions.

        Args:
            observation: `[...]` or `[B, ...]`. One raw observation or a batch;
                for a Dict or Tuple space a dict or tuple of these.
            state: tuple of `[B, ...]` or None. State of a recurrent policy: at
                first `initial_state(B)`, then the state returned by the last
                call. Defaults to `None`: the initial state, about which a
                recurrent agent warns once. (A bool is taken as
                `deterministic`, which was the second argument before there
                were recurrent networks.)
            deterministic: bool. Whether to take the most probable action
                instead of a sample. Defaults to `False`.
            return_log_prob: bool. Whether to return the action's
                log-probability too, e.g. for trajectories that you collect
                yourself. It is that of the returned action, clipped to the
                bounds where they clip it, as `train_step` computes it.
                Defaults to `False`.

        Returns:
            np.ndarray: the action in the environment's format, or `[B, ...]`;
            with `return_log_prob` a tuple of that and `[]` or `[B]` float32;
            with `state` a tuple of that and, last, the state after the step.

        Raises:
            ValueError: If the observation does not have the shape of the
                space, the policy has no probabilities, or an action would not
                be finite.
        """
        self._check_can_act()
        if isinstance(state, bool):
            deterministic, state = state, None
        arguments.check_flag(
            deterministic=deterministic, return_log_prob=return_log_prob
        )
        with self.devices.placement():
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

        `act`, actors, exported files, TensorBoard and videos run this
        function.

        Args:
            deterministic: bool. Whether it returns the most probable action.
                Defaults to `True`.
            num_envs: int or None. Observations of each call, B; None for any
                number. Defaults to `None`.
            variables: Sequence of `keras.Variable`. Variables to be passed as
                values with each call, after the other arguments. Defaults to
                `()`.

        Returns:
            `tf.function` from raw observations `[B, ...]` (one argument for
            each array, in the order of `trees.leaves`), and unless
            `deterministic` noise `[B, *noise_shape]` of `draw_noise`, to a
            list: the policy's own actions and, where they differ, those for
            the environment.

        Raises:
            ValueError: If the agent is not bound to spaces.
        """
        self._require_bound()
        return self._acting.function(deterministic, num_envs, variables)

    # Recurrent networks.

    @property
    def memory(self) -> keras.Model | None:
        """The recurrent network of the policy, or None."""
        for network in self.acting_networks:
            if has_memory(network):
                return network
        return None

    def initial_state(self, batch_size: int) -> tuple[np.ndarray, ...]:
        """Returns the recurrent state at the beginning of an episode.

        Args:
            batch_size: int. Episodes, B; 1 for a single observation.

        Returns:
            tuple of `[B, ...]`, for `act`; empty without recurrent networks.
        """
        arguments.check_positive(batch_size=batch_size)
        memory = self.memory
        if memory is None:
            return ()
        return tuple(map(np.asarray, memory.initial_state(batch_size)))

    def _unrolled(
        self,
        network: Any,
        observation: Tree[Tensor],
        begins: Tensor,
        state: Sequence[Tensor],
        training: bool,
    ) -> tuple[Any, Sequence[Tensor]]:
        """Returns a recurrent network's outputs of sequences, and the state."""
        encode = self.task.encode
        return unroll(network, encode, observation, begins, state, training)

    def policy_step(
        self, observation: Tree[Tensor], begins: Tensor, state: Sequence[Tensor]
    ) -> tuple[Distribution, Sequence[Tensor]]:
        """Returns the policy of one step and the state after it, in a graph.

        Recurrent agents return the distribution of actions, and a sequence
        with the structure of `state`.

        Args:
            observation: `[B, ...]`. Raw observations.
            begins: `[B]` float32. 1 where an episode begins.
            state: Sequence of `[B, ...]`. See `initial_state`.

        Raises:
            ValueError: If the agent does not support recurrent networks.
        """
        raise ValueError(
            "Expected an agent that supports recurrent networks; others have "
            "`sample_action` and `greedy_action`. "
            f"Received: {type(self).__name__}"
        )

    @property
    def noise_shape(self) -> tuple[int, ...]:
        """Shape of the noise of one action."""
        return self.task.head.noise_shape

    @property
    def noise_parts(self) -> list[dict[str, Any]]:
        """Description of an action's noise, as plain data.

        Programs that draw the noise themselves need the kind and the width of
        each part, in the order in which they are concatenated.
        """
        return self.task.head.noise_parts

    def draw_noise(
        self,
        generator: np.random.Generator,
        shape: tuple[int, ...],
        state: object = None,
    ) -> tuple[np.ndarray, Any]:
        """Draws the noise that `sample_action` turns into actions.

        Args:
            generator: NumPy generator.
            shape: Leading shape, `(T, B)` or `(B,)`.
            state: State returned by the last call, for noise that is
                correlated over time. Defaults to `None`.

        Returns:
            `[*shape, *noise_shape]` float32, and the state, plain data.
        """
        return self.task.head.draw_noise(generator, shape), state

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
            format: str. `"tf_saved_model"`, `"onnx"`, `"litert"`, or another
                format of `keras.Model.export`. The first three hold a
                manifest; see `keras_rl2.read_manifest`. Defaults to
                `"tf_saved_model"`.
            deterministic: bool. Whether the file returns the most probable
                action. If not, standard noise `[B, *noise_shape]` of
                `draw_noise` is its second input. Defaults to `True`.
            quantize: str or None. For `"litert"`: `"float16"` keeps weights in
                16 bits; `"int8"` keeps weights and computes in 8 bits, which
                costs some of the return. Defaults to `None`.
            representative: `[N, ...]` or None. For `"int8"`, some hundreds of
                observations, by which ranges are chosen, e.g. of
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
                `"litert"`; this and the following arguments are those of
                `tf.lite.TFLiteConverter`. Defaults to `None`.
            representative_dataset: Callable or None. For `"litert"`. Defaults
                to `None`.
            target_spec: dict or None. For `"litert"`. Defaults to `None`.
            inference_input_type: dtype or None. For `"litert"`. Defaults to
                `None`.
            inference_output_type: dtype or None. For `"litert"`. Defaults to
                `None`.

        Raises:
            ImportError: If a package that writes the format is not installed.
            OSError: If the file cannot be written.
            TypeError: If the format does not take an argument.
            ValueError: If a weight of the policy is not finite, arguments
                contradict each other, or the format lacks an operation of the
                policy; nothing is written then.
        """
        self._require_bound()
        arguments.check_path(filepath=filepath)
        arguments.check_text(format=format)
        arguments.check_flag(deterministic=deterministic)
        skipped_updates.refuse_non_finite(self, "export", self.acting_variables)
        from keras_rl2.export import exporting

        exporting.export(
            self,
            filepath,
            format,
            deterministic,
            quantize,
            representative,
            batch_size,
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
        wrappers: Sequence[EnvWrapper] = (),
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
            wrappers: sequence of functions from a `gymnasium.Env` to another
                one, applied to each environment that is made of an id.
                Defaults to `()`.

        Returns:
            `keras_rl2.agents.ExportCheck`: the measured differences, and
            `passed`.

        Raises:
            ImportError: If a package that runs the file is not installed.
            OSError: If the file cannot be read.
            TypeError: If there is an unknown argument.
            ValueError: If the file belongs to another agent or environment, or
                an argument is out of range.
        """
        self._check_can_act()
        arguments.check_path(filepath=filepath)
        from keras_rl2.export.export_check import check_export

        return check_export(
            self,
            filepath,
            env,
            tolerance=tolerance,
            loss=loss,
            episodes=episodes,
            num_envs=num_envs,
            seed=seed,
            env_kwargs=env_kwargs,
            wrappers=wrappers,
        )

    def litert_policy(self) -> LiteRTPolicy | None:
        """Returns the greedy policy for processes without TensorFlow.

        Returns:
            `LiteRTPolicy` with the current weights; None where the policy
            cannot be converted.
        """
        self._require_bound()
        from keras_rl2.policies.actors import litert_policy

        return litert_policy(self)

    __signature__ = _OfConstructor()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Lets the docstring describe all arguments of the constructor."""
        super().__init_subclass__(**kwargs)
        if cls.__doc__ is not None:
            cls.__doc__ = inherited_arguments.Docstring(cls.__doc__)  # type: ignore[assignment]

    def __new__(cls, *networks: Any, **given: Any) -> Self:
        """Raises an error for unknown arguments."""
        cls.refuse_arguments(given)
        return super().__new__(cls)

    @classmethod
    def argument_names(cls) -> list[str]:
        """Returns the constructor's arguments, including those of bases."""
        return sorted(inherited_arguments.argument_names(cls))

    @classmethod
    def refuse_arguments(cls, given: Mapping[str, Any]) -> None:
        """Raises an error for arguments that the algorithm does not take."""
        arguments.refuse_unknown(cls.__name__, given, cls.argument_names())
