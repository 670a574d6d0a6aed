"""Conservative Q-learning."""

import math
from collections.abc import Sequence
from typing import Any
from typing import ClassVar
from typing import Self
from typing import cast

import gymnasium
import keras
from keras import ops

from keras_rl2 import losses
from keras_rl2.agents import network_checks
from keras_rl2.agents.objective import Terms
from keras_rl2.agents.off_policy_agent import OffPolicyAgent
from keras_rl2.arguments import check_in_range
from keras_rl2.shapes import Tensor


class CQL(OffPolicyAgent):
    """Conservative Q-learning, for Discrete and Box actions.

    Learns from a fixed dataset, which says nothing of most actions. A critic
    that is too optimistic about one of them is never corrected, and the policy
    would choose just that one; so values of actions are lowered, but for those
    in the data. To the loss of each critic it adds

        α mean(log Σ_a exp Q(s, a) - Q(s, a_data))

    By that, `CQL.for_env` makes a `keras_rl2.agents.DiscreteCQL` of `DQN`, or
    a `BoxCQL` of `SAC`; so does `CQL(q_network)` or `CQL(actor, critic)`. Both
    take the arguments of what they are made of too, and go on online from a
    `ReplayDataset`.

    Args:
        *networks: `keras.Model`. Those of `DQN`, or of `SAC`.
        alpha: float. α; with a `threshold`, above 0, and what it begins with.
        threshold: float or None. Where α is to be learned, the penalty that
            it aims at: α grows while the penalty is larger, and falls while it
            is smaller. None for a fixed α. Defaults to `None`.
        **kwargs: Those of both kinds: `gamma`, `max_gradient_norm`, `tau`,
            `target_every`, `observation_space`, `action_space`, `seed`,
            `name`, `dtype`. Of Discrete actions those of `DQN`: `q_network`,
            `double`, `dueling`, `distributional`, `atoms`, `support`, `loss`,
            `epsilon`, `epsilon_spread`. Of a Box `num_samples` of `BoxCQL` and
            those of `SAC`: `actor`, `critic`, `temperature`,
            `learn_temperature`, `target_entropy`, `exploration`.

    Raises:
        ValueError: If a number is out of range or a network does not fit.

    Example:

    >>> import keras_rl2 as rl
    >>> agent = rl.CQL.for_env("CartPole-v1", hidden=(32,), alpha=0.5, seed=0)
    >>> type(agent).__name__, isinstance(agent, rl.DQN)
    ('DiscreteCQL', True)
    >>> agent = rl.CQL.for_env("Pendulum-v1", hidden=(32,), seed=0)
    >>> type(agent).__name__, isinstance(agent, rl.CQL)
    ('BoxCQL', True)

    Reference:
        - [Kumar et al., 2020](https://arxiv.org/abs/2006.04779).
    """

    #: What it is for each kind of action space, which name themselves here.
    kinds: ClassVar[dict[type[gymnasium.Space[Any]], type["CQL"]]] = {}

    def __new__(cls, *networks: Any, **kwargs: Any) -> Self:
        """Makes one of `kinds`, by the networks that are given."""
        kind: type[CQL] = cls
        if cls is CQL:
            pair = len(networks) > 1 or "actor" in kwargs or "critic" in kwargs
            spaces = gymnasium.spaces
            kind = cls.kinds[spaces.Box if pair else spaces.Discrete]
        return cast(Self, super().__new__(kind))

    def __init__(
        self,
        *networks: Any,
        alpha: float,
        threshold: float | None = None,
        **kwargs: Any,
    ) -> None:
        lowest = 0.0 if threshold is None else 1e-12
        check_in_range(alpha=(alpha, lowest, 1e12))
        if threshold is not None:
            check_in_range(threshold=(threshold, -1e12, 1e12))
        super().__init__(*networks, **kwargs)
        self.alpha = alpha
        self.threshold = threshold
        self.log_alpha: keras.Variable | None = None
        if threshold is not None:
            self.log_alpha = self.add_weight(
                shape=(),
                initializer=keras.initializers.Constant(math.log(alpha)),
                name="log_alpha",
            )

    @classmethod
    def argument_names(cls) -> list[str]:
        """Returns the arguments that the constructor takes, of either kind."""
        if cls is not CQL:
            return super().argument_names()
        names = (kind.argument_names() for kind in cls.kinds.values())
        return sorted(set().union(*names))

    @classmethod
    def for_action_space(
        cls, action_space: gymnasium.Space[Any]
    ) -> "type[CQL]":
        """Returns the class of agents for an action space."""
        if cls is not CQL:
            return cls
        network_checks.check_action_kind(cls, action_space, tuple(cls.kinds))
        [kind] = [
            kind
            for space, kind in cls.kinds.items()
            if isinstance(action_space, space)
        ]
        return kind

    def default_optimizer(self) -> keras.optimizers.Optimizer:
        """Returns the optimizer that `compile("auto")` uses."""
        return keras.optimizers.Adam(3e-4)

    @property
    def _own_variables(self) -> list[keras.Variable]:
        """Variables of the critics' loss that are in no network."""
        return [] if self.log_alpha is None else [self.log_alpha]

    def conservative_terms(
        self, terms: Terms, penalties: Sequence[Tensor], weight: Tensor
    ) -> Terms:
        """Adds penalties to the loss of critics.

        Args:
            terms: dict. What the critics' TD errors cost.
            penalties: Sequence of `[B]`. Of each critic.
            weight: `[B]`. What each transition counts.

        Returns:
            dict: `loss`, a scalar, with α times the penalties and with what α
            itself costs; `cql_penalty`, their mean; `alpha`; and the rest.
        """
        total = cast(Tensor, sum(penalties))
        mean = total / len(penalties)
        loss, alpha = terms["loss"], ops.convert_to_tensor(self.alpha)
        if self.log_alpha is not None:
            log_alpha = ops.convert_to_tensor(self.log_alpha)
            alpha = ops.stop_gradient(ops.exp(log_alpha))
            # As of a temperature: it grows by what the penalty is too large.
            loss += ops.mean(
                losses.temperature_loss(
                    log_alpha, -mean, -cast(float, self.threshold)
                )
            )
        return {
            **terms,
            "loss": loss + alpha * ops.mean(weight * total),
            "cql_penalty": ops.mean(mean),
            "alpha": alpha,
        }

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor as plain data."""
        return {
            **super().get_config(),
            "alpha": self.alpha,
            "threshold": self.threshold,
        }
