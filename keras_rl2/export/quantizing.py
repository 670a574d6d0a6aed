"""Quantization of exported policies: weights in 16 bits, or all in 8."""

from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from keras_rl2.export.formats import FLOAT16
from keras_rl2.export.formats import INT8
from keras_rl2.policies.policy import ModelPolicy
from keras_rl2.policies.policy_function import input_specs
from keras_rl2.spaces.batches import as_batch
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import leaves

# Most observations that are used.
_MOST = 2048


def check_bits(
    agent: ModelPolicy, deterministic: bool, quantize: str | None
) -> None:
    """Raises an error for a policy that 8 bits cannot represent.

    The values of invalid actions, and the values that noise assigns to random
    actions, are far from all other numbers, so that the 256 steps between them
    would leave none for the others.

    Args:
        agent: `ModelPolicy`. The agent with the policy.
        deterministic: bool. Whether there is no noise.
        quantize: str or None. One of `formats.QUANTIZATIONS`.

    Raises:
        ValueError: If the policy has action masks, epsilon-greedy exploration
            or a recurrent state, with `"int8"`.
    """
    if quantize != INT8:
        return
    forced = any(part["kind"] == "epsilon_greedy" for part in agent.noise_parts)
    for found, kind in (
        (agent.is_masked, "a policy with action masks"),
        (forced and not deterministic, "epsilon-greedy exploration"),
        (agent.initial_state(1), "a recurrent policy"),
    ):
        if found:
            raise ValueError(
                'Expected a policy that fits into the 256 steps of `"int8"`; '
                'export with `quantize="float16"`. '
                f"Received: {kind}, of {type(agent).__name__}"
            )


def converter_arguments(
    agent: ModelPolicy,
    deterministic: bool,
    quantize: str | None,
    representative: Tree[npt.ArrayLike] | None,
) -> dict[str, Any]:
    """Returns the attributes of `tf.lite.TFLiteConverter` for quantization.

    Args:
        agent: `ModelPolicy`. The agent with the policy.
        deterministic: bool. Whether there is no noise.
        quantize: str or None. One of `formats.QUANTIZATIONS`.
        representative: tree of `[N, ...]` or None. See `Agent.export`.

    Returns:
        dict: arguments of `keras.Model.export`.

    Raises:
        ValueError: If observations do not fit the agent.
    """
    if quantize is None:
        return {}
    arguments: dict[str, Any] = {"optimizations": [tf.lite.Optimize.DEFAULT]}
    if quantize == FLOAT16:
        arguments["target_spec"] = {"supported_types": [tf.float16]}
        return arguments
    assert representative is not None
    batch, single = as_batch(agent.observation_spec, representative)
    if single:
        raise ValueError(
            "Expected some hundreds of representative observations [N, ...]. "
            "Received: one observation"
        )
    specs = input_specs(agent.observation_spec)
    arrays = {str(s.name): a for s, a in zip(specs, leaves(batch), strict=True)}
    count = len(leaves(batch)[0])
    if not deterministic:
        generator = np.random.default_rng(0)
        arrays["noise"] = agent.draw_noise(generator, (count,))[0]
    arguments["representative_dataset"] = lambda: (
        {name: array[i : i + 1] for name, array in arrays.items()}
        for i in range(0, count, -(-count // _MOST))
    )
    return arguments
