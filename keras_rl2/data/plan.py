"""What a `fit` is to do, and how much of it is done."""

import dataclasses

from keras_rl2.basics import arguments
from keras_rl2.data.round_dataset import RoundDataset


@dataclasses.dataclass(frozen=True)
class Plan:
    """The length of a `fit`, the position where it begins, and its end.

    A checkpoint holds it, so that another process can complete the `fit`.

    Attributes:
        epochs: int or None. See `Agent.fit`.
        total_steps: int or None. See `Agent.fit`.
        first_epoch: int. The Keras epoch at its beginning.
        warm_up: int. Environment steps before its first update.
        env_steps: int. Environment steps of the agent at its beginning.
        rounds_per_epoch: int. Rounds of a Keras epoch.
        last_epoch: int. The Keras epoch that it ends before.
        epoch: int. The present Keras epoch.
        rounds: int. Rounds of that epoch that are done.

    Raises:
        ValueError: If a number is out of bounds, or there are both `epochs` and
            `total_steps`.

    Example:

    >>> import keras_rl2 as rl
    >>> rollouts = rl.RolloutDataset("CartPole-v1", horizon=100, passes=1)
    >>> rollouts.bind(rl.PPO.for_env("CartPole-v1", seed=0))
    >>> plan = Plan(total_steps=2500).on(rollouts, env_steps=0)
    >>> plan.rounds_per_epoch, plan.last_epoch
    (13, 2)
    """

    epochs: int | None = None
    total_steps: int | None = None
    first_epoch: int = 0
    warm_up: int = 0
    env_steps: int = 0
    rounds_per_epoch: int = 1
    last_epoch: int = 0
    epoch: int = 0
    rounds: int = 0

    def __post_init__(self) -> None:
        arguments.check_positive(
            **arguments.present(
                epochs=self.epochs, total_steps=self.total_steps
            )
        )
        arguments.check_at_least(0, initial_epoch=self.first_epoch)
        if self.epochs is not None and self.total_steps is not None:
            raise ValueError(
                "Expected either `epochs` or `total_steps`. Received: "
                f"epochs={self.epochs}, total_steps={self.total_steps}"
            )

    def on(self, dataset: RoundDataset, env_steps: int) -> "Plan":
        """Returns the plan for a dataset, from the beginning.

        Args:
            dataset: `RoundDataset`. Bound to the agent.
            env_steps: int. Environment steps of the agent so far.
        """
        begun = dataclasses.replace(
            self,
            warm_up=dataset.steps_before_first_round,
            env_steps=env_steps,
            epoch=self.first_epoch,
        )
        return begun._with_epochs(dataset)

    def resumed(
        self, saved: "Plan", dataset: RoundDataset, env_steps: int
    ) -> "Plan":
        """Returns the plan from the position of an earlier one.

        Resets count for `total_steps`, but are not steps of the agent. If
        `total_steps` is higher than before, and than the steps taken, training
        goes on, even if the epochs of so many steps are over.

        Args:
            saved: `Plan`. The same `fit`, with its position.
            dataset: `RoundDataset`. Bound to the agent.
            env_steps: int. Environment steps of the agent so far.
        """
        plan = dataclasses.replace(
            saved, epochs=self.epochs, total_steps=self.total_steps
        )._with_epochs(dataset)
        if self.total_steps is None or saved.total_steps is None:
            return plan
        last, left = 0, self.total_steps - (env_steps - saved.env_steps)
        if self.total_steps == saved.total_steps:
            last = saved.last_epoch
        elif self.total_steps > saved.total_steps and left > 0:
            steps = plan.rounds_per_epoch * dataset.fewest_steps_per_round
            last = saved.epoch - (-left // steps)
        return dataclasses.replace(plan, last_epoch=max(plan.last_epoch, last))

    def _with_epochs(self, dataset: RoundDataset) -> "Plan":
        """Returns the plan with the rounds of an epoch and the last epoch."""
        if self.total_steps is None:
            return dataclasses.replace(
                self,
                rounds_per_epoch=dataset.rounds_per_epoch,
                last_epoch=self.epochs or 1,
            )
        updating = self.total_steps - self.warm_up
        if updating <= 0:
            raise ValueError(
                "Expected `total_steps` to be more than the "
                f"{self.warm_up} steps that are taken before the first "
                "update: pass more steps, or a smaller `warm_up`. "
                f"Received: total_steps={self.total_steps}"
            )
        of_round = dataset.fewest_steps_per_round
        rounds = dataset.rounds_of_epoch(-(-updating // of_round))
        last = self.first_epoch - (-updating // (rounds * of_round))
        return dataclasses.replace(
            self, rounds_per_epoch=rounds, last_epoch=last
        )

    def steps_left(self, env_steps: int) -> int | None:
        """Returns the environment steps that are left; None if it has epochs.

        Args:
            env_steps: int. Environment steps of the agent so far.
        """
        if self.total_steps is None:
            return None
        return max(self.total_steps - (env_steps - self.env_steps), 0)

    def is_covered_by(self, saved: "Plan") -> bool:
        """Returns whether an earlier plan was for as many steps or epochs."""
        if self.total_steps is None or saved.total_steps is None:
            return self.last_epoch <= saved.last_epoch
        return self.total_steps <= saved.total_steps
