"""Faults of a training that its logs show, with remedies."""

import math
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from keras_rl2.basics.outliers import Outliers

_LARGEST_STEP = 0.1
_LEAST_ENTROPY = 0.01
_USELESS_EPOCHS = 10


class TrainingWarning(UserWarning):
    """Warning of `Diagnostics` of a fault in a training, with a remedy.

    Example:

    >>> import warnings
    >>> warnings.simplefilter("error", TrainingWarning)
    """


class Faults:
    """Detects known faults in the logs of epochs, each once.

    Missing values and NaN are no faults, except for the norm of gradients.

    Args:
        discrete: bool. Whether actions are choices: the entropy of others has
            no lower bound. Defaults to `False`.
        scales_loss: bool. Whether the optimizer scales the loss, and skips
            updates that overflow, which is no fault. Defaults to `False`.
        outliers: Mapping or None. What running statistics have left out, by
            its key in the logs. Defaults to `None`.
    """

    def __init__(
        self,
        discrete: bool = False,
        scales_loss: bool = False,
        outliers: Mapping[str, Outliers] | None = None,
    ) -> None:
        self.discrete = discrete
        self.scales_loss = scales_loss
        self.outliers = outliers or {}
        counts = {key: each.count for key, each in self.outliers.items()}
        #: What further epochs depend on, as plain data.
        self.state: dict[str, Any] = {
            "warned": [],
            "entropy": None,
            "useless_epochs": 0,
            "outliers": counts,
        }

    def in_logs(self, logs: Mapping[str, float]) -> list[str]:
        """Returns a message for each fault that has not been found before.

        Args:
            logs: Mapping. The logs of an epoch.
        """
        found = dict(self._found(logs))
        new = [name for name in found if name not in self.state["warned"]]
        self.state["warned"] += new
        return [found[name] for name in new]

    def _found(self, logs: Mapping[str, float]) -> Iterator[tuple[str, str]]:
        """Yields name and message of each fault of an epoch."""
        divergence = logs.get("approx_kl", 0.0)
        if divergence > _LARGEST_STEP:
            yield (
                "policy step",
                "The policy moves too far in one round: approx_kl="
                f"{divergence:.3g} is above {_LARGEST_STEP}, where the loss is "
                "a poor estimate of the new policy. Lower the learning rate or "
                "`passes`, or set `target_kl`",
            )
        yield from self._entropy(logs.get("entropy", math.nan))
        yield from self._critic(logs.get("explained_variance", math.nan))
        norm = logs.get("gradient_norm", 0.0)
        skipped = int(logs.get("skipped_updates", 0))
        if not self.scales_loss and (skipped or not math.isfinite(norm)):
            yield (
                "gradients",
                f"Gradients are not finite: gradient_norm={norm}, "
                f"skipped_updates={skipped}. These updates changed no weight: "
                "look for rewards and observations that are far too large, "
                "scale them, and lower the learning rate",
            )
        for key, each in self.outliers.items():
            if each.count > self.state["outliers"].get(key, 0):
                yield (
                    key,
                    "A value is so far from all others that normalisation does "
                    f"not follow it: {each.newest}, {key}={each.count}. If the "
                    "environment is at fault, correct it there. Rare but "
                    "correct values do no harm",
                )

    def _entropy(self, entropy: float) -> Iterator[tuple[str, str]]:
        """Compares the entropy of choices with the first one."""
        if not self.discrete or not math.isfinite(entropy):
            return
        if self.state["entropy"] is None:
            self.state["entropy"] = entropy
        first = self.state["entropy"]
        if entropy < _LEAST_ENTROPY * first:
            yield (
                "entropy",
                f"The policy hardly explores any more: entropy={entropy:.3g} "
                f"is below {_LEAST_ENTROPY:.0%} of the {first:.3g} at first. "
                "Unless the return is optimal, raise `entropy_coefficient` "
                "(for SAC `target_entropy`) or lower the learning rate",
            )

    def _critic(self, explained: float) -> Iterator[tuple[str, str]]:
        """Counts epochs in which values predict worse than a mean would."""
        epochs = self.state["useless_epochs"] + 1 if explained < 0.0 else 0
        self.state["useless_epochs"] = epochs
        if epochs >= _USELESS_EPOCHS:
            yield (
                "critic",
                "The critic predicts returns worse than their mean would: "
                f"explained_variance={explained:.3g}, below 0 for {epochs} "
                "epochs. Raise the critic's learning rate (`critic_optimizer`) "
                "or `value_coefficient`, and scale rewards (`scale_rewards`) "
                "and observations (`normalize_observations`)",
            )
