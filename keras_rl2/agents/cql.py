"""Conservative Q-learning."""

import math
from collections.abc import Sequence
from typing import Any
from typing import ClassVar
from typing import Self
from typing import Unpack
from typing import cast

import gymnasium
import keras
from keras import ops

from keras_rl2 import losses
from keras_rl2.agents.dqn import DQN
from keras_rl2.agents.dqn import DQNArguments
from keras_rl2.agents.off_policy_agent import OffPolicyAgent
from keras_rl2.agents.sac import SAC
from keras_rl2.agents.sac import CrossQArguments
from keras_rl2.agents.sac import SACArguments
from keras_rl2.basics import arguments
from keras_rl2.basics.shapes import Tensor
from keras_rl2.networks import checks as network_checks
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.updates import critics
from keras_rl2.updates.critics import GivenCritics
from keras_rl2.updates.updater import Batch
from keras_rl2.updates.updater import Terms


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

    default_adam = {"learning_rate": 3e-4}
    #: Subclasses by class of action space.
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
        lowest = 0.0 if threshold is None else 1e-12
        arguments.check_in_range(alpha=(alpha, lowest, 1e12))
        if threshold is not None:
            arguments.check_in_range(threshold=(threshold, -1e12, 1e12))
        arguments.check_positive(num_samples=num_samples)
        named = arguments.present(
            q_network=q_network, actor=actor, critic=critic
        )
        # Each kind has the networks' class as its second base.
        super().__init__(*networks, **named, **kwargs)  # type: ignore[misc]
        self.alpha = alpha
        self.threshold = threshold
        self.num_samples = num_samples
        self.log_alpha: keras.Variable | None = None
        if threshold is not None:
            self.log_alpha = self.add_weight(
                shape=(),
                initializer=keras.initializers.Constant(math.log(alpha)),
                name="log_alpha",
            )

    def __new__(cls, *networks: Any, **given: Any) -> Self:
        """Makes an agent of the class that takes these networks."""
        pair = len(networks) > 1 or "actor" in given or "critic" in given
        spaces = gymnasium.spaces
        kind = cls.kinds[spaces.Box if pair else spaces.Discrete]
        made = kind if cls is CQL else cls
        return OffPolicyAgent.__new__(made, *networks, **given)

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

    @classmethod
    def for_action_space(
        cls, action_space: gymnasium.Space[Any]
    ) -> "type[CQL]":
        """Returns the class of agents for an action space."""
        if cls is not CQL:
            return cls
        network_checks.check_action_kind(cls, action_space, tuple(cls.kinds))
        kinds = cls.kinds.items()
        return next(kind for s, kind in kinds if isinstance(action_space, s))

    @property
    def _critic_variables(self) -> list[keras.Variable]:
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


@keras.saving.register_keras_serializable(package="keras_rl2")
class DiscreteCQL(CQL, DQN):
    """Conservative Q-learning of Discrete actions: `DQN` with a penalty.

    `CQL` makes it for Discrete actions. All flags of `DQN` are supported; with
    an action mask, the sum of the penalty is over allowed actions.

    Args:
        alpha: float. Weight of the penalty. Defaults to `1.0`.
        threshold: float or None. Target of the penalty, where α is learned: α
            grows while the penalty is larger, and falls while it is smaller.
            None for a constant α. Defaults to `None`.

    Raises:
        ValueError: If an argument is out of range or the network does not
            fit.

    Example:

    >>> import keras_rl2 as rl
    >>> replay = rl.ReplayDataset("CartPole-v1", batch_size=32, warm_up=64,
    ...                           rounds_per_epoch=1, seed=0)
    >>> agent = rl.agents.DiscreteCQL.for_env("CartPole-v1", hidden=(32,),
    ...                                       double=True, seed=0)
    >>> history = agent.fit(replay, epochs=2, verbose=0)
    >>> sorted(history.history)[:3]
    ['alpha', 'cql_penalty', 'env_steps']

    Reference:
        - [Kumar et al., 2020](https://arxiv.org/abs/2006.04779), CQL(H).
    """

    statistics_names = (*DQN.statistics_names, "cql_penalty", "alpha")

    def __init__(
        self,
        q_network: keras.Model,
        *,
        alpha: float = 1.0,
        threshold: float | None = None,
        **kwargs: Unpack[DQNArguments],
    ) -> None:
        super().__init__(q_network, alpha=alpha, threshold=threshold, **kwargs)

    def loss_terms(self, outputs: Tensor, batch: Batch) -> Terms:
        """Computes the loss of a minibatch: TD errors and the penalty."""
        terms = super().loss_terms(outputs, batch)
        values = self.allowed_values(batch["observation"], outputs)
        penalty = losses.conservative_q(values, batch["action"])
        return self.conservative_terms(terms, [penalty], batch["weight"])


@keras.saving.register_keras_serializable(package="keras_rl2")
class BoxCQL(CQL, SAC):
    """Conservative Q-learning of Box actions: `SAC` with a penalty.

    `CQL` makes it for Box actions. The sum over actions is estimated from
    samples of three distributions: uniform, the policy, and the policy at the
    next observation; each sample is weighted by its inverse probability.
    Losses are ½ mean squares: halve the `alpha` of implementations without the
    factor ½.

    Args:
        alpha: float. Weight of the penalty. It has the unit of Q-values: among
            actions that differ by less, the policy imitates the data instead
            of finding better actions. Defaults to `2.5`.
        num_samples: int. For Box actions, number of samples from each of the
            three distributions. Defaults to `10`.
        threshold: float or None. See `CQL`; published values for MuJoCo are 5
            and 10. Defaults to `None`.

    Raises:
        ValueError: If a number is out of range or a network does not fit.

    Example:

    >>> import keras_rl2 as rl
    >>> agent = rl.agents.BoxCQL.for_env("Pendulum-v1", hidden=(32,),
    ...                                  threshold=5.0, seed=0)
    >>> agent.alpha, agent.threshold, agent.num_samples
    (2.5, 5.0, 10)
    >>> agent.act([1.0, 0.0, 0.5], deterministic=True).shape
    (1,)

    Reference:
        - [Kumar et al., 2020](https://arxiv.org/abs/2006.04779), appendix F.
    """

    action_kinds = (gymnasium.spaces.Box,)
    statistics_names = (*SAC.statistics_names, "cql_penalty", "alpha")

    def __init__(
        self,
        actor: keras.Model,
        critic: GivenCritics,
        *,
        alpha: float = 2.5,
        num_samples: int = 10,
        threshold: float | None = None,
        **kwargs: Unpack[SACArguments],
    ) -> None:
        super().__init__(
            actor,
            critic,
            alpha=alpha,
            threshold=threshold,
            num_samples=num_samples,
            **kwargs,
        )

    def critic_terms(self, values: list[Tensor], batch: Batch) -> Terms:
        """Computes the loss of the critics on a minibatch, with the penalty."""
        terms = super().critic_terms(values, batch)
        encoded = self.task.encode(batch["observation"])
        action, log_prob = self.sampled_actions(batch)
        batch_size, samples = ops.shape(log_prob)
        # [B, ...] -> [B * N, ...]
        repeated = map_leaves(
            lambda each: ops.repeat(each, samples, axis=0), encoded
        )
        flat = ops.reshape(action, (-1, action.shape[-1]))
        each_value = critics.action_values(
            self.critics, repeated, flat, training=True
        )
        penalties = [
            losses.sampled_conservative_q(
                ops.reshape(value, (batch_size, samples)), log_prob, taken
            )
            for value, taken in zip(each_value, values, strict=True)
        ]
        return self.conservative_terms(terms, penalties, batch["weight"])

    def sampled_actions(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Draws the actions at which Q-values are lowered.

        Args:
            batch: dict of `[B, ...]`; see `train_step`.

        Returns:
            Actions `[B, 3 N, A]` in the unit box and their log-probabilities
            `[B, 3 N]`: uniform samples, the policy's, and the policy's at the
            next observations. Both are constants.
        """
        encoded = self.task.encode(batch["observation"])
        shape = (
            ops.shape(leaves(encoded)[0])[0],
            self.num_samples,
            *self.policy_head.action_shape,
        )
        uniform = self.draw_uniform(shape, 2)
        density = -math.log(2.0) * shape[-1]
        drawn = [
            (uniform, ops.full_like(uniform[:, :, 0], density)),
            self._of_policy(batch["observation"], shape, 3),
            self._of_policy(batch["next_observation"], shape, 4),
        ]
        actions, log_probs = zip(*drawn, strict=True)
        return (
            ops.stop_gradient(ops.concatenate(actions, axis=1)),
            ops.stop_gradient(ops.concatenate(log_probs, axis=1)),
        )

    def _of_policy(
        self, observation: Tree[Tensor], shape: tuple[Any, ...], stream: int
    ) -> tuple[Tensor, Tensor]:
        """Draws actions `[B, N, A]` of the policy, with log-probabilities."""
        batch_size, samples, size = shape
        parameters = ops.repeat(self(observation), samples, axis=0)
        noise = self.draw_normal((batch_size * samples, size), stream)
        policy = self.policy_head(parameters)
        action, log_prob = policy.sample_and_log_prob(noise)
        return (
            ops.reshape(action, shape),
            ops.reshape(log_prob, (batch_size, samples)),
        )


CQL.kinds = {
    gymnasium.spaces.Box: BoxCQL,
    gymnasium.spaces.Discrete: DiscreteCQL,
}
