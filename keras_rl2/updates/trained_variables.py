"""Which variables of an agent are trained: all that are not frozen."""

import keras

from keras_rl2.updates.target_networks import TargetNetworks


class TrainedVariables:
    """The variables that an agent was compiled and traced to train.

    As in Keras, `trainable = False` of the agent, a network or a layer leaves
    its weights as they are.

    Args:
        agent: `keras.Model`. Whose variables they are.
        targets: `TargetNetworks`. Are never trained.
    """

    def __init__(self, agent: keras.Model, targets: TargetNetworks) -> None:
        self._agent = agent
        self._targets = targets
        self._optimized: frozenset[int] | None = None
        self._traced: frozenset[int] | None = None

    def forget(self) -> None:
        """Is told that there is another optimizer."""
        self._optimized = None

    def keep_optimized(self) -> None:
        """Is told that the optimizer has been built for what is trained."""
        self._optimized = self._present

    def keep_traced(self) -> bool:
        """Is told that updates are to be run.

        Returns:
            bool: whether they have been traced for other variables.
        """
        traced, self._traced = self._traced, self._present
        return traced is not None and traced != self._traced

    def check(self) -> None:
        """Refuses to train nothing, or what the optimizer does not know.

        Raises:
            ValueError: If all is frozen, or something no longer is.
        """
        # `trainable = True` of the agent is said to its target networks too.
        self._targets.freeze()
        if not self._agent.trainable_variables:
            raise nothing_to_train(self._agent.name)
        if self._optimized is None:
            return
        for variable in self._agent.trainable_variables:
            if id(variable) not in self._optimized:
                raise ValueError(
                    "Expected `compile` after something was made trainable "
                    "that had been frozen: the optimizer knows nothing of it. "
                    f"Received: {variable.path!r}"
                )

    @property
    def _present(self) -> frozenset[int]:
        """What is trained at present."""
        return frozenset(map(id, self._agent.trainable_variables))


def nothing_to_train(name: str | None = None) -> ValueError:
    """Returns what is raised where an update would have nothing to change.

    Args:
        name: str or None. Of the agent, where it is known. Defaults to
            `None`.
    """
    what = "an agent" if name is None else repr(name)
    return ValueError(
        "Expected something to train: set `trainable = True` of the agent, or "
        "of a network or layer of it, and compile it again. Received: "
        f"{what}, of which all variables are frozen"
    )
