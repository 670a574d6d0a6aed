"""The trained variables of an agent: all that are not frozen."""

import keras

from keras_rl2.updates.target_networks import TargetNetworks


class TrainedVariables:
    """The variables that an agent was compiled and traced to train.

    As in Keras, `trainable = False` of the agent, a network or a layer leaves
    its weights as they are.

    Args:
        agent: `keras.Model`. The agent with the variables.
        targets: `TargetNetworks`. Never trained.
    """

    def __init__(self, agent: keras.Model, targets: TargetNetworks) -> None:
        self._agent = agent
        self._targets = targets
        self._optimized: frozenset[int] | None = None
        self._traced: frozenset[int] | None = None

    def forget(self) -> None:
        """Forgets the variables of the former optimizer."""
        self._optimized = None

    def keep_optimized(self) -> None:
        """Keeps the variables that the optimizer has been built for."""
        self._optimized = self._present

    def keep_traced(self) -> bool:
        """Keeps the variables that updates are about to be run for.

        Returns:
            bool: whether they have been traced for other variables.
        """
        traced, self._traced = self._traced, self._present
        return traced is not None and traced != self._traced

    def check(self) -> None:
        """Raises if nothing is trained, or the optimizer lacks a variable.

        Raises:
            ValueError: If all variables are frozen, or one is no longer frozen.
        """
        # `trainable = True` of the agent reaches its target networks too.
        self._targets.freeze()
        if not self._agent.trainable_variables:
            raise nothing_to_train(self._agent.name)
        if self._optimized is None:
            return
        for variable in self._agent.trainable_variables:
            if id(variable) not in self._optimized:
                raise ValueError(
                    "Expected `compile` after something was made trainable "
                    "that had been frozen: the optimizer has no state for it. "
                    f"Received: {variable.path!r}"
                )

    @property
    def _present(self) -> frozenset[int]:
        """Identities of the variables that are trained at present."""
        return frozenset(map(id, self._agent.trainable_variables))


def nothing_to_train(name: str | None = None) -> ValueError:
    """Returns the error for an agent without trainable variables.

    Args:
        name: str or None. Name of the agent, if known. Defaults to `None`.
    """
    what = "an agent" if name is None else repr(name)
    return ValueError(
        "Expected something to train: set `trainable = True` of the agent, or "
        "of a network or layer of it, and compile it again. Received: "
        f"{what}, of which all variables are frozen"
    )
