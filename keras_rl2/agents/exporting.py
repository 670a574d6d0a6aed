"""The policy as a model of its own."""

import os
from typing import TYPE_CHECKING
from typing import Any

import keras
import tensorflow as tf
from keras import ops

from keras_rl2.agents.saving import require_replaceable
from keras_rl2.atomic_files import replacing
from keras_rl2.data.policy_function import input_specs
from keras_rl2.litert import for_environment
from keras_rl2.shapes import Tensor
from keras_rl2.spaces import action_spec
from keras_rl2.trees import is_leaf
from keras_rl2.trees import named_leaves

if TYPE_CHECKING:
    from keras_rl2.agents.agent import Agent

# What a SavedModel is made of.
_SAVED_MODEL = frozenset(
    {"assets", "fingerprint.pb", "saved_model.pb", "variables"}
)
# What TensorFlow calls a disk that is full, read-only or gone.
_DISK_ERRORS = (
    tf.errors.FailedPreconditionError,
    tf.errors.NotFoundError,
    tf.errors.OutOfRangeError,
    tf.errors.PermissionDeniedError,
    tf.errors.ResourceExhaustedError,
    tf.errors.UnavailableError,
    tf.errors.UnknownError,
)


class ExportedPolicy(keras.Model):
    """From raw observations, and noise perhaps, to the environment's actions.

    Args:
        agent: `keras_rl2.Agent`. Whose policy it is.
        deterministic: bool. Whether there is no noise.
    """

    def __init__(self, agent: "Agent", deterministic: bool) -> None:
        super().__init__(name=f"{agent.name}_policy")
        # Its networks are tracked by name, the agent's optimizer is not.
        for index, network in enumerate(agent.acting_networks):
            setattr(self, f"network_{index}", network)
        self._states = len(agent.initial_state(1))
        self._action = action_spec(agent.action_space)
        self._decide = agent.policy_function(deterministic)
        self.built = True

    def call(self, *inputs: Tensor) -> Any:
        """Returns actions as the environment takes them.

        Of a Dict or Tuple, a dict from the path of each array, `"arm_angle"`
        for a key within a key: files know no trees. A policy that remembers
        gives a dict too, of `"action"` and the state after the step,
        `"next_state_0"` and so on, which goes in with the next observation.
        """
        count = self._states
        given = [*inputs]
        if count:
            # Zeros are the state of a beginning: nobody has to say so.
            begins = ops.zeros_like(inputs[-1][:, 0], "float32")
            given.insert(len(given) - count, begins)
        outputs = [*self._decide(*given)]
        after = [outputs.pop() for _ in range(count)][::-1]
        action = for_environment(self._action, outputs)
        if is_leaf(action):
            if not count:
                return action
            action = {"action": action}
        named = {
            path.replace(".", "_"): array
            for path, array in named_leaves(action)
        }
        # Not as the inputs: ONNX knows one name for one thing.
        states = {f"next_state_{k}": each for k, each in enumerate(after)}
        return {**named, **states}


def export(
    agent: "Agent",
    filepath: str | os.PathLike[str],
    format: str,
    deterministic: bool,
    **kwargs: Any,
) -> None:
    """Writes the policy in a format of `keras.Model.export`.

    Whole or not at all: what was there before stays until then.

    Args:
        agent: `keras_rl2.Agent`. Whose policy it is.
        filepath: str or path. Where to write.
        format: str. A format of `keras.Model.export`.
        deterministic: bool. Whether the most probable action is taken; if not,
            noise is a second input.
        **kwargs: Further arguments of `keras.Model.export`.

    Raises:
        OSError: If it cannot be written.
        ValueError: If it would replace a folder that holds something else.
    """
    inputs = [
        keras.InputSpec(
            shape=tuple(spec.shape), dtype=spec.dtype.name, name=spec.name
        )
        for spec in input_specs(agent.observation_spec)
    ]
    if not deterministic:
        shape = (None, *agent.noise_shape)
        inputs.append(
            keras.InputSpec(shape=shape, dtype="float32", name="noise")
        )
    inputs += [
        keras.InputSpec(
            shape=(None, *each.shape[1:]),
            dtype=each.dtype.name,
            name=f"state_{index}",
        )
        for index, each in enumerate(agent.initial_state(1))
    ]
    kwargs.setdefault("verbose", False)
    kwargs.setdefault("input_signature", inputs)
    policy = ExportedPolicy(agent, deterministic)
    require_replaceable(filepath, _SAVED_MODEL)
    with replacing(filepath) as unfinished:
        try:
            policy.export(str(unfinished), format=format, **kwargs)
        except _DISK_ERRORS as error:
            raise OSError(
                f"{filepath}: could not be written: {error.message}"
            ) from error
