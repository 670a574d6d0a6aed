"""From a rollout to samples: one forward pass, advantages and targets."""

import functools
import math
import operator
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from keras_rl2 import losses
from keras_rl2.basics.shapes import Tensor
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.collecting.trajectory import as_sequences
from keras_rl2.distributions import Distribution
from keras_rl2.networks.sequences import flat
from keras_rl2.networks.sequences import of_one_step
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves

# Of the float32 inputs of a network in one call.
_BYTES = 2**24
Prepared = tuple[dict[str, Tensor], dict[str, Tensor]]


class RolloutSamples:
    """Makes samples from the rollouts of an on-policy agent.

    T is the number of steps, B that of environments, N = T * B.

    Args:
        agent: `keras_rl2.agents.OnPolicyAgent` or `PQN`, or another with their
            `policy_and_value` and `targets`.
        computed: Sequence of str. Entries of a sample that the networks
            compute, among `log_prob`, `advantage`, `returns` and `value`.
            Defaults to `("log_prob", "advantage", "returns", "value")`.
    """

    def __init__(
        self,
        agent: keras.Model,
        computed: Sequence[str] = ("log_prob", "advantage", "returns", "value"),
    ) -> None:
        self._agent = agent
        self._computed = tuple(computed)
        self._functions: dict[tuple[Any, ...], Callable[..., Prepared]] = {}
        self._compiled: object = None

    def spec(self, length: int | None = None) -> dict[str, Tree[ArraySpec]]:
        """Returns shapes and dtypes of each entry of one sample."""
        agent, head = self._agent, self._agent.policy.head
        one: dict[str, Tree[ArraySpec]] = {
            "observation": agent.policy.observation_spec,
            "action": ArraySpec(tuple(head.action_shape), head.action_dtype),
            **{
                name: ArraySpec(agent.sample_shapes.get(name, ()), "float32")
                for name in self._computed
            },
        }
        if length is None:
            return one
        one["begins"] = ArraySpec((), "float32")
        sequence: dict[str, Tree[ArraySpec]] = map_leaves(
            lambda spec: ArraySpec((length, *spec.shape), spec.dtype), one
        )
        sequence["state"] = state_spec(agent.policy)
        return sequence

    def prepare(
        self, trajectory: Trajectory, batch_size: int | None = None
    ) -> tuple[dict[str, Any], dict[str, float]]:
        """Computes samples `[N, ...]` and statistics of a rollout."""
        arrays = trajectory.arrays()
        size = batch_size or self._own_batch_size
        if size < trajectory.reward.size and not trajectory.state:
            arrays = self._evaluated(arrays, size)
        if self._agent.run_eagerly:
            arrays = _with_rows(arrays)
        computed, statistics = self._run(
            self.prepared, arrays, trajectory.reward.shape
        )
        samples: dict[str, Any] = {
            name: np.asarray(value) for name, value in computed.items()
        }
        if trajectory.state:
            samples = _in_sequences(samples, trajectory)
        else:
            samples["observation"] = map_leaves(
                lambda each: _rows(each[:-1]), trajectory.observation
            )
            samples["action"] = _rows(trajectory.action)
        return samples, {k: float(np.asarray(v)) for k, v in statistics.items()}

    def _run(
        self,
        function: Callable[..., Any],
        arrays: dict[str, Any],
        shape: tuple[int, ...] = (),
    ) -> Any:
        """Runs a method in the graph, for rollouts of a shape or any rows."""
        if self._agent.run_eagerly:
            return function(arrays)
        if self._compiled is not self._agent.compile_arguments:
            # As with Keras, `compile` makes changed attributes count.
            self._functions.clear()
            self._compiled = self._agent.compile_arguments
        key = (*arrays, *shape, self._agent.traced)
        if key not in self._functions:
            self._functions[key] = tf.function(
                function,
                input_signature=[_trajectory_spec(arrays, bool(shape))],
                autograph=False,
            ).get_concrete_function()
        # Implicit conversion would take a fifth of the time.
        return self._functions[key](map_leaves(tf.constant, arrays))

    @functools.cached_property
    def _own_batch_size(self) -> int:
        """The rows of a call whose float32 inputs take 16 MiB."""
        seen = leaves(self._agent.policy.encode.network_input)
        return max(_BYTES // sum(4 * math.prod(x.shape[1:]) for x in seen), 1)

    def _evaluated(
        self, arrays: dict[str, Any], batch_size: int
    ) -> dict[str, Any]:
        """Returns arrays with what the networks compute from observations."""
        arrays = dict(arrays)
        rows = map_leaves(_rows, arrays.pop("observation"))
        final = arrays.pop("final_observation")
        steps = arrays["reward"].size
        acted_on = {
            "observation": map_leaves(lambda each: each[:steps], rows),
            "action": _rows(arrays["action"]),
        }
        further = map_leaves(
            lambda each, last: np.concatenate([each[steps:], last]), rows, final
        )
        known: dict[str, list[np.ndarray]] = {}
        for each in acted_on, {"observation": further}:
            for start in range(0, len(leaves(each)[0]), batch_size):
                cut = operator.itemgetter(slice(start, start + batch_size))
                found = self._run(self._known, map_leaves(cut, each))
                for name, value in found.items():
                    known.setdefault(name, []).append(np.asarray(value))
        return arrays | {k: np.concatenate(v) for k, v in known.items()}

    def _known(self, arrays: dict[str, Any]) -> dict[str, Tensor]:
        """Returns values, and log-probabilities of actions if there are any."""
        policy, value = self._agent.policy_and_value(
            arrays["observation"], None, False
        )
        found = {"known_value": value}
        if policy is not None and "action" in arrays:
            taken = arrays["action"]
            found["known_log_prob"] = self._log_prob(policy, taken)
        return found

    def _log_prob(self, policy: Any, action: Tensor) -> Tensor:
        """Returns log-probabilities of actions, `[N]` or `[N, C]`."""
        if isinstance(policy, _KnownPolicy):
            return policy.log_prob
        return self._agent.log_prob_of(policy, action)

    def prepared(self, arrays: dict[str, Any]) -> Prepared:
        """Computes the samples of a rollout, in the graph.

        Returns:
            The entries of the samples that the networks compute, a dict of
            `[N, ...]`; and statistics, a dict of scalars.
        """
        policy, _, samples = self.of(arrays, training=False)
        if "log_prob" in arrays:
            samples["log_prob"] = flat(arrays["log_prob"])
        elif "log_prob" in self._computed:
            samples["log_prob"] = self._log_prob(policy, samples["action"])
        explained = losses.explained_variance(
            samples["value"], samples["returns"], samples["weight"]
        )
        return (
            {name: samples[name] for name in self._computed},
            {"explained_variance": explained},
        )

    def of(
        self, arrays: dict[str, Any], training: bool
    ) -> tuple[Distribution, Tensor, dict[str, Any]]:
        """Runs the networks over a rollout and computes targets, in the graph.

        Returns:
            The policy and the values `[N]`, and samples `[N, ...]` through
            which no gradient flows.
        """
        horizon, num_envs = arrays["reward"].shape
        steps = horizon * num_envs
        # [N] -> [T, B]
        rollout = functools.partial(ops.reshape, newshape=(horizon, num_envs))
        rows = map_leaves(flat, arrays.get("observation", {}))
        policy: Any
        if "known_value" in arrays:
            policy = _KnownPolicy(arrays.get("known_log_prob"))
            value = arrays["known_value"]
        elif "state" in arrays:
            policy, value = self._remembered(arrays, training)
        else:
            # PQN has no policy, and nothing below asks for it.
            policy, value = self._agent.policy_and_value(
                _with_final(rows, arrays), steps, training
            )
        known = ops.stop_gradient(value)
        values = rollout(known[:steps])
        taken = flat(arrays["action"])
        advantages, targets = self._agent.targets(
            arrays,
            # [N] -> [T, B], where another policy may have acted
            rollout(self._log_prob(policy, taken))
            if "log_prob" in arrays
            else None,
            values,
            rollout(_following(known, arrays)),
        )
        return (
            policy,
            value[:steps],
            {
                "observation": map_leaves(lambda each: each[:steps], rows),
                "action": taken,
                "advantage": flat(advantages),
                "returns": flat(targets),
                "value": known[:steps],
                "weight": ops.cast(flat(arrays["valid"]), "float32"),
            },
        )

    def _remembered(
        self, arrays: dict[str, Any], training: bool
    ) -> tuple[Distribution, Tensor]:
        """Returns a recurrent policy `[N]` and its values `[N + B + E]`."""
        agent = self._agent

        def swapped(array: Tensor) -> Tensor:
            # [T + 1, B, ...] -> [B, T + 1, ...], and back
            return ops.swapaxes(array, 0, 1)

        steps = int(np.prod(arrays["reward"].shape))
        parameters, value = agent.run_sequences(
            map_leaves(swapped, arrays["observation"]),
            swapped(arrays["begins"]),
            tuple(each[0] for each in arrays["state"]),
            training,
        )
        policy = agent.policy_of(
            flat(swapped(parameters))[:steps],
            map_leaves(lambda each: flat(each)[:steps], arrays["observation"]),
        )
        values = [flat(swapped(value))]
        if "final_index" in arrays:
            index = ops.cast(arrays["final_index"], "float32")
            _, value = agent.run_sequences(
                map_leaves(of_one_step, arrays["final_observation"]),
                of_one_step(ops.zeros_like(index)),
                arrays["final_state"],
                training,
            )
            values.append(flat(value))
        return policy, ops.concatenate(values, axis=0)


def state_spec(policy: Any) -> tuple[ArraySpec, ...]:
    """Returns the specs of a policy's recurrent state of one environment."""
    return tuple(
        ArraySpec(each.shape[1:], each.dtype.name)
        for each in policy.initial_state(1)
    )


def _in_sequences(
    samples: dict[str, np.ndarray], trajectory: Trajectory
) -> dict[str, Any]:
    """Returns samples of a recurrent agent: K * B sequences of L steps."""
    steps, num_envs = trajectory.reward.shape
    length = steps // len(trajectory.state[0])

    def cut(array: np.ndarray) -> np.ndarray:
        return as_sequences(array[:steps], length)

    assert trajectory.begins is not None
    return {
        **{
            name: cut(each.reshape(steps, num_envs, *each.shape[1:]))
            for name, each in samples.items()
        },
        "action": cut(trajectory.action),
        "begins": cut(trajectory.begins),
        "observation": map_leaves(cut, trajectory.observation),
        # [K, B, ...] -> [K * B, ...], before each sequence
        "state": tuple(
            each.reshape(-1, *each.shape[2:]) for each in trajectory.state
        ),
    }


def _with_rows(arrays: dict[str, Any]) -> dict[str, Any]:
    """Leaves out final observations where there are none.

    A network that is not in a graph need not take zero rows.
    """
    if len(arrays["final_index"]):
        return arrays
    return {k: v for k, v in arrays.items() if not k.startswith("final")}


def _rows(array: np.ndarray) -> np.ndarray:
    """Returns a view: `[T, B, ...]` -> `[T * B, ...]`."""
    return array.reshape(-1, *array.shape[2:])


class _KnownPolicy(NamedTuple):
    """A policy whose log-probabilities of the actions taken are known."""

    log_prob: Tensor


def _trajectory_spec(arrays: dict[str, Any], fixed: bool) -> dict[str, Any]:
    """Returns a signature that leaves the number of some rows open."""

    def spec_of(key: str, array: np.ndarray) -> tf.TensorSpec:
        is_open = not fixed or key.startswith(("final", "known_value"))
        count = None if is_open else array.shape[0]
        return tf.TensorSpec((count, *array.shape[1:]), array.dtype)

    specs = {}
    for key, array in arrays.items():
        specs[key] = map_leaves(functools.partial(spec_of, key), array)
    return specs


def _with_final(rows: Any, arrays: dict[str, Any]) -> Any:
    """Returns all observations for which values are computed.

    `[N + B + E, ...]`: those of each step, those after the last steps, and the
    final observations of the E episodes that ended within a step.
    """
    if "next_observation" in arrays:
        more = map_leaves(flat, arrays["next_observation"])
    elif "final_index" in arrays:
        more = arrays["final_observation"]
    else:
        return rows
    return map_leaves(lambda *both: ops.concatenate(both, axis=0), rows, more)


def _following(known: Tensor, arrays: dict[str, Any]) -> Tensor:
    """Returns the values `[N]` of the observations after each step."""
    horizon, num_envs = arrays["reward"].shape
    steps = horizon * num_envs
    if "next_observation" in arrays:
        return known[steps:]
    following: Tensor = known[num_envs : steps + num_envs]
    if "final_index" not in arrays:
        return following
    # One more slot, for the padding rows of a fixed shape.
    following = tf.tensor_scatter_nd_update(
        ops.pad(following, ((0, 1),)),
        arrays["final_index"][:, None],
        known[steps + num_envs :],
    )
    return following[:steps]
