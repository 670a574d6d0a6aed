"""Quantization of exported policies: weights in 16 bits, or all in 8."""

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.export.formats import FLOAT16
from keras_rl2.export.representative import Row
from keras_rl2.export.representative import representative_rows
from keras_rl2.policies.policy import ModelPolicy
from keras_rl2.spaces.trees import Tree


def refuse_eight_bits(agent: ModelPolicy, deterministic: bool) -> None:
    """Raises an error for a policy that 8 bits cannot represent.

    The values of invalid actions, and the values that noise assigns to random
    actions, are far from all other numbers, so that the 256 steps between them
    would leave none for the others.

    Args:
        agent: `ModelPolicy`. The agent with the policy.
        deterministic: bool. Whether there is no noise.

    Raises:
        ValueError: If the policy has action masks or epsilon-greedy
            exploration.
    """
    found = None
    if agent.is_masked:
        found = "a policy with action masks"
    elif not deterministic and any(
        part["kind"] == "epsilon_greedy" for part in agent.noise_parts
    ):
        found = "an epsilon-greedy policy with `deterministic=False`"
    if found is not None:
        raise ValueError(
            'Expected a policy that fits into the 256 steps of `"int8"`; '
            'export with `quantize="float16"`. '
            f"Received: {found}, of {type(agent).__name__}"
        )


def converter_arguments(
    agent: ModelPolicy,
    quantize: str | None,
    representative: str | GivenEnv | Tree[npt.ArrayLike] | None,
    inputs: list[keras.InputSpec],
    deterministic: bool,
) -> dict[str, Any]:
    """Returns the attributes of `tf.lite.TFLiteConverter` for quantization.

    Args:
        agent: `ModelPolicy`. The agent with the policy.
        quantize: str or None. One of `formats.QUANTIZATIONS`.
        representative: See `Agent.export`.
        inputs: list of `keras.InputSpec`. The inputs of the policy.
        deterministic: bool. Whether there is no noise.

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
    rows = representative_rows(agent, representative, deterministic)
    names = [str(each.name) for each in inputs]

    def samples() -> Iterator[dict[str, npt.NDArray[Any]]]:
        for row in rows:
            yield _named(names, row)

    arguments["representative_dataset"] = samples
    return arguments


def _named(names: list[str], row: Row) -> dict[str, npt.NDArray[Any]]:
    """Returns the arrays of one step by the names of the policy's inputs."""
    return dict(zip(names, map(np.ascontiguousarray, row), strict=True))
