"""Rules that detect faults of a training in its logs, and suggest remedies.

Each rule is called once per epoch with the logs, a dict of floats, and returns
a warning or None. Missing values and NaN cause no warning (except for the norm
of gradients).
"""

import math
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

from keras_rl2.basics.outliers import Outliers

Rule = Callable[[Mapping[str, float]], str | None]


class TrainingWarning(UserWarning):
    """Warning of `Diagnostics` of a fault in a training, with a remedy.

    Example:

    A filter turns the first one into an error:

    >>> import warnings
    >>> warnings.simplefilter("error", TrainingWarning)
    """


def large_policy_step(
    logs: Mapping[str, float], limit: float = 0.1
) -> str | None:
    """Warns of a policy that moves too far from the behavior policy.

    Args:
        logs: dict of floats with `approx_kl`, in nats.
        limit: float. Largest divergence without a warning. Defaults to `0.1`;
            PPO usually stays at 0.01 to 0.05.

    Returns:
        The warning, or None.
    """
    divergence = logs.get("approx_kl", 0.0)
    if not divergence > limit:
        return None
    return (
        f"The policy moves too far in one round: approx_kl={divergence:.3g} "
        f"is above {limit:g}, where the loss is a poor estimate of the new "
        "policy. Lower the learning rate or `passes`, or set `target_kl`"
    )


class EntropyCollapse:
    """Warns of a policy with discrete actions that hardly explores any more.

    The entropy of continuous actions has no lower bound.

    Args:
        share: float. Share of the first entropy below which it has collapsed.
            Defaults to `0.01`.
    """

    def __init__(self, share: float = 0.01) -> None:
        self.share = share
        self.first: float | None = None

    def __call__(self, logs: Mapping[str, float]) -> str | None:
        """Compares the entropy with the first one.

        Args:
            logs: dict of floats with `entropy`, in nats.

        Returns:
            The warning, or None.
        """
        entropy = logs.get("entropy", math.nan)
        if not math.isfinite(entropy):
            return None
        if self.first is None:
            self.first = entropy
        if not entropy < self.share * self.first:
            return None
        return (
            f"The policy hardly explores any more: entropy={entropy:.3g} is "
            f"below {self.share:.0%} of the {self.first:.3g} at first. Unless "
            "the return is optimal, raise `entropy_coefficient` (for SAC "
            "`target_entropy`) or lower the learning rate"
        )


class UselessCritic:
    """Warns of values that predict returns worse than their mean would.

    Args:
        epochs: int. Epochs in a row before it warns. Defaults to `10`.
    """

    def __init__(self, epochs: int = 10) -> None:
        self.epochs = epochs
        self.in_a_row = 0

    def __call__(self, logs: Mapping[str, float]) -> str | None:
        """Counts epochs with a negative explained variance.

        Args:
            logs: dict of floats with `explained_variance`.

        Returns:
            The warning, or None.
        """
        explained = logs.get("explained_variance", math.nan)
        self.in_a_row = self.in_a_row + 1 if explained < 0.0 else 0
        if self.in_a_row < self.epochs:
            return None
        return (
            "The critic predicts returns worse than their mean would: "
            f"explained_variance={explained:.3g}, below 0 for "
            f"{self.in_a_row} epochs. Raise the critic's learning rate "
            "(`critic_optimizer`) or `value_coefficient`, and scale rewards "
            "(`scale_rewards`) and observations (`normalize_observations`)"
        )


class Overestimation:
    """Warns of Q-values above the highest possible return.

    No sum of discounted rewards is above max |reward| / (1 - gamma). The bonus
    for entropy in SAC's values is added to the rewards.

    Args:
        gamma: float. Discount factor; there is no bound for 1.
        factor: float. Factor by which values may exceed the bound. Defaults
            to `1.5`.
    """

    def __init__(self, gamma: float, factor: float = 1.5) -> None:
        self.gamma = gamma
        self.factor = factor

    def __call__(self, logs: Mapping[str, float]) -> str | None:
        """Compares Q-values with their bound.

        Args:
            logs: dict of floats with `q_value` and `largest_reward`, the
                largest |reward| so far (0 if there was none); and optionally
                `temperature` and `entropy`.

        Returns:
            The warning, or None.
        """
        largest = logs.get("largest_reward", 0.0)
        if not largest > 0.0 or self.gamma >= 1.0:
            return None
        bonus = logs.get("temperature", 0.0) * logs.get("entropy", 0.0)
        bound = (largest + max(bonus, 0.0)) / (1.0 - self.gamma)
        value = logs.get("q_value", 0.0)
        if not value > self.factor * bound:
            return None
        return (
            f"Values are overestimated: q_value={value:.4g} is more than "
            f"{self.factor:g} times the {bound:.4g} that rewards of up to "
            f"{largest:.4g} add up to. Lower the learning rate, slow the "
            "target networks down (`TargetNetworkSync`), clip gradients "
            "(`max_gradient_norm`); for DQN set `double=True`"
        )


def gradient_not_finite(logs: Mapping[str, float]) -> str | None:
    """Warns of updates that were skipped because of infinite gradients.

    Args:
        logs: dict of floats with `gradient_norm`, of updates that were not
            skipped if there were any, and `skipped_updates`.

    Returns:
        The warning, or None.
    """
    norm = logs.get("gradient_norm", 0.0)
    skipped = int(logs.get("skipped_updates", 0))
    if math.isfinite(norm) and not skipped:
        return None
    return (
        f"Gradients are not finite: gradient_norm={norm}, "
        f"skipped_updates={skipped}. These updates changed no weight: look "
        "for rewards and observations that are far too large, scale them, and "
        "lower the learning rate"
    )


def many_dead_units(
    logs: Mapping[str, float], limit: float = 0.5
) -> str | None:
    """Warns of networks with many dead ReLU units.

    Args:
        logs: dict of floats with `dead_units`, a share.
        limit: float. Largest share without a warning. Defaults to `0.5`.

    Returns:
        The warning, or None.
    """
    share = logs.get("dead_units", 0.0)
    if not share > limit:
        return None
    return (
        f"{share:.0%} of the hidden ReLU units are dead: they are 0 for all "
        "of the recent observations, and learn nothing from those. Lower the "
        "learning rate, normalise observations (`normalize_observations`), "
        "or use another activation (`tanh`, `elu`)"
    )


class FarOff:
    """Warns of a value that running statistics have ignored as an outlier.

    Args:
        key: str. The number of outliers in the logs.
        outliers: `keras_rl2.basics.outliers.Outliers`. The outliers; those
            counted before cause no warning.
    """

    def __init__(self, key: str, outliers: Outliers) -> None:
        self.key = key
        self.outliers = outliers
        self.before = outliers.count

    def __call__(self, logs: Mapping[str, float]) -> str | None:
        """Checks whether there are new outliers.

        Args:
            logs: dict of floats. Not used.

        Returns:
            The warning, or None.
        """
        del logs
        count = self.outliers.count
        if count <= self.before:
            return None
        return (
            "A value is so far from all others that normalisation does not "
            f"follow it: {self.outliers.newest}, {self.key}={count}. If the "
            "environment is at fault, correct it there, e.g. clip the values "
            "of a sensor. Rare but correct values do no harm"
        )


def rules_for(
    *,
    discrete: bool = False,
    gamma: float | None = None,
    scales_loss: bool = False,
    outliers: Mapping[str, Outliers] | None = None,
) -> list[Rule]:
    """Returns the rules that apply to an agent.

    Args:
        discrete: bool. Whether actions are discrete. Defaults to `False`.
        gamma: float or None. Its discount factor. Defaults to `None`.
        scales_loss: bool. Whether the optimizer scales the loss, and skips
            updates with overflowing gradients, which is not a fault. Defaults
            to `False`.
        outliers: Mapping or None. The outliers of running statistics, by
            their key in the logs. Defaults to `None`.

    Returns:
        list of new rules.
    """
    rules: list[Rule] = [large_policy_step, UselessCritic(), many_dead_units]
    if discrete:
        rules.append(EntropyCollapse())
    if gamma is not None:
        rules.append(Overestimation(gamma))
    if not scales_loss:
        rules.append(gradient_not_finite)
    rules += [FarOff(key, each) for key, each in (outliers or {}).items()]
    return rules


def get_state(rules: Iterable[Rule]) -> dict[str, dict[str, Any]]:
    """Returns the state of rules.

    Args:
        rules: Iterable of the rules that have not warned yet.

    Returns:
        dict of plain data by the name of a rule.
    """
    return {
        _name(rule): {
            name: value for name, value in vars(rule).items() if name in _SEEN
        }
        for rule in rules
    }


def set_state(
    rules: Iterable[Rule], state: Mapping[str, Mapping[str, Any]]
) -> list[Rule]:
    """Returns the rules that have not warned yet, with their state.

    Args:
        rules: Iterable of new rules.
        state: dict, as returned by `get_state`.

    Returns:
        list of the rules that are in the state.
    """
    left = [rule for rule in rules if _name(rule) in state]
    for rule in left:
        vars(rule).update(state[_name(rule)])
    return left


# Attributes of the rules that compare epochs.
_SEEN = ("first", "in_a_row")


def _name(rule: Rule) -> str:
    """Returns the name of a function, or of the class of an object."""
    name: str = getattr(rule, "__name__", type(rule).__name__)
    return f"{name} {rule.key}" if isinstance(rule, FarOff) else name
