"""Conservative Q-learning."""

import math
from collections.abc import Collection
from collections.abc import Sequence
from typing import Any
from typing import ClassVar
from typing import Unpack
from typing import cast

import gymnasium
import keras
from keras import ops

from keras_rl2 import losses
from keras_rl2.agents.dqn import DQNArguments
from keras_rl2.agents.off_policy_agent import OffPolicyAgent
from keras_rl2.agents.sac import CrossQArguments
from keras_rl2.basics.arguments import check_in_range
from keras_rl2.basics.shapes import Tensor
from keras_rl2.networks import checks as network_checks
from keras_rl2.updates.critics import GivenCritics
from keras_rl2.updates.updater import Terms


def check_weight(alpha: float, threshold: float | None) -> None:
    """Checks the weight of a penalty.

    Args:
        alpha: float. See `CQL`.
        threshold: float or None. See `CQL`.

    Raises:
        ValueError: If a number is out of range.
    """
    lowest = 0.0 if threshold is None else 1e-12
    check_in_range(alpha=(alpha, lowest, 1e12))
    if threshold is not None:
        check_in_range(threshold=(threshold, -1e12, 1e12))


class CQLArguments(DQNArguments, CrossQArguments, total=False):
    """Arguments of `DQN` and `SAC`; see there."""


class CQL(OffPolicyAgent):
    """Conservative Q-learning, for Discrete and Box actions.

    Learns from a fixed dataset, which does not contain most actions. Where a
    critic overestimates one of these, it is never corrected, and the policy
    would choose just this action. Therefore the values of all actions are
    lowered, except those in the data. The loss of each critic has an
    additional term,

        α mean(log Σ_a exp Q(s, a) - Q(s, a_data))

    `CQL.for_env` makes a `keras_rl2.agents.DiscreteCQL`, based on `DQN`, or a
    `BoxCQL`, based on `SAC`; so does `CQL(q_network)` or `CQL(actor, critic)`.
    Both also take the arguments of their base, and can continue online from a
    `ReplayDataset`.

    Args:
        *networks: `keras.Model`. Networks of `DQN` or of `SAC`, in the order
            of their arguments.
        q_network: `keras.Model` or None. Network of `DQN`, as a keyword.
            Defaults to `None`.
        actor: `keras.Model` or None. Actor of `SAC`, as a keyword. Defaults to
            `None`.
        critic: `keras.Model`, a pair of them, or None. Critics of `SAC`, as a
            keyword. Defaults to `None`.
        alpha: float. α, weight of the penalty; with a `threshold` its initial
            value, above 0. The default for Box actions is 2.5. Defaults to
            `1.0`.
        threshold: float or None. Target of the penalty, where α is learned: α
            grows while the penalty is larger, and falls while it is smaller.
            None for a constant α. Defaults to `None`.
        num_samples: int. For Box actions, number of samples from each of the
            three distributions. Defaults to `10`.
        max_gradient_norm: float or None. Global norm to which gradients are
            clipped; None for no clipping. The default for Box actions is None.
            Defaults to `10.0`.
        tau: float. Polyak coefficient, above 0 and at most 1: a target network
            moves by this fraction towards the network that it follows; 1
            copies it. The default for Box actions is 0.005. Defaults to
            `0.01`.

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

    #: Subclasses by class of action space; each registers itself here.
    kinds: ClassVar[dict[type[gymnasium.Space[Any]], type["CQL"]]] = {}

    def __init__(
        self,
        *networks: GivenCritics,
        q_network: keras.Model | None = None,
        actor: keras.Model | None = None,
        critic: GivenCritics | None = None,
        alpha: float = 1.0,
        threshold: float | None = None,
        num_samples: int = 10,
        **kwargs: Unpack[CQLArguments],
    ) -> None:
        # The signature for users: each of `kinds` has its own constructor.
        raise NotImplementedError

    @classmethod
    def _kind_for(
        cls, networks: Sequence[Any], given: Collection[str]
    ) -> "type[CQL]":
        """Returns the class that takes these networks."""
        if cls is not CQL:
            return cls
        pair = len(networks) > 1 or "actor" in given or "critic" in given
        spaces = gymnasium.spaces
        return cls.kinds[spaces.Box if pair else spaces.Discrete]

    @classmethod
    def argument_chains(cls) -> list[Sequence[type]]:
        """Returns the classes whose constructors take the arguments.

        `CQL` takes those of its kinds, which do not call its constructor.
        """
        if cls is not CQL:
            return [[each for each in cls.__mro__ if each is not CQL]]
        spaces = gymnasium.spaces
        kinds = cls.kinds[spaces.Discrete], cls.kinds[spaces.Box]
        return [[CQL], *(kind.argument_chains()[0] for kind in kinds)]

    def _weigh_penalty(self, alpha: float, threshold: float | None) -> None:
        """Sets the weight of the penalty, a variable with a threshold."""
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
            terms: dict. Terms of the critics' TD errors.
            penalties: Sequence of `[B]`. Penalty of each critic.
            weight: `[B]`. Weight of each transition.

        Returns:
            dict: `loss`, a scalar, with α times the penalties and the loss of
            α itself; `cql_penalty`, their mean; `alpha`; and the other terms.
        """
        total = cast(Tensor, sum(penalties))
        mean = total / len(penalties)
        loss, alpha = terms["loss"], ops.convert_to_tensor(self.alpha)
        if self.log_alpha is not None:
            log_alpha = ops.convert_to_tensor(self.log_alpha)
            alpha = ops.stop_gradient(ops.exp(log_alpha))
            # Like a temperature, it grows while the penalty exceeds its target.
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
