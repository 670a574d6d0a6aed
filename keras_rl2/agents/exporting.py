"""The policy as a model of its own."""

from typing import Any

import keras

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
