"""The default round of an algorithm, for datasets without a setting."""

from typing import NamedTuple


class OwnRollout(NamedTuple):
    """The rollouts that an on-policy algorithm learns from by default.

    Attributes:
        steps: int. Steps of a round, of all environments together.
        passes: int. Times that every step is trained on.
        batch_size: int or None. Steps of one minibatch; None for the whole
            rollout. It grows with the round where many environments make that
            longer, so that the number of updates stays.
        shortest: int. Steps that each environment takes at least. Defaults to
            `32`.
        scale_rewards: bool. Whether rewards are divided by the running
            deviation of the discounted return. Defaults to `True`.
        rounds_per_epoch: int. Rounds of one Keras epoch. Defaults to `1`.

    Example:

    >>> own = OwnRollout(steps=2048, passes=10, batch_size=64)
    >>> own.horizon(1), own.horizon(8), own.horizon(100)
    (2048, 256, 32)
    >>> own.minibatch(2048, num_envs=1), own.minibatch(8192, num_envs=256)
    (64, 256)
    """

    steps: int
    passes: int
    batch_size: int | None
    shortest: int = 32
    scale_rewards: bool = True
    rounds_per_epoch: int = 1

    def horizon(self, num_envs: int) -> int:
        """Returns the steps of each environment.

        Args:
            num_envs: int.

        Returns:
            int. A multiple of `shortest`, for sequences to divide it.
        """
        times = -(-self.steps // (num_envs * self.shortest))
        return times * self.shortest

    def minibatch(self, steps: int, num_envs: int) -> int:
        """Returns the steps of one minibatch of a round.

        Args:
            steps: int. Steps of the round, which may be the user's setting.
            num_envs: int. Number of environments. With many of them, a round
                of the algorithm's own is longer than its `steps`.

        Returns:
            int. At most `steps`.
        """
        if self.batch_size is None:
            return steps
        times = self.horizon(num_envs) * num_envs // self.steps
        return min(times * self.batch_size, steps)
