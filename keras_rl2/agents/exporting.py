"""The policy as a function or a model of its own."""

from typing import Any

import keras
import tensorflow as tf

from keras_rl2.shapes import Tensor


class GreedyPolicy(keras.Model):
    """From raw observations to the actions an environment takes.

    Args:
        agent: `keras_rl2.Agent`. Whose policy it is.
    """

    def __init__(self, agent: Any) -> None:
        super().__init__(name=f"{agent.name}_policy")
        # Its networks are tracked by name, the agent's optimizer is not.
        for index, network in enumerate(agent.acting_networks):
            setattr(self, f"network_{index}", network)
        self._decide = agent.environment_action
        self.built = True

    def call(self, observation: Tensor) -> Tensor:
        """Returns the most probable actions."""
        return self._decide(observation)


def observation_spec(agent: Any) -> tf.TensorSpec:
    """Returns the signature of a batch of raw observations."""
    return tf.TensorSpec(
        (None, *agent.observation_shape),
        agent.observation_dtype,
        name="observation",
    )


def acting_function(agent: Any, deterministic: bool) -> Any:
    """Traces the policy for batches of any size.

    Args:
        agent: `keras_rl2.Agent`. Whose policy it is.
        deterministic: bool. Whether the noise is ignored.

    Returns:
        A `tf.function` of observations and noise.
    """
    noise = tf.TensorSpec(
        (None, *agent.policy_head.noise_shape), "float32", name="noise"
    )

    def act(observation: Tensor, noise: Tensor) -> Tensor:
        return agent.environment_action(
            observation, None if deterministic else noise
        )

    return tf.function(
        act, input_signature=[observation_spec(agent), noise], autograph=False
    )


def export(agent: Any, filepath: Any, format: str, **kwargs: Any) -> None:
    """Writes the greedy policy in a format of `keras.Model.export`.

    Args:
        agent: `keras_rl2.Agent`. Whose policy it is.
        filepath: str or path. Where to write.
        format: str. A format of `keras.Model.export`.
        **kwargs: Further arguments of `keras.Model.export`.
    """
    kwargs.setdefault("verbose", False)
    kwargs.setdefault(
        "input_signature",
        [
            keras.InputSpec(
                shape=(None, *agent.observation_shape),
                dtype=agent.observation_dtype,
                name="observation",
            )
        ],
    )
    GreedyPolicy(agent).export(str(filepath), format=format, **kwargs)
