"""Acting: the policy, frozen between two rounds and called once per step."""

import logging
import os
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import Protocol

import gymnasium
import numpy as np
import tensorflow as tf

from keras_rl2.array_spec import ArraySpec
from keras_rl2.data import conversions
from keras_rl2.data.agent_protocols import ActingAgent
from keras_rl2.data.finite import check_actions
from keras_rl2.data.finite import check_weights
from keras_rl2.data.policy_function import input_specs
from keras_rl2.data.policy_function import policy_function
from keras_rl2.litert import LiteRTPolicy
from keras_rl2.litert import LiteRTRunner
from keras_rl2.litert import for_environment
from keras_rl2.spaces import action_spec
from keras_rl2.spaces import space_tree
from keras_rl2.trees import leaves
from keras_rl2.trees import map_leaves

logger = logging.getLogger(__name__)

# The policy's actions [B, ...], and the same as environments take them, a tree
# of arrays perhaps.
Actions = tuple[np.ndarray, Any]

# From observations [B, ...] and the noise of one step to actions: an
# `ActorSnapshot`, or whatever takes its place.
Actor = Callable[[Any, Any], Actions]

# Actions that decide whether a conversion is to be trusted.
_COMPARED_ACTIONS = 16


class ActorSnapshot:
    """A copy of an agent's policy that acts without TensorFlow.

    A call into TensorFlow costs 100 to 400 microseconds, more than the whole
    network of most tasks. So the policy, sampling included, is traced once as
    `f(observation, noise, *weights)` and run by the LiteRT interpreter, with
    the weights as inputs: following the agent is a copy of arrays. A policy
    that does not convert, or whose conversion acts differently, is run as a
    `tf.function` instead; one line in the log says so. So are all networks
    that compute in half precision (`mixed_float16`, `mixed_bfloat16`) or in
    float64, for which LiteRT has no operations.

    The snapshot acts with the weights of the last `sync()`, whatever happens
    to the agent in between.

    Args:
        agent: `keras_rl2.Agent`, or what acts alike (`ActingAgent`), bound
            to its spaces.
        num_envs: int. Batch of every call, B.
        deterministic: bool. Whether it takes the mode of the policy instead
            of a sample. Defaults to `False`.

    Example:

    >>> import keras_rl2 as rl
    >>> agent = rl.PPO.for_env("CartPole-v1", seed=0)
    >>> actor = ActorSnapshot(agent, num_envs=3, deterministic=True)
    >>> action, for_environment = actor(np.zeros((3, 4), "float32"))
    >>> action.shape
    (3,)
    """

    def __init__(
        self, agent: ActingAgent, num_envs: int, deterministic: bool = False
    ) -> None:
        self.deterministic = deterministic
        self.num_envs = num_envs
        self.variables = list(agent.acting_variables)
        self._action = action_spec(agent.action_space)
        #: What it remembers of each environment, `[B, ...]` each; or nothing.
        self.state = agent.initial_state(num_envs)
        #: Environments whose next step is the first of an episode, `[B]`.
        self.begins = np.ones(num_envs, np.float32)
        # Choices are numbers of a table: never NaN, whatever they come from.
        self._gives_numbers = (
            np.dtype(agent.policy_head.action_dtype).kind == "f"
        )
        check_weights(self.variables, _read(self.variables))
        self._runner = _make_runner(agent, num_envs, deterministic, self)
        self.sync()

    @property
    def backend(self) -> str:
        """What runs the policy: `"litert"` or `"tensorflow"`."""
        return self._runner.backend

    def sync(self) -> None:
        """Takes over the agent's present weights.

        Raises:
            ValueError: If they are not finite.
        """
        values = _read(self.variables)
        check_weights(self.variables, values)
        self._runner.set_weights(values)

    def __call__(
        self, observation: Any, noise: np.ndarray | None = None
    ) -> Actions:
        """Chooses actions.

        Args:
            observation: `[B, ...]`. Observations, a tree of contiguous
                arrays.
            noise: `[B, *noise_shape]` float32. Standard noise of the policy;
                None for a deterministic actor. Defaults to `None`.

        Returns:
            The policy's actions `[B, ...]`, and the same as the environment
            takes them (shifted or clipped to its space).

        Raises:
            ValueError: If actions are numbers that are not finite.
        """
        if self.state:
            return self._remembering(observation, noise)
        outputs = self._runner(observation, noise)
        if self._gives_numbers:
            check_actions(outputs[0], observation)
        return outputs[0], for_environment(self._action, outputs)

    def _remembering(self, observation: Any, noise: Any) -> Actions:
        """Chooses actions, and remembers what it is for the next step."""
        count = len(self.state)
        outputs = self._runner(observation, noise, (self.begins, *self.state))
        if self._gives_numbers:
            check_actions(outputs[0], observation)
        self.state = tuple(outputs[-count:])
        self.begins = np.zeros(self.num_envs, np.float32)
        acted = outputs[:-count]
        return acted[0], for_environment(self._action, acted)

    def get_state(self) -> dict[str, Any]:
        """Returns what it remembers of each environment, as plain data."""
        return {
            "state": [np.array(each) for each in self.state],
            "begins": self.begins.copy(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes back what `get_state` gave.

        Args:
            state: dict, as returned by `get_state`.
        """
        self.state = tuple(state["state"])
        self.begins = state["begins"]

    def begin(self, envs: np.ndarray) -> None:
        """Says that the next step is the first of an episode.

        Args:
            envs: `[B]` bool. Of which environments.
        """
        self.begins = np.maximum(self.begins, envs).astype(np.float32)


def litert_policy(agent: ActingAgent) -> LiteRTPolicy | None:
    """Returns an agent's greedy policy for processes without TensorFlow.

    Args:
        agent: `ActingAgent`, bound to its spaces.

    Returns:
        `LiteRTPolicy` with the present weights; None where the policy does
        not convert.
    """
    actor = ActorSnapshot(agent, num_envs=1, deterministic=True)
    runner = actor._runner
    if not isinstance(runner, LiteRTRunner):
        return None
    return LiteRTPolicy(
        runner.converted,
        # Copies: an array that is held on to makes each update allocate.
        [np.array(weight) for weight in _read(actor.variables)],
        runner.threads,
        agent.observation_spec,
        runner.observations,
        actor._action,
        agent.initial_state(1),
    )


class _Runner(Protocol):
    """Runs the traced policy with weights of its own."""

    backend: str

    def set_weights(self, weights: list[np.ndarray]) -> None: ...

    def __call__(
        self,
        observation: Any,
        noise: np.ndarray | None,
        memory: Sequence[np.ndarray] = (),
    ) -> list[np.ndarray]: ...


class _TensorFlowRunner:
    """Runs the policy as a `tf.function`."""

    backend = "tensorflow"

    def __init__(self, function: Any) -> None:
        self._function = function
        self._weights: list[Any] = []

    def set_weights(self, weights: list[np.ndarray]) -> None:
        """Copies the weights: `constant` may alias what it is given."""
        self._weights = [tf.constant(np.array(w)) for w in weights]

    def __call__(
        self,
        observation: Any,
        noise: np.ndarray | None,
        memory: Sequence[np.ndarray] = (),
    ) -> list[np.ndarray]:
        """Calls the function and returns NumPy arrays."""
        given = leaves(observation)
        if noise is not None:
            given.append(noise)
        given += memory
        outputs = self._function(*map(tf.constant, given), *self._weights)
        return [output.numpy() for output in outputs]


def _make_runner(
    agent: ActingAgent,
    num_envs: int,
    deterministic: bool,
    snapshot: ActorSnapshot,
) -> _Runner:
    """Converts the policy, checks it once against TensorFlow, or falls back."""
    function = policy_function(
        agent, deterministic, num_envs, snapshot.variables
    )
    seen = input_specs(agent.observation_spec)
    names = [str(spec.name) for spec in seen]
    # Images are worth a thread per core, small networks are not.
    pictures = any(len(spec.shape) > 2 for spec in seen)
    threads = os.cpu_count() if pictures else 1
    key = conversions.fingerprint(function)
    converted = conversions.find(key)
    if converted is not None:
        return LiteRTRunner(
            converted,
            len(snapshot.variables),
            threads,
            names,
            len(snapshot.state),
        )
    fallback = _TensorFlowRunner(function)
    try:
        converted = conversions.convert(function)
        runner = LiteRTRunner(
            converted,
            len(snapshot.variables),
            threads,
            names,
            len(snapshot.state),
        )
    except Exception as error:
        # Whatever the converter dislikes, TensorFlow itself can still run.
        reason = str(error).strip().splitlines() or [type(error).__name__]
        logger.warning(
            "The policy acts through tf.function (slower): it does not "
            "convert to LiteRT: %s",
            reason[0],
        )
        return fallback
    weights = _read(snapshot.variables)
    runner.set_weights(weights)
    fallback.set_weights(weights)
    if all(
        _agree(runner(*inputs), fallback(*inputs))
        for inputs in _example_inputs(agent, num_envs, deterministic)
    ):
        conversions.keep(key, converted)
        return runner
    logger.warning(
        "The policy acts through tf.function (slower): its LiteRT conversion "
        "gave other actions than TensorFlow."
    )
    return fallback


def _read(variables: list[Any]) -> list[np.ndarray]:
    """Returns the values of Keras variables.

    The operation itself: `Variable.numpy()` takes three times as long, and
    this is done once for every round.
    """
    return [
        tf.raw_ops.ReadVariableOp(
            resource=v.value.handle, dtype=v.value.dtype
        ).numpy()
        for v in variables
    ]


def _example_inputs(
    agent: ActingAgent, num_envs: int, deterministic: bool
) -> Iterator[tuple[Any, np.ndarray | None, tuple[np.ndarray, ...]]]:
    """Draws observations and noise on which both runners are compared.

    Several times, since the only action of one environment agrees by chance;
    and half of them without noise, which drowns what a new policy prefers.
    """
    generator = np.random.default_rng(0)
    for index in range(max(2, _COMPARED_ACTIONS // num_envs)):
        observation = _example_observation(agent, num_envs, generator)
        noise = None
        if not deterministic:
            noise, _ = agent.draw_noise(generator, (num_envs,))
            noise = noise * np.float32(index % 2)
        state = [
            generator.standard_normal(each.shape).astype(each.dtype)
            for each in agent.initial_state(num_envs)
        ]
        begins = (generator.random(num_envs) < 0.5).astype(np.float32)
        yield observation, noise, (begins, *state) if state else ()


def _example_observation(
    agent: ActingAgent, num_envs: int, generator: np.random.Generator
) -> Any:
    """Draws observations that the networks can be run on."""

    def drawn(space: gymnasium.Space[Any], spec: ArraySpec) -> np.ndarray:
        shape, dtype = (num_envs, *spec.shape), np.dtype(spec.dtype)
        if dtype.kind == "f":
            return generator.standard_normal(shape).astype(dtype)
        if isinstance(space, gymnasium.spaces.MultiBinary):
            # Its `n` is a shape, where it has several axes.
            return generator.integers(2, size=shape).astype(dtype)
        first: Any = getattr(space, "start", 0)
        end: Any = first + getattr(space, "n", getattr(space, "nvec", 128))
        return generator.integers(first, end, shape).astype(dtype)

    return map_leaves(
        drawn, space_tree(agent.observation_space), agent.observation_spec
    )


def _agree(actions: list[np.ndarray], expected: list[np.ndarray]) -> bool:
    """Whether two runners chose the same."""
    return all(
        np.allclose(a, e, rtol=1e-4, atol=1e-4, equal_nan=a.dtype.kind == "f")
        for a, e in zip(actions, expected, strict=True)
    )
