"""The format of the actions in a rollout."""

import dataclasses

import numpy as np
import numpy.typing as npt


@dataclasses.dataclass(frozen=True)
class ActionFormat:
    """The form of a policy's own actions, as plain data.

    It is a policy head without the mathematics. Stepping environments needs
    no more, and it can be sent to a process without Keras.

    Attributes:
        action_shape: tuple of int. Shape of one action, as stored.
        action_dtype: str. Its dtype.
        choices: tuple of pairs of int. For each choice that has to be made,
            begin and end of its flags in an action mask. Defaults to `()`:
            no mask can forbid too much.

    Example:

    >>> two_of_three = ActionFormat((2,), "int32", ((0, 3), (3, 6)))
    >>> two_of_three.leaves_nothing(np.array([[1, 0, 0, 0, 0, 0]]))
    array([ True])
    """

    action_shape: tuple[int, ...]
    action_dtype: str
    choices: tuple[tuple[int, int], ...] = ()

    def leaves_nothing(self, mask: npt.NDArray[np.generic]) -> np.ndarray:
        """Returns where a mask forbids all options of a choice.

        Args:
            mask: `[B, mask_size]`. 1 where something may be chosen, else 0.

        Returns:
            `[B]` bool.
        """
        allowed = np.asarray(mask) > 0
        nothing = np.zeros(allowed.shape[:-1], np.bool_)
        for start, end in self.choices:
            nothing |= ~allowed[..., start:end].any(axis=-1)
        return nothing
