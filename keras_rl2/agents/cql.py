"""Conservative Q-learning."""

import math
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import ClassVar
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
from keras_rl2.agents.sac import SACArguments
from keras_rl2.basics import arguments
from keras_rl2.basics.shapes import Tensor
from keras_rl2.networks import checks as network_checks
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.updates.critics import GivenCritics
from keras_rl2.updates.updater import Batch
from keras_rl2.updates.updater import Terms


class CQLArguments(DQNArguments, SACArguments, total=False):
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
    `BoxCQL`, based on `SAC`; your own networks go to one of these. Both also
    take the arguments of their base, and can continue online from a
    `ReplayDataset`.

    Args:
        alpha: float. α, weight of the penalty. The default for Box actions is
            2.5. Defaults to `1.0`.
        num_samples: int. For Box actions, number of samples from each of the
            three distributions. Defaults to `10`.
        max_gradient_norm: float or None. Global norm to which gradients are
            clipped; None for no clipping. The default for Box actions is None.
            Defaults to `10.0`.
        tau: float. Polyak coefficient, above 0 and at most 1: a target network
            moves by this fraction towards the network that it follows; 1
            copies it. The default for Box actions is 0.005. Defaults to
            `0.01`.

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

    default_adam: Mapping[str, Any] = {"learning_rate": 3e-4}
    #: Subclasses by class of action space.
    kinds: ClassVar[dict[type[gymnasium.Space[Any]], type["CQL"]]] = {}

    def __init__(
        self,
        *networks: GivenCritics,
        alpha: float = 1.0,
        num_samples: int = 10,
        **kwargs: Unpack[CQLArguments],
    ) -> None:
        arguments.check_in_range(alpha=(alpha, 0.0, 1e12))
        arguments.check_positive(num_samples=num_samples)
        # Each kind has the networks' class as its second base.
        super().__init__(*networks, **kwargs)  # type: ignore[misc]
        self.alpha = alpha
        self.num_samples = num_samples

    @classmethod
    def argument_chains(cls) -> list[Sequence[type]]:
        """Returns the classes whose constructors take the arguments.

        `CQL` takes those of its kinds, which do not call its constructor.
        """
        if cls is not CQL:
            return [cls.__mro__]
        return [[CQL], *(kind.__mro__ for kind in cls.kinds.values())]

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

    def conservative_terms(
        self, terms: Terms, penalties: Sequence[Tensor], weight: Tensor
    ) -> Terms:
        """Adds penalties to the loss of critics.

        Args:
            terms: dict. Terms of the critics' TD errors.
            penalties: Sequence of `[B]`. Penalty of each critic.
            weight: `[B]`. Weight of each transition.

        Returns:
            dict: `loss`, a scalar, with α times the penalties; `cql_penalty`,
            their mean; `alpha`; and the other terms.
        """
        total = cast(Tensor, sum(penalties))
        penalty = self.alpha * ops.mean(weight * total)
        return {
            **terms,
            "loss": terms["loss"] + penalty,
            "cql_penalty": ops.mean(total / len(penalties)),
            "alpha": ops.convert_to_tensor(self.alpha),
        }


@keras.saving.register_keras_serializable(package="keras_rl2")
class DiscreteCQL(CQL, DQN):
    """Conservative Q-learning of Discrete actions: `DQN` with a penalty.

    `CQL` makes it for Discrete actions. All flags of `DQN` are supported; with
    an action mask, the sum of the penalty is over allowed actions.

    Args:
        alpha: float. Weight of the penalty. Defaults to `1.0`.
        loss: str. `"huber"` or `"mse"`; see `DQN`. Defaults to `"huber"`.

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
        **kwargs: Unpack[DQNArguments],
    ) -> None:
        kwargs.setdefault("loss", "huber")
        super().__init__(q_network, alpha=alpha, **kwargs)

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
        actor: `keras.Model` from observations to `[B, 2A]`, means and log
            standard deviations of a Box policy before tanh.
        alpha: float. Weight of the penalty. It has the unit of Q-values: among
            actions that differ by less, the policy imitates the data instead
            of finding better actions. Defaults to `2.5`.
        num_samples: int. For Box actions, number of samples from each of the
            three distributions. Defaults to `10`.

    Example:

    >>> import keras_rl2 as rl
    >>> agent = rl.agents.BoxCQL.for_env("Pendulum-v1", hidden=(32,), seed=0)
    >>> agent.alpha, agent.num_samples
    (2.5, 10)
    >>> agent.act([1.0, 0.0, 0.5], deterministic=True).shape
    (1,)

    Reference:
        - [Kumar et al., 2020](https://arxiv.org/abs/2006.04779), appendix F.
    """

    action_kinds = (gymnasium.spaces.Box,)
    statistics_names = (*SAC.statistics_names, "cql_penalty", "alpha")
    # Recorded data has no recurrent states.
    takes_memory = False
    # The sampled actions would count as data.
    takes_batch_normalization = False

    def __init__(
        self,
        actor: keras.Model,
        critic: GivenCritics,
        *,
        alpha: float = 2.5,
        num_samples: int = 10,
        **kwargs: Unpack[SACArguments],
    ) -> None:
        super().__init__(
            actor, critic, alpha=alpha, num_samples=num_samples, **kwargs
        )

    def critic_terms(self, outputs: list[Tensor], batch: Batch) -> Terms:
        """Computes the loss of the critics on a minibatch, with the penalty."""
        terms = super().critic_terms(outputs, batch)
        encoded = self.policy.encode(batch["observation"])
        action, log_prob = self.sampled_actions(batch)
        batch_size, samples = ops.shape(log_prob)
        # [B, ...] -> [B * N, ...]
        repeated = map_leaves(
            lambda each: ops.repeat(each, samples, axis=0), encoded
        )
        flat = ops.reshape(action, (-1, action.shape[-1]))
        sampled = self.critic_outputs(
            self.critics, repeated, flat, training=True
        )
        values_of = self.value_distribution.mean
        penalties = [
            losses.sampled_conservative_q(
                ops.reshape(values_of(each), (batch_size, samples)),
                log_prob,
                values_of(taken),
            )
            for each, taken in zip(sampled, outputs, strict=True)
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
        encoded = self.policy.encode(batch["observation"])
        shape = (
            ops.shape(leaves(encoded)[0])[0],
            self.num_samples,
            *self.policy.head.action_shape,
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
        policy = self.policy.head(parameters)
        action, log_prob = policy.sample_and_log_prob(noise)
        return (
            ops.reshape(action, shape),
            ops.reshape(log_prob, (batch_size, samples)),
        )


CQL.kinds = {
    gymnasium.spaces.Discrete: DiscreteCQL,
    gymnasium.spaces.Box: BoxCQL,
}
