"""The policy for one observation or a batch, outside of training."""

from typing import Any

import numpy as np
import tensorflow as tf


class Acting:
    """What `Agent.act` runs: the traced policy and its noise.

    Args:
        agent: `keras_rl2.Agent`. Whose policy it is.
        seed: int or None. Seeds the noise.
    """

    def __init__(self, agent: Any, seed: int | None) -> None:
        self._agent = agent
        self._noise = np.random.default_rng(seed)
        self._functions: dict[bool, Any] = {}

    def __call__(self, observation: Any, deterministic: bool) -> Any:
        """Chooses an action, or a batch of actions.

        Args:
            observation: `[...]` or `[B, ...]`. Raw observations.
            deterministic: bool. Whether there is no noise, and none is drawn.

        Returns:
            np.ndarray: the action as the environment takes it, or `[B, ...]`.

        Raises:
            ValueError: If the observation's shape is not that of the space.
        """
        agent = self._agent
        shape = agent.observation_shape
        array = np.asarray(observation, agent.observation_dtype)
        single = array.shape == shape
        if not single and (
            array.ndim != len(shape) + 1 or array.shape[1:] != shape
        ):
            raise ValueError(
                f"Expected one observation of shape {shape} or a batch "
                f"{('B', *shape)}. Received: shape {array.shape}"
            )
        batch = array[None] if single else array
        inputs = [batch]
        if not deterministic:
            noise, _ = agent.draw_noise(self._noise, (len(batch),))
            inputs.append(noise)
        if deterministic not in self._functions:
            self._functions[deterministic] = acting_function(
                agent, deterministic
            )
        action = self._functions[deterministic](*inputs).numpy()
        action = action.astype(agent.action_space.dtype, copy=False)
        return action[0] if single else action


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
        deterministic: bool. Whether there is no noise.

    Returns:
        A `tf.function` of observations, and of noise unless `deterministic`.
    """
    signature = [observation_spec(agent)]
    if not deterministic:
        shape = (None, *agent.noise_shape)
        signature.append(tf.TensorSpec(shape, "float32", name="noise"))
    return tf.function(
        agent.environment_action, input_signature=signature, autograph=False
    )
