"""What a rollout has to know of the actions that it holds."""

import dataclasses

import numpy as np
import numpy.typing as npt


@dataclasses.dataclass(frozen=True)
class ActionFormat:
    """The form of a policy's own actions, as plain data.

    A policy head without its mathematics: whatever steps environments needs
    no more, and can be sent to a process that has no Keras.

    Attributes:
        action_shape: tuple of int. Shape of one action, as stored.
        action_dtype: str. Its dtype.
        choices: tuple of pairs of int. For each choice that has to be made,
            where its flags begin and end in an action mask. Defaults to `()`:
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
        """Says where a mask forbids all there is of one choice.

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
