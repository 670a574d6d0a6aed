"""Acting: the policy, frozen between two rounds and called once per step."""

import dataclasses
import functools
import hashlib
import logging
import math
import os
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import tensorflow as tf

from keras_rl2.basics.direct_call import direct_call
from keras_rl2.collecting.checks import is_finite
from keras_rl2.collecting.litert import LiteRTRunner
from keras_rl2.collecting.policy_actor import LiteRTPolicy
from keras_rl2.collecting.policy_actor import PolicyActor
from keras_rl2.collecting.policy_actor import SentPolicy
from keras_rl2.policies.agent_protocols import ActingPolicy
from keras_rl2.policies.policy_function import actions_and_log_prob
from keras_rl2.policies.policy_function import input_specs
from keras_rl2.policies.policy_function import policy_function
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.supported import action_spec
from keras_rl2.spaces.supported import space_tree
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves

logger = logging.getLogger(__name__)

# Number of actions that are compared to check a conversion.
_COMPARED_ACTIONS = 16
# Multiplications of a call's convolutions from which TensorFlow is faster:
# 8.6 per nanosecond by the interpreter, about 40 after 0.1 ms by TensorFlow.
_MOST_CONVOLVED = 1_000_000


class ActorSnapshot(PolicyActor):
    """A copy of an agent's policy that acts without TensorFlow.

    A call into TensorFlow costs 100 to 400 microseconds, more than the whole
    network of most tasks. So the policy, sampling included, is traced once as
    `f(observation, noise, *weights)` and run by the LiteRT interpreter, with
    the weights as inputs: following the agent is a copy of arrays. A policy
    that does not convert, or acts differently when converted, is run as a
    `tf.function` instead, and a line of the log reports it. The same holds for
    large convolutions, which the interpreter computes several times as slowly
    where weights are inputs, and for networks that compute in half precision
    (`mixed_float16`, `mixed_bfloat16`) or in float64, for which LiteRT has no
    operations.

    The snapshot acts with the weights of the last `sync()`, whatever happens
    to the agent in between.

    Args:
        policy: `agent.policy`, or another `ActingPolicy`.
        num_envs: int. Batch of every call, B.
        deterministic: bool. Whether it takes the mode of the policy instead
            of a sample. Defaults to `False`.

    Attributes:
        backend: str. Runtime of the policy: `"litert"` or `"tensorflow"`.

    Example:

    >>> import keras_rl2 as rl
    >>> agent = rl.PPO.for_env("CartPole-v1", seed=0)
    >>> actor = ActorSnapshot(agent.policy, num_envs=3, deterministic=True)
    >>> action, for_environment = actor(np.zeros((3, 4), "float32"))
    >>> action.shape
    (3,)
    """

    def __init__(
        self, policy: ActingPolicy, num_envs: int, deterministic: bool = False
    ) -> None:
        self.deterministic = deterministic
        self.variables = list(policy.acting_variables)
        # Raises an error before anything is converted.
        weights_of(self.variables)
        runner = _make_runner(policy, num_envs, deterministic)
        self.backend = runner.backend
        super().__init__(
            runner,
            action_spec(policy.action_space),
            policy.initial_state(num_envs),
            num_envs,
        )
        self.sync()

    def sync(self) -> None:
        """Takes over the agent's present weights.

        Raises:
            ValueError: If they are not finite.
        """
        self.set_weights(weights_of(self.variables))


def weights_of(variables: list[Any]) -> list[tf.Tensor]:
    """Returns the values of variables; raises if they are not finite.

    They are not copied: as long as one is kept, the next update of its
    variable writes to new memory.
    """
    values = []
    for variable in variables:
        # The operation itself: the method takes three times as long, and this
        # is done once for every round.
        value = variable.value
        read = tf.raw_ops.ReadVariableOp(
            resource=value.handle, dtype=value.dtype
        )
        if not is_finite(np.asarray(read)):
            raise ValueError(
                f"Expected finite weights to act with. Received: "
                f"{variable.path!r} with values that are infinite or not "
                "numbers"
            )
        values.append(read)
    return values


def _copies(variables: list[Any]) -> list[np.ndarray]:
    """Returns copies of the values, as arrays."""
    return [*map(np.array, weights_of(variables))]


class ActorWithoutMemory:
    """Base of actors whose recurrent state, if any, is kept elsewhere."""

    def begin(self, envs: np.ndarray) -> None:
        """Does nothing; see `PolicyActor`."""

    def get_state(self) -> None:
        """Returns None; see `PolicyActor`."""


class SentActor(ActorWithoutMemory):
    """An agent's policy for workers, which act with it in other processes.

    Like an `ActorSnapshot` it holds the weights of the last `sync()`. The
    state of a recurrent policy is kept by the workers.

    Args:
        policy: `ActingPolicy`.
        num_envs: int. Environments of each worker, B.
        with_log_prob: bool. Whether log-probabilities are returned. Defaults to
            `False`.

    Attributes:
        policy: `SentPolicy`.
        weights: list of arrays.
    """

    def __init__(
        self, policy: ActingPolicy, num_envs: int, with_log_prob: bool = False
    ) -> None:
        self.variables = list(policy.acting_variables)
        self.sync()
        # The interpreter's results for a single row differ in the last bit.
        batch = num_envs if _sees_pictures(policy) else max(num_envs, 2)
        sent = _sent(policy, num_envs, batch, False, with_log_prob)
        if sent is None:
            raise ValueError(
                "Expected a policy that converts to LiteRT: workers act "
                "without TensorFlow. Received: the policy of "
                f"{type(policy).__name__}, which does not; the log has the "
                "reason"
            )
        # Each of several processes has one core at best.
        self.policy = dataclasses.replace(sent, threads=1)

    def sync(self) -> None:
        """Takes over the agent's present weights, which must be finite."""
        self.weights = _copies(self.variables)


def litert_policy(policy: ActingPolicy) -> LiteRTPolicy | None:
    """Returns the greedy policy for processes without TensorFlow.

    Args:
        policy: `ActingPolicy`.

    Returns:
        `LiteRTPolicy` with the current weights; None where the policy cannot
        be converted.
    """
    sent = _sent(policy, 1, 1, True)
    if sent is None:
        return None
    weights = _copies(list(policy.acting_variables))
    return LiteRTPolicy(sent, weights, policy.observation_spec)


def _sent(
    policy: ActingPolicy,
    num_envs: int,
    batch: int,
    deterministic: bool,
    with_log_prob: bool = False,
) -> SentPolicy | None:
    """Returns a policy to act without TensorFlow; None if it cannot."""
    runner = _make_runner(
        policy, batch, deterministic, with_log_prob, tensorflow=False
    )
    if not isinstance(runner, LiteRTRunner):
        return None
    return SentPolicy(
        converted=runner.converted,
        weights=len(policy.acting_variables),
        threads=runner.threads,
        inputs=runner.observations,
        action=action_spec(policy.action_space),
        initial_state=policy.initial_state(num_envs),
        num_envs=num_envs,
        batch=batch,
        with_log_prob=with_log_prob,
    )


class _TensorFlowRunner:
    """Runs the policy as a `tf.function`."""

    backend = "tensorflow"

    def __init__(self, function: Any) -> None:
        self._call = direct_call(function.get_concrete_function())
        self._weights: list[tf.Tensor] = []

    def set_weights(self, weights: list[tf.Tensor]) -> None:
        """Takes weights, which are inputs of each call."""
        self._weights = weights

    def __call__(
        self,
        observation: Any,
        noise: np.ndarray | None,
        memory: Sequence[np.ndarray] = (),
    ) -> list[np.ndarray]:
        """Calls the function and returns NumPy arrays."""
        inputs = leaves(observation)
        if noise is not None:
            inputs.append(noise)
        inputs += memory
        return [output.numpy() for output in self._call(inputs + self._weights)]


def _make_runner(
    policy: ActingPolicy,
    num_envs: int,
    deterministic: bool,
    with_log_prob: bool = False,
    tensorflow: bool = True,
) -> LiteRTRunner | _TensorFlowRunner:
    """Converts the policy, checks it once against TensorFlow, or falls back.

    With `tensorflow`, policies that are faster there are not converted.
    """
    variables = list(policy.acting_variables)
    function = policy_function(
        policy,
        deterministic,
        num_envs,
        variables,
        actions_and_log_prob if with_log_prob else None,
    )
    read = set(map(id, function.get_concrete_function().variables))
    for each in policy.trainable_variables:
        if id(each.value) in read:
            raise ValueError(
                "Expected all networks that act to be among "
                "`acting_networks`, as the policy acts with copies of their "
                f"weights. Received: {each.path!r}, which is in none of them"
            )
    if tensorflow and _convolved(function) > _MOST_CONVOLVED:
        logger.info(
            "The policy acts through tf.function, which is faster for its "
            "convolutions than LiteRT."
        )
        return _TensorFlowRunner(function)
    names = [str(spec.name) for spec in input_specs(policy.observation_spec)]
    threads = os.cpu_count() if _sees_pictures(policy) else 1
    settings = len(variables), threads, names, len(policy.initial_state(1))
    key = fingerprint(function)
    if key in _conversions:
        return LiteRTRunner(_conversions[key], *settings)
    fallback = _TensorFlowRunner(function)
    try:
        converted = convert(function)
        runner = LiteRTRunner(converted, *settings)
        for each in (runner, fallback):
            each.set_weights(weights_of(variables))
        _check_alike(runner, fallback, policy, num_envs, deterministic)
    except Exception as error:
        # TensorFlow itself can still run a policy that does not convert.
        reason = str(error).strip().splitlines() or [type(error).__name__]
        logger.warning(
            "The policy acts through tf.function (slower): it does not "
            "convert to LiteRT: %s",
            reason[0],
        )
        return fallback
    if key is not None:
        if len(_conversions) >= _MOST_KEPT:
            _conversions.pop(next(iter(_conversions)), None)
        _conversions[key] = converted
    return runner


def _check_alike(
    runner: LiteRTRunner,
    fallback: _TensorFlowRunner,
    policy: ActingPolicy,
    num_envs: int,
    deterministic: bool,
) -> None:
    """Raises if a converted policy chooses other actions than TensorFlow.

    Both act on several batches, since the only action of one environment may
    agree by chance; on half of them without noise, which hides the preferences
    of a new policy.
    """
    generator = np.random.default_rng(0)
    drawn = functools.partial(_example, generator, num_envs)
    forms = space_tree(policy.observation_space), policy.observation_spec
    for index in range(max(2, _COMPARED_ACTIONS // num_envs)):
        observation, noise = map_leaves(drawn, *forms), None
        if not deterministic:
            noise, _ = policy.noise.draw(generator, (num_envs,))
            noise = noise * np.float32(index % 2)
        memory = []
        for each in policy.initial_state(num_envs):
            numbers = generator.standard_normal(each.shape)
            memory.append(numbers.astype(each.dtype))
        begins = generator.random(num_envs) < 0.5
        if memory:
            memory.insert(0, begins.astype(np.float32))
        # A GPU may compute in TF32, which errs by 3e-4.
        with tf.device("/CPU:0"):
            expected = fallback(observation, noise, memory)
        found = runner(observation, noise, memory)
        for action, same in zip(found, expected, strict=True):
            nan = action.dtype.kind == "f"
            if not np.allclose(action, same, 1e-4, 1e-4, equal_nan=nan):
                raise ValueError("the converted policy returned other actions")


def _convolved(function: Any) -> int:
    """Returns how many multiplications the convolutions of a call make."""
    total = 0
    for op in function.get_concrete_function().graph.get_operations():
        if op.type in ("Conv2D", "Conv3D", "DepthwiseConv2dNative"):
            # [height, width, channels, filters], of each number of the output
            *kernel, _ = op.inputs[1].shape
            total += math.prod(op.outputs[0].shape) * math.prod(kernel)
    return total


def _sees_pictures(policy: ActingPolicy) -> bool:
    """Returns whether acting is worth a thread per core, as for pictures."""
    return any(len(spec.shape) > 1 for spec in leaves(policy.observation_spec))


def _example(
    generator: np.random.Generator,
    num_envs: int,
    space: gymnasium.Space[Any],
    spec: ArraySpec,
) -> np.ndarray:
    """Draws moderate observations `[B, ...]`, as an Embedding needs them."""
    shape, dtype = (num_envs, *spec.shape), np.dtype(spec.dtype)
    if isinstance(space, gymnasium.spaces.Box):
        numbers = generator.standard_normal(shape)
        if dtype.kind != "f":
            numbers = np.minimum(np.abs(numbers) * 40, 127)
        return np.clip(numbers, space.low, space.high).astype(dtype)
    if isinstance(space, gymnasium.spaces.MultiBinary):
        # `n` is a shape where the space has several axes.
        return generator.integers(2, size=shape).astype(dtype)
    first: Any = getattr(space, "start", 0)
    end: Any = first + getattr(space, "n", getattr(space, "nvec", 128))
    return generator.integers(first, end, shape).astype(dtype)


# Conversions that act like their graphs, by fingerprint. To convert and check
# one takes a third of the time of a short `fit`. Weights are inputs, so that
# one is a few kilobytes.
_MOST_KEPT = 64
_conversions: dict[str | None, bytes] = {}

# Floats that the interpreter can hold and turn into others, but not compute
# with. The converter finds that out after writing pages of errors to stderr,
# where no logger can stop them.
_NOT_COMPUTED: dict[int, str] = {
    dtype.as_datatype_enum: dtype.name
    for dtype in (tf.float16, tf.bfloat16, tf.float64)
}
_COMPUTING_NOTHING = {"Cast", "Const", "Placeholder"}


def convert(function: Any) -> bytes:
    """Converts a traced function."""
    concrete = function.get_concrete_function()
    graph = concrete.graph.as_graph_def()
    nodes = [*graph.node]
    for body in graph.library.function:
        nodes += body.node_def
    for node in nodes:
        if node.op in _COMPUTING_NOTHING:
            continue
        for attribute in node.attr.values():
            if attribute.type in _NOT_COMPUTED:
                dtype = _NOT_COMPUTED[attribute.type]
                raise ValueError(f"it computes in {dtype}")
    converter = tf.lite.TFLiteConverter.from_concrete_functions(
        [concrete], function
    )
    return converter.convert()


def fingerprint(function: Any) -> str | None:
    """Returns a key that is the same for graphs with the same computation.

    It covers the whole graph except for the names of operations, which come
    from the agent. It is None where the graph reads a value that is not among
    its inputs, such as a variable: the value is part of the conversion.

    Example:

    >>> def adding(number):
    ...     specs = [tf.TensorSpec((2,), name="x")]
    ...     return tf.function(lambda x: x + number, input_signature=specs)
    >>> fingerprint(adding(1.0)) == fingerprint(adding(1.0))
    True
    >>> fingerprint(adding(1.0)) == fingerprint(adding(2.0))
    False
    """
    concrete = function.get_concrete_function()
    if concrete.captured_inputs:
        return None
    graph = concrete.graph.as_graph_def()
    numbers: dict[str, str] = {}
    for node in graph.node:
        numbers[node.name] = str(len(numbers))
    digest = hashlib.sha256()
    for node in graph.node:
        if node.op != "Placeholder":
            node.name = numbers[node.name]
        for index, name in enumerate(node.input):
            node.input[index] = _renamed(name, numbers)
    digest.update(graph.SerializeToString(deterministic=True))
    for output in concrete.outputs:
        digest.update(f" {_renamed(output.name, numbers)}".encode())
    return digest.hexdigest()


def _renamed(name: str, numbers: dict[str, str]) -> str:
    """Returns the name of a tensor with the operation's name as a number."""
    control = "^" if name.startswith("^") else ""
    operation, _, output = name.removeprefix("^").partition(":")
    return f"{control}{numbers[operation]}:{output or 0}"
