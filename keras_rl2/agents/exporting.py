"""The policy as a model of its own."""

import os
from typing import TYPE_CHECKING
from typing import Any

import keras

from keras_rl2.shapes import Tensor

if TYPE_CHECKING:
    from keras_rl2.agents.agent import Agent


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
        self._decide = agent.policy_function(deterministic)
        self.built = True

    def call(self, *inputs: Tensor) -> Tensor:
        """Returns actions as the environment takes them."""
        actions: Tensor = self._decide(*inputs)[-1]
        return actions


def export(
    agent: "Agent",
    filepath: str | os.PathLike[str],
    format: str,
    deterministic: bool,
    **kwargs: Any,
) -> None:
    """Writes the policy in a format of `keras.Model.export`.

    Args:
        agent: `keras_rl2.Agent`. Whose policy it is.
        filepath: str or path. Where to write.
        format: str. A format of `keras.Model.export`.
        deterministic: bool. Whether the most probable action is taken; if not,
            noise is a second input.
        **kwargs: Further arguments of `keras.Model.export`.
    """
    spec = agent.encode.spec
    inputs = [
        keras.InputSpec(
            shape=tuple(spec.shape), dtype=spec.dtype.name, name="observation"
        )
    ]
    if not deterministic:
        shape = (None, *agent.noise_shape)
        inputs.append(
            keras.InputSpec(shape=shape, dtype="float32", name="noise")
        )
    kwargs.setdefault("verbose", False)
    kwargs.setdefault("input_signature", inputs)
    ExportedPolicy(agent, deterministic).export(
        str(filepath), format=format, **kwargs
    )
